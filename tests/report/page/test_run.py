"""The page of a run, and of a job's ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from overhead_lens.program.area import Phase
from overhead_lens.report.page.charts import steps as drawing
from overhead_lens.report.page.run import job_page, run_page
from overhead_lens.studies.run.analysis import RunBudget, StepWall, run_budget, run_budget_of
from overhead_lens.studies.run.job import RunJob
from overhead_lens.taxonomy.host import HostCategory
from tests.drawn.runs import KERNEL, OUTSIDE, WAIT, WORK, bare, main, run_of, store, stretch
from tests.drawn.stacks import CLASSIFIER
from tests.report.page.seen import charts, headings, notes, tables, traces, words
from tests.report.test_run_text import full

MS = 1_000_000


def test_steps_by_phase_and_the_slowest_marked_with_its_cause() -> None:
    run = full()
    page = run_page(run, CLASSIFIER)
    (chart,) = charts(page, "Steps over time")
    found = traces(chart)
    assert run.times is not None
    for name, phase in (("warm-up", Phase.WARM_UP), ("bare", Phase.BARE), ("sampled", Phase.SAMPLED)):
        at = np.flatnonzero(run.times.phase == phase)
        assert found[name]["x"] == (at + run.times.first).tolist()
        assert found[name]["y"] == pytest.approx((run.times.ns[at] / MS).tolist(), rel=1e-4)
    assert (found["slowest"]["x"], found["slowest"]["y"]) == ([44, 55], [9.0, 4.0])
    assert notes(chart) == ["44: garbage collection"]
    assert found["mean, bare"]["y"] == [pytest.approx(run.wall.ns / MS, rel=1e-4)] * 2
    (table,) = tables(page, "Steps over time")
    assert table.rows == [
        ("44", "9.00 ms", "7.1x the mean: garbage collection"),
        ("55", "4.00 ms", "3.2x the mean: it was blocked: not running, and nothing took its core"),
    ]


def test_many_steps_are_medians_of_groups_within_a_phase_which_reach_to_their_extremes() -> None:
    steps = [1_000, 5_000, 3_000] * drawing._MOST_POINTS
    run = run_budget(run_of(*stretch(Phase.WARM_UP, 7_000), *bare(*steps)), CLASSIFIER)
    chart, said = drawing.run_steps(run.times, run.wall, ())  # type: ignore[arg-type]
    found = traces(chart)["bare"]  # type: ignore[arg-type]
    # One step of warm-up, and a stretch's first: 3 of 1,500 would be 4 with them.
    assert len(found["x"]) == -(-(len(steps) + 1) // 4)
    assert found["x"][:3] == [4, 8, 12]
    # 7,777 begins the stretch: [7777 1000 5000 3000] [1000 5000 3000 1000]
    assert found["y"][:2] == [4.0, 2.0]
    reach = found["error_y"]
    assert (reach["array"][:2], reach["arrayminus"][:2]) == ([3.777, 3.0], [3.0, 1.0])
    assert "median of 4 steps in a row" in said.paragraphs[0]  # type: ignore[union-attr]


def test_outliers_make_the_axis_logarithmic_and_its_values_ns() -> None:
    run = run_budget(run_of(*bare(*(10 * [MS]), 90 * MS)), CLASSIFIER)
    (chart,) = charts(run_page(run, CLASSIFIER), "Steps over time")
    assert chart.figure["layout"]["yaxis"]["type"] == "log"
    assert traces(chart)["bare"]["y"][-1] == 90 * MS
    assert chart.figure["layout"]["annotations"][0]["y"] == pytest.approx(np.log10(90 * MS))


def test_the_budget_and_its_figures() -> None:
    run = full()
    page = run_page(run, CLASSIFIER)
    assert (
        page.answer
        == "1.26 ms per step: python dominates: 60% of the step, most of it user (757.1 µs); then wait with 25%."
    )
    bar = charts(page, "Where the time of a step goes")[0]
    assert [(trace["name"], trace["x"]) for trace in bar.figure["data"]] == [
        *(("python", [0.6]), ("kernel", [0.15]), ("wait", [0.25])),
    ]
    rows = {row[0]: row for row in tables(page, "Where the time of a step goes")[0].rows}
    assert rows["python"][1:3] == ("60.0%", "757.1 µs")
    assert "it ended with exit code 7" in words(page, "Where the time of a step goes")


def test_regions_have_bars_of_their_own_and_one_without_stacks_is_said() -> None:
    page = run_page(full(), CLASSIFIER)
    (chart,) = charts(page, "Regions")
    assert notes(chart) == ["<b>decode</b>", "42x 400.0 µs [400.0 µs .. 400.0 µs]"]
    assert sum(x for trace in chart.figure["data"] for x in trace["x"]) == pytest.approx(1.0)
    assert words(page, "Regions") == ["No stack was taken inside \x1b[31mlog: 42x 10 ns [10 ns .. 10 ns]."]
    assert tables(page, "Regions")[0].rows[0][2:] == ("240.0 µs", "60.00 µs", "100.0 µs")


def test_threads_are_bars_with_how_busy_they_are() -> None:
    page = run_page(full(), CLASSIFIER)
    (chart,) = charts(page, "Other threads and processes")
    assert notes(chart)[::2] == ["<b>MainThread</b>", "<b>reader</b>"]
    assert notes(chart)[1::2] == ["busy 100%, process 12", "busy 40%, process 10"]


def stored(folder: Path) -> RunBudget:
    """A run with stacks and a slow step."""
    turn = [main(WORK, 60), main(WAIT, 25), main(KERNEL, 15), main(OUTSIDE, 50)]
    drawn = run_of(*stretch(Phase.WARM_UP, MS), *bare(*(20 * [MS]), {"ns": 4 * MS, "gc_ns": 3 * MS}))
    return run_budget_of(store(folder, drawn, [turn]), CLASSIFIER)


def test_stacks_are_drawn_from_the_steps_loop_on(tmp_path: Path) -> None:
    (chart,) = charts(run_page(stored(tmp_path / "run"), CLASSIFIER), "Sampled stacks")
    (tree,) = chart.figure["data"]
    names = list(zip(tree["labels"], tree["values"], strict=True))
    assert names[:2] == [("all stacks of the step", 100), ("train (train.py:5)", 100)]
    assert sorted(names[2:]) == [("at::native::add_kernel (libtorch_cpu.so)", 15), ("clock_nanosleep (libc.so.6)", 25)]


def test_a_run_whose_directory_is_gone_says_so() -> None:
    assert words(run_page(full(), CLASSIFIER), "Sampled stacks") == ["No stacks to draw: no run traces/drawn"]


def test_a_run_without_steps_and_without_stacks() -> None:
    page = run_page(run_budget(run_of(found_by="none"), CLASSIFIER), CLASSIFIER)
    assert page.answer == "5.00 ms per run; nothing says how it divides: no stack was taken."
    assert headings(page) == ["Where the time of a run goes", "Sampled stacks", "Warnings"]


def ranks(*walls_ns: int) -> RunJob:
    usual = full()

    def scaled(rank: int, wall_ns: int) -> RunBudget:
        host = tuple(
            HostCategory(
                each.category,
                wall_ns if each.category == "python" else 0,
                (0.0, float(wall_ns)),
                float(each.category == "python"),
                "samples",
            )
            for each in usual.host
        )
        return replace(usual, rank=rank, wall=StepWall(wall_ns, (wall_ns, wall_ns)), host=host)

    return RunJob(tuple(scaled(rank, ns) for rank, ns in enumerate(walls_ns)), "traces/job")


def test_ranks_are_bars_of_one_scale_and_the_late_one_is_named() -> None:
    page = job_page(ranks(2 * MS, 3 * MS, 2 * MS, 2 * MS), CLASSIFIER)
    assert page.answer.startswith(
        "Rank 1 is the slowest: 3.00 ms per step, 50% above the median of 4 ranks. python dominates"
    )
    (chart,) = charts(page, "4 ranks of one job")
    (bars,) = chart.figure["data"]
    assert bars["x"] == [0.66667, 1.0, 0.66667, 0.66667]
    assert notes(chart)[::2] == ["<b>rank 0</b>", "<b>rank 1 (slowest)</b>", "<b>rank 2</b>", "<b>rank 3</b>"]
    (table,) = tables(page, "4 ranks of one job")
    assert [row[2] for row in table.rows] == ["2.00 ms", "3.00 ms", "2.00 ms", "2.00 ms"]
    assert page.title == "rank 1: train.py --epochs 3"


def test_of_many_ranks_the_slow_ones_are_drawn_in_their_order() -> None:
    page = job_page(ranks(*range(MS, 71 * MS, MS)), CLASSIFIER)
    (chart,) = charts(page, "70 ranks of one job")
    assert len(chart.figure["data"][0]["x"]) == 64
    assert notes(chart)[0] == "<b>rank 6</b>"
    assert words(page, "70 ranks of one job") == ["6 faster ranks are left out; --json has them."]
