"""``profile --cold``: a call in a hot loop beside the same call with displaced caches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.recorders import Recorders
from tests.cli.run import error_line, lens
from tests.documents import validated
from tests.drawn.captures import draw_capture
from tests.recorder.effort import little_effort


@pytest.mark.measures
def test_cold_calls_are_slower_which_is_no_failure(tmp_path: Path) -> None:
    with little_effort(processes=2, sampled=False):
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


def _draw_sides(folder: Path, **caches: str) -> None:
    """Captures of each name with those caches; without any of a version that did not say."""
    for name, state in caches.items():
        draw_capture(folder / name, environment={"torch": "2.0", **({"caches": state} if state else {})})


@pytest.mark.parametrize("words", [["check", "cold"], ["baseline", "update", "cold"], ["advise", "cold"]], ids=" ".join)
def test_a_cold_capture_is_not_measured_again_in_a_hot_loop(here: Path, recorders: Recorders, words: list[str]) -> None:
    _draw_sides(here, cold="caches displaced by 64.0 MB")
    done = lens(*words, cwd=here)
    message = (
        "cold was measured with caches displaced by 64.0 MB: measure again with `profile --cold`, and compare by `diff`"
    )
    assert (error_line(done), done.returncode, recorders.asked) == (message, 2, None)


def test_cold_captures_are_compared_with_cold_ones_only(tmp_path: Path) -> None:
    _draw_sides(
        tmp_path, old="", hot="hot caches", cold="caches displaced by 64.0 MB", too="caches displaced by 64.0 MB"
    )
    done = lens("diff", "hot", "cold", cwd=tmp_path)
    assert (error_line(done), done.returncode) == (
        (
            "the captures differ in caches: 'hot caches' against 'caches displaced by 64.0 MB': "
            "use --allow-mismatch to compare them anyway"
        ),
        2,
    )
    for sides in (["old", "hot"], ["cold", "too"], ["hot", "cold", "--allow-mismatch"]):
        assert lens("diff", *sides, cwd=tmp_path).returncode == 0
