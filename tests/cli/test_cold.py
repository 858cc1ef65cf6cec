"""``profile --cold``: a call in a hot loop beside the same call with displaced caches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.run import error_line, lens
from tests.documents import validated
from tests.recorder.effort import little_effort


@pytest.mark.measures
def test_cold_calls_are_slower_which_is_no_failure(tmp_path: Path) -> None:
    with little_effort(processes=2):
        done = lens("profile", "add1", "--cold", "1MB", "--json", "-o", "out", "-q", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    delta = validated(done.stdout)
    wall = delta["wall"]
    assert sum(change["delta_ns"] for change in delta["host"]) == wall["delta_ns"] == wall["new_ns"] - wall["base_ns"]
    assert wall["new_ns"] > 1.1 * wall["base_ns"]
    assert validated((tmp_path / "out" / "delta.json").read_text()) == delta
    metas = [json.loads((tmp_path / "out" / side / "meta.json").read_text()) for side in ("base", "new")]
    assert [meta["environment"]["caches"] for meta in metas] == ["hot caches", "caches displaced by 1.00 MB"]
    for side in ("base", "new"):
        assert (tmp_path / "out" / side / "trace.pftrace").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--cold", "2MB", "--until", "3%"],
            "--cold measures two sides in turns: leave --until and --instructions out",
        ),
        (
            ["--cold", "2MB", "--instructions"],
            "--cold measures two sides in turns: leave --until and --instructions out",
        ),
        (["--cold", "much"], "invalid size 'much': give 1kB to 1GB, e.g. 512kB, 2MB, 1MiB"),
    ],
)
def test_what_does_not_go_with_it(tmp_path: Path, options: list[str], message: str) -> None:
    done = lens("profile", "add1", *options, cwd=tmp_path)
    assert (error_line(done), done.returncode) == (message, 2)
    assert list(tmp_path.iterdir()) == []
