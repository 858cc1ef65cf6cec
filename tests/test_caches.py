"""Sessions of tests in one checkout, side by side and one after the other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.caches import of_a_session

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sessions share nothing there")


def test_what_a_session_measures_is_its_own_and_what_it_makes_is_kept(tmp_path: Path) -> None:
    with of_a_session(tmp_path) as first:
        (first / "overhead-lens" / "calibration-1.json").write_text("{}")
        (first / "overhead-lens" / "loop-1.code").write_bytes(b"code")
        lock = first / "torch_extensions" / "py311" / "costs" / "lock"
        lock.parent.mkdir(parents=True)
        lock.touch()
        with of_a_session(tmp_path) as second:
            assert list((second / "overhead-lens").iterdir()) == []
            # The first one builds it.
            assert (second / "torch_extensions" / "py311" / "costs" / "lock").exists()
        assert not second.exists()
        assert (first / "overhead-lens" / "calibration-1.json").exists()
    with of_a_session(tmp_path) as third:
        assert [each.name for each in (third / "overhead-lens").iterdir()] == ["loop-1.code"]
        assert (third / "overhead-lens" / "loop-1.code").read_bytes() == b"code"
        assert list((third / "torch_extensions" / "py311" / "costs").iterdir()) == []


def test_the_folder_of_a_killed_session_is_removed_by_the_first_that_is_alone(tmp_path: Path) -> None:
    left = tmp_path / "session-left"
    with of_a_session(tmp_path):
        left.mkdir()
        with of_a_session(tmp_path):
            assert left.exists()
    with of_a_session(tmp_path):
        assert not left.exists()
