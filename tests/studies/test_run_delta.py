"""Differences of two runs, drawn: what changed per step, how sure that is, what cannot be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.studies.run.analysis import RunBudget, run_budget
from overhead_lens.studies.run.delta import RunDelta, compare_runs
from tests.cli.run import error_line, lens
from tests.documents import validated
from tests.drawn.runs import KERNEL, WAIT, WORK, bare, main, run_of, store
from tests.drawn.stacks import CLASSIFIER

REFERENCE = Path(__file__).resolve().parents[2] / "traces" / "reference"

TURN = [main(WORK, 6_000), main(WAIT, 4_000)]


def budget(ns: int, turn: list[str] = TURN, **meta: Any) -> RunBudget:
    return run_budget(run_of(*bare(*(40 * [ns])), turns=(turn,), **meta), CLASSIFIER)


def changes(delta: RunDelta) -> dict[str, tuple[int, str]]:
    return {change.category: (change.delta_ns, change.verdict) for change in delta.host if change.delta_ns}


def test_a_step_that_grew_blames_the_category() -> None:
    new = budget(13_000, [main(WORK, 6_000), main(WAIT, 4_000), main(KERNEL, 3_000)])
    delta = compare_runs(budget(10_000), new, 0.01)
    assert (delta.verdict, delta.wall_delta_ns, delta.ratio, delta.blame) == ("slower", 3_000, 1.3, ("kernel",))
    assert changes(delta) == {"kernel": (3_000, "slower")}
    assert delta.sentence == "3.00 µs slower: kernel +3.00 µs"
    # Steps that never vary leave what processes differ by: 1 % of each side.
    half = 1.96 * (100**2 + 130**2) ** 0.5
    assert delta.wall_ci95_ns == (pytest.approx(3_000 - half, rel=1e-3), pytest.approx(3_000 + half, rel=1e-3))


def test_the_reverse_is_the_negative() -> None:
    base, new = budget(10_000), budget(13_000, [main(WORK, 6_000), main(KERNEL, 7_000)])
    there, back = compare_runs(base, new, 0.0), compare_runs(new, base, 0.0)
    assert back.wall_delta_ns == -there.wall_delta_ns
    assert [change.delta_ns for change in back.host] == [-change.delta_ns for change in there.host]
    assert (there.verdict, back.verdict, back.blame) == ("slower", "faster", ("kernel",))


@pytest.mark.parametrize(("ns", "margin", "verdict"), [(10_200, 0.01, "inconclusive"), (10_200, 0.06, "same")])
def test_what_processes_differ_by_is_no_difference(ns: int, margin: float, verdict: str) -> None:
    delta = compare_runs(budget(10_000), budget(ns), margin)
    assert (delta.verdict, delta.blame) == (verdict, ())


def test_other_steps_and_machines_are_told() -> None:
    base = budget(10_000, environment={"host": "one"})
    new = budget(10_000, environment={"host": "two"}, found_by="loop", where="train.py:3", warnings=["it is late"])
    assert compare_runs(base, new, 0.01).warnings == (
        "steps were found in different ways: train.py:7 (optimizer) and train.py:3 (loop)",
        "host differs: one and two",
        "new: it is late",
    )


def test_a_run_without_steps_compares_with_its_like() -> None:
    whole = run_budget(run_of(turns=(TURN,)), CLASSIFIER)
    with pytest.raises(UsageError, match="only one of the runs has steps"):
        compare_runs(budget(10_000), whole, 0.01)
    assert compare_runs(whole, whole, 0.01).per == "run"


def test_diff_of_two_runs(tmp_path: Path) -> None:
    for name, ns, turn in (("a", 10_000, TURN), ("b", 13_000, [*TURN, main(KERNEL, 3_000)])):
        store(tmp_path / name, run_of(*bare(*(40 * [ns])), turns=(turn,)), (turn,))
    done = lens("diff", "a", "b", "--html", "d.html", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "10.00 µs → 13.00 µs per step (1.300x): slower" in done.stdout
    assert "3.00 µs slower: kernel +3.00 µs" in (tmp_path / "d.html").read_text(encoding="utf-8")
    document = validated(lens("diff", "a", "b", "--json", cwd=tmp_path).stdout)
    assert (document["verdict"], document["wall"]["delta_ns"], document["blame"]) == ("slower", 3_000, ["kernel"])
    assert sum(row["delta_ns"] for row in document["host"]) == 3_000
    assert lens("diff", "b", "a", cwd=tmp_path).returncode == 0
    capture = lens("diff", "a", REFERENCE / "eager", cwd=tmp_path)
    assert (capture.returncode, error_line(capture).split(":")[-1].strip()) == (
        2,
        "a watched process compares with a watched process, a run with a run, a capture with a capture",
    )
