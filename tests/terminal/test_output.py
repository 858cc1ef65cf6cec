"""Files that hold a result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.terminal.output import write_text

resource = pytest.importorskip("resource", reason="this system has no limits of files")


@contextmanager
def full_after(count: int) -> Iterator[None]:
    """No file grows beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with full_after(10), pytest.raises(UsageError, match=r"cannot write .*page\.html: File too large"):
        write_text(page, "a" * 11, force=False)
    assert list(tmp_path.iterdir()) == []
    write_text(page, "before", force=False)
    with full_after(10), pytest.raises(UsageError, match=r"cannot write .*page\.html: File too large"):
        write_text(page, "a" * 11, force=True)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("page.html", "before")]
    with pytest.raises(UsageError, match="File exists"):
        write_text(page, "after", force=False)
    assert page.read_text() == "before"
    write_text(page, "after", force=True)
    assert page.read_text() == "after"
