"""Runs held against what a hot loop of their step could say: which figures it lacks, by exact integers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.program.area import Phase
from overhead_lens.report.outlines.run import end_to_end_outline
from overhead_lens.studies.run.analysis import RunBudget, run_budget
from overhead_lens.studies.run.missed import Shortfall, end_to_end
from tests.cli.run import error_line, lens
from tests.documents import validated
from tests.drawn.builders import breakdown
from tests.drawn.runs import KERNEL, WORK, bare, main, run_of, slow_run, stretch
from tests.drawn.stacks import CLASSIFIER
from tests.report.goldens import expect
from tests.report.page.seen import rows
from tests.report.test_run_text import printed

TURN = [main(WORK, 600), main(KERNEL, 400)]
ALONE = "it calls the step alone"


def run(*rows: Any, **meta: Any) -> RunBudget:
    return run_budget(run_of(*rows, turns=(TURN,), **meta), CLASSIFIER)


def with_host(parts: dict[str, dict[str, int]], **host: int) -> RunBudget:
    """A run of equal steps whose categories and parts are given."""
    made = run(*bare(*(20 * [1_000])))
    assert made.wall.ns == sum(host.values()) == 1_000
    whole = {name: {**few, "other": host[name] - sum(few.values())} for name, few in parts.items()}
    return replace(made, host=breakdown(whole, **host).host)


def figures(found: RunBudget) -> dict[str, int]:
    return {row.figure: row.ns for row in end_to_end(found).missed}


def test_slow_steps_are_what_the_mean_has_more_than_the_median() -> None:
    slow = {"ns": 21_000, "gc_ns": 20_000}
    found = end_to_end(run(*stretch(Phase.WARM_UP, *(9 * [90_000])), *bare(*(18 * [1_000]), slow, {"ns": 3_000})))
    # (18 x 1000 + 21000 + 3000) / 20 = 2100; the warm-up and the first step of a stretch do not count.
    assert (found.run.wall.ns, found.median_ns) == (2_100, 1_000)
    (row,) = found.missed
    assert (row.figure, row.ns, row.share) == ("slow steps", 1_100, 1_100 / 2_100)
    assert row.because == (
        "2 of 20 steps took more than twice the median (the slowest: garbage collection 1x, unknown 1x)"
    )
    assert found.sentence == "a hot loop of the step would have missed slow steps (52.4% of it)"


def test_a_mean_above_the_median_alone_is_no_slow_step() -> None:
    found = end_to_end(run(*bare(*(11 * [1_000]), *(9 * [1_900]))))
    assert (found.run.wall.ns, found.median_ns, found.missed) == (1_405, 1_000, ())
    assert found.sentence == "a hot loop of the step would have missed nothing that a run shows"


@pytest.mark.parametrize(
    ("category", "part", "remedy"),
    [
        ("python", "gc", "gc_rarely"),
        ("python", "import", ""),
        ("allocation", "page_fault", "malloc_keeps_pages"),
        ("wait", "data", "loader_workers"),
        ("wait", "io", ""),
        ("wait", "gil", ""),
        ("wait", "lock", ""),
    ],
)
def test_parts_that_only_a_program_has(category: str, part: str, remedy: str) -> None:
    found = end_to_end(with_host({category: {part: 300}}, **{category: 400, "kernel": 600}))
    (row,) = found.missed
    assert (row.figure, row.ns, row.share, row.remedy) == (f"{category}/{part}", 300, 0.3, remedy)
    assert bool(row.how) == bool(remedy)


@pytest.mark.parametrize("part", ["user", "framework", "binding"])
def test_parts_that_a_hot_loop_has_too(part: str) -> None:
    assert figures(with_host({"python": {part: 900}}, python=1_000)) == {}


def test_waiting_for_a_device_is_in_a_hot_loop_too() -> None:
    assert figures(with_host({"wait": {"device": 900}}, wait=1_000)) == {}


def test_the_most_time_first_and_nothing_that_cannot_be_seen() -> None:
    parts = {"python": {"gc": 1}, "wait": {"data": 200, "io": 300}}
    found = end_to_end(with_host(parts, python=100, wait=500, compile=400))
    assert [(row.figure, row.ns) for row in found.missed] == [("compile", 400), ("wait/io", 300), ("wait/data", 200)]
    assert found.missed[1] == Shortfall("wait/io", 300, 0.3, ALONE, "", "")
    assert found.sentence == "a hot loop of the step would have missed compile (40.0% of it), and 2 more"


def test_a_run_without_steps_says_nothing_of_slow_ones() -> None:
    found = end_to_end(run_budget(run_of(found_by="none", home=None), CLASSIFIER))
    assert (found.median_ns, found.missed) == (None, ())
    assert found.sentence == "nothing is known of the run but its time: there are no samples"
    assert found.notes[1] == "no steps were found, so slow steps are unknown: --step names one"


def test_text_and_page() -> None:
    found = end_to_end(with_host({"wait": {"data": 200}, "python": {"gc": 100}}, python=500, wait=500))
    expect("run_missed.txt", printed(found, width=120))
    ((_, *missed),) = rows(end_to_end_outline(found), "What a hot loop would have missed")
    assert [row[0] for row in missed] == ["wait/data", "python/gc"]


def test_advise_on_a_run(tmp_path: Path) -> None:
    slow_run(tmp_path / "run")
    done = lens("advise", tmp_path / "run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = validated(done.stdout)
    # 39 steps of a million ns and one of nine.
    assert document["run"]["wall"]["ns"] == 1_200_000
    assert document["median_ns"] == 1_000_000
    assert [(row["figure"], row["ns"]) for row in document["missed"]] == [("slow steps", 200_000)]
    refused = lens("advise", tmp_path / "run", "--compile", cwd=tmp_path)
    assert error_line(refused).endswith("leave out the other options")
