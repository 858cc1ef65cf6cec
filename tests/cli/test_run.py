"""``run`` refuses what it cannot run, in one line and before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.run import error_line, lens

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="run is for Linux and macOS")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "name a script, or a module with -m"),
        (("-m",), "name a script, or a module with -m"),
        (("gone.py",), "no script gone.py"),
        (("gone.py", "--json", "made.json"), "no script gone.py"),
        (
            ("--bogus", "train.py"),
            "unknown option --bogus; options for your program go after its name",
        ),
        (("--step", "nonsense", "train.py"), "--step nonsense: write FILE:LINE or MODULE:FUNCTION"),
        (("--step", ":7", "train.py"), "--step :7: write FILE:LINE or MODULE:FUNCTION"),
        (("--step", "train.py:", "train.py"), "--step train.py:: write FILE:LINE or MODULE:FUNCTION"),
        (
            ("--json-file", "there.json", "train.py"),
            "there.json exists: name another --json-file, or overwrite it with --force",
        ),
        (("--rules", "gone.toml", "train.py"), "cannot read rules gone.toml: No such file or directory"),
    ],
)
def test_bad_input(tmp_path: Path, arguments: tuple[str, ...], line: str) -> None:
    (tmp_path / "train.py").write_text("open('started', 'w')")
    (tmp_path / "there.json").write_text("{}")
    done = lens("run", *arguments, cwd=tmp_path)
    assert (error_line(done), done.returncode) == (line, 2)
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "there.json"}
    assert (tmp_path / "there.json").read_text() == "{}"


def test_an_output_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("open('started', 'w')")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("kept")
    done = lens("run", "--output", "kept", "train.py", cwd=tmp_path)
    assert (error_line(done), done.returncode) == (
        "kept is not empty; nothing is overwritten, name another --output",
        2,
    )
    assert not (tmp_path / "started").exists()
