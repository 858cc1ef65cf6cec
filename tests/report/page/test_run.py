"""The page of a run, and of a job's ranks."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from overhead_lens.program.area import Phase
from overhead_lens.report.outline import Bar, Bars, Outline, Table
from overhead_lens.report.outlines.run import job_outline, run_outline
from overhead_lens.report.page.charts import steps as drawing
from overhead_lens.studies.run.analysis import RunBudget, StepWall, run_budget, run_budget_of
from overhead_lens.studies.run.job import RunJob
from overhead_lens.taxonomy.host import HostCategory, Part
from tests.drawn.processes import thread
from tests.drawn.runs import COMPILING, KERNEL, OUTSIDE, PID, WAIT, WORK, bare, main, run_of, store, stretch
from tests.drawn.stacks import CLASSIFIER
from tests.report.page.seen import headings, icicles, notes, plots, rows, section, series, words
from tests.report.test_run_text import full

MS = 1_000_000


def test_steps_by_phase_and_the_slowest_marked_with_its_cause() -> None:
    run = full()
    page = run_outline(run)
    (plot,) = plots(page, "Steps over time")
    found = series(plot)
    assert run.times is not None
    for name, phase in (("warm-up", Phase.WARM_UP), ("bare", Phase.BARE), ("sampled", Phase.SAMPLED)):
        at = np.flatnonzero(run.times.phase == phase)
        assert found[name].x == (at + run.times.first).tolist()
        assert found[name].y == run.times.ns[at].tolist()
    assert (found["slowest"].x, found["slowest"].y) == ([44, 55], [9 * MS, 4 * MS])
    assert notes(plot) == ["44: garbage collection"]
    assert found["mean, bare"].y == [run.wall.ns] * 2
    assert rows(page, "Slowest bare steps") == [
        [
            ["step", "took", "of the mean", "because"],
            ["44", "9.00 ms", "7.1x", "garbage collection"],
            ["55", "4.00 ms", "3.2x", "it was blocked: not running, and nothing took its core"],
        ]
    ]


def test_steps_of_which_none_was_bare_are_not_called_bare() -> None:
    page = run_outline(run_budget(run_of(*stretch(Phase.WARM_UP, MS, MS, 9 * MS, MS)), CLASSIFIER))
    assert rows(page, "Slowest steps")[0][1][:3] == ["5", "9.00 ms", "3.0x"]
    (plot,) = plots(page, "Steps over time")
    assert series(plot)["mean"].y == [3 * MS] * 2
    assert plot.alternative.endswith("the dashed line is the mean of steps that were not traced, 3.00 ms.")


def test_ticks_of_few_steps_are_whole_steps() -> None:
    (plot,) = plots(run_outline(run_budget(run_of(*stretch(Phase.WARM_UP, MS, MS, MS)), CLASSIFIER)), "Steps over time")
    assert plot.x.ticks == [(3, "3"), (4, "4"), (5, "5")]


def test_many_steps_are_medians_of_groups_within_a_phase_which_reach_to_their_extremes() -> None:
    steps = [1_000, 5_000, 3_000] * drawing._MOST_POINTS
    run = run_budget(run_of(*stretch(Phase.WARM_UP, 7_000), *bare(*steps)), CLASSIFIER)
    assert run.times is not None
    plot, said = drawing.run_steps(replace(run, slowest=()), run.times)
    found = series(plot)["bare"]  # type: ignore[arg-type]
    # One step of warm-up, and a stretch's first: 3 of 1,500 would be 4 with them.
    assert len(found.x) == -(-(len(steps) + 1) // 4)
    assert found.x[:3] == [4, 8, 12]
    # 7,777 begins the stretch: [7777 1000 5000 3000] [1000 5000 3000 1000]
    assert found.y[:2] == [4_000, 2_000]
    assert found.ends[:2] == [(1_000, 7_777), (1_000, 5_000)]
    assert found.tooltips[:2] == ["steps 4 to 7, median: 4.00 µs", "steps 8 to 11, median: 2.00 µs"]
    assert "median of 4 steps in a row" in said.lines[0]  # type: ignore[union-attr]


def test_outliers_make_the_axis_logarithmic() -> None:
    run = run_budget(run_of(*bare(*(10 * [MS]), 90 * MS)), CLASSIFIER)
    (plot,) = plots(run_outline(run), "Steps over time")
    assert plot.y.is_log
    assert series(plot)["bare"].y[-1] == plot.notes[0].y == 90 * MS
    assert [plot.y.share(plot.y.low), plot.y.share(plot.y.high)] == [0, 1]
    assert plot.y.share((plot.y.low * plot.y.high) ** 0.5) == pytest.approx(0.5)


def bars(page: Outline, heading: str) -> list[Bar]:
    return [bar for block in section(page, heading).blocks if isinstance(block, Bars) for bar in block.bars]


def pieces(page: Outline, heading: str) -> dict[str, dict[str, float]]:
    """The stacked bar of each row by its first cell."""
    (table,) = [block for block in section(page, heading).blocks if isinstance(block, Table)]
    return {
        row.cells[0].text: {piece.look: piece.size for cell in row.cells for piece in cell.pieces} for row in table.rows
    }


def test_the_budget_and_its_figures() -> None:
    run = full()
    page = run_outline(run)
    assert page.figure == "1.26 ms per step [905.0 µs .. 1.76 ms]"
    assert page.sentence == "python dominates: 60% of the step, most of it user (757.1 µs); then wait with 25%."
    (bar,) = bars(page, "Where the time of a step goes")
    assert [(piece.look, round(piece.size / bar.full, 2)) for piece in bar.pieces] == [
        *(("python", 0.6), ("kernel", 0.15), ("wait", 0.25)),
    ]
    ((_, *budget),) = rows(page, "Where the time of a step goes")
    assert budget[0][:3] == ["python", "60.0%", "757.1 µs"]
    assert "it ended with exit code 7" in page.about


def test_regions_have_bars_of_their_own_and_one_without_stacks_is_said() -> None:
    page = run_outline(full())
    assert pieces(page, "Regions, in bare steps")["decode"] == {"python": 240_000, "kernel": 60_000, "wait": 100_000}
    ((_, decode, log),) = rows(page, "Regions, in bare steps")
    assert decode == ["decode", "42x", "400.0 µs", "400.0 µs .. 400.0 µs", "python/user 60%, wait/io 25%, kernel 15%"]
    assert log[-1] == "no stack was taken inside"


def test_threads_are_bars_with_how_busy_they_are() -> None:
    ((_, *threads),) = rows(run_outline(full()), "Other threads and processes")
    assert [row[:3] for row in threads] == [["MainThread", "12", "100%"], ["reader", "10", "38%"]]


def stored(folder: Path) -> RunBudget:
    """A run with stacks and a slow step."""
    turn = [main(WORK, 60), main(WAIT, 25), main(KERNEL, 15), main(OUTSIDE, 50)]
    drawn = run_of(*stretch(Phase.WARM_UP, MS), *bare(*(20 * [MS]), {"ns": 4 * MS, "gc_ns": 3 * MS}))
    return run_budget_of(store(folder, drawn, [turn]), CLASSIFIER)


def test_stacks_are_drawn_from_the_steps_loop_on(tmp_path: Path) -> None:
    (icicle,) = icicles(run_outline(stored(tmp_path / "run")), "Sampled stacks")
    names = [(tile.text, tile.size) for tile in icicle.tree.tiles]
    assert names[:2] == [("all stacks of the step", 100), ("train (train.py:5)", 100)]
    assert sorted(names[2:]) == [("at::native::add_kernel (libtorch_cpu.so)", 15), ("clock_nanosleep (libc.so.6)", 25)]
    assert icicle.callers is not None
    assert [(tile.parent, tile.text, tile.size) for tile in icicle.callers.tiles] == [
        *((-1, "all stacks of the step", 100), (0, "train (train.py:5)", 60)),
        *((0, "clock_nanosleep (libc.so.6)", 25), (2, "train (train.py:5)", 25)),
        *((0, "at::native::add_kernel (libtorch_cpu.so)", 15), (4, "train (train.py:5)", 15)),
    ]


def test_the_root_of_the_stacks_has_no_category_and_no_rule(tmp_path: Path) -> None:
    (icicle,) = icicles(run_outline(stored(tmp_path / "run")), "Sampled stacks")
    for tile, category in ((icicle.tree.tiles[0], ""), (icicle.tree.tiles[1], "python, user")):
        assert (tile.values[0], bool(tile.values[3])) == (category, bool(category))


def test_compilations_that_the_clock_times_are_not_drawn(tmp_path: Path) -> None:
    steps = bare(*[100] * 9, {"ns": 1_000, "compile_ns": 900})
    turn = [main(WORK, 600), main(WAIT, 400), main(COMPILING, 7_000)]
    page = run_outline(run_budget_of(store(tmp_path / "run", run_of(*steps), [turn]), CLASSIFIER))
    said = words(page, "Sampled stacks")
    assert "1,000 stacks; the whole width is 100 ns per step." in said
    assert "90 ns of compilations are left out: the compiler's own clock times them." in said


def test_where_the_budget_corrects_stacks_is_said(tmp_path: Path) -> None:
    steps = bare(*(20 * [{"ns": 1_000, "user_ns": 600, "system_ns": 400, "faults": 2}]))
    turn = [main(KERNEL, 800), main(WORK, 200)]
    page = run_outline(run_budget_of(store(tmp_path / "run", run_of(*steps), [turn]), CLASSIFIER))
    said = "Other evidence corrects these stacks in the budget, here on the scale of the stacks: allocation 400 ns (by stacks 0 ns), kernel 400 ns (by stacks 800 ns)."
    assert words(page, "Sampled stacks")[-1] == said
    assert len(words(run_outline(stored(tmp_path / "right")), "Sampled stacks")) == 1


def test_that_stacks_count_several_times_is_said(tmp_path: Path) -> None:
    run, counted = stored(tmp_path / "run"), "Stacks of times in which fewer were taken count several times."
    assert counted not in words(run_outline(run), "Sampled stacks")
    path = tmp_path / "run" / "stacks.txt.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"py-spy:1", b"py-spy:5")))
    again = run_budget_of(tmp_path / "run", CLASSIFIER)
    assert (run.samples, again.samples) == (100, 100)
    assert words(run_outline(again), "Sampled stacks")[-1] == counted


def test_the_stacks_of_another_thread_are_drawn_in_a_section_that_is_folded(tmp_path: Path) -> None:
    turn = [main(WORK, 100), *thread(PID + 1, "reader", 30, 70), *thread(PID + 2, "idle", 0, 100)]
    run = run_of(*stretch(Phase.WARM_UP, MS), *bare(*(20 * [MS])))
    page = run_outline(run_budget_of(store(tmp_path / "run", run, [turn]), CLASSIFIER))
    assert [heading for heading in headings(page) if heading.startswith("Stacks of")] == ["Stacks of reader"]
    assert not section(page, "Stacks of reader").is_open
    (icicle,) = icicles(page, "Stacks of reader")
    assert (icicle.tree.tiles[0].text, icicle.tree.tiles[0].size) == ("all stacks of reader", 100)


def test_a_run_whose_directory_is_gone_says_so() -> None:
    page, gone = run_outline(full()), ["No stacks to draw: no run traces/drawn"]
    assert words(page, "Sampled stacks") == words(page, "Stacks of reader, process 10") == gone


def test_a_run_without_steps_and_without_stacks() -> None:
    page = run_outline(run_budget(run_of(found_by="none"), CLASSIFIER))
    assert (page.figure, page.sentence) == (
        "5.00 ms per run [no interval]",
        "Nothing says how the time divides: no stack was taken.",
    )
    assert headings(page) == ["Sampled stacks"]


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
    page = job_outline(ranks(2 * MS, 3 * MS, 2 * MS, 2 * MS))
    assert page.sentence.startswith(
        "Rank 1 is the slowest: 3.00 ms per step, 50% above the median of 4 ranks. python dominates"
    )
    sizes = pieces(page, "Ranks")
    assert list(sizes) == ["0", "1 (slowest)", "2", "3"]
    assert [size["python"] for size in sizes.values()] == [2 * MS, 3 * MS, 2 * MS, 2 * MS]
    ((_, *told),) = rows(page, "Ranks")
    assert [row[1] for row in told] == ["2.00 ms", "3.00 ms", "2.00 ms", "2.00 ms"]
    assert page.title == "4 ranks of one job: train.py --epochs 3"


def test_a_rank_alone_is_not_the_slowest_of_anything() -> None:
    page = job_outline(ranks(2 * MS))
    assert page.title == "rank 0: train.py --epochs 3"
    assert page.sentence.startswith("python dominates: 100% of the step")
    assert "Ranks" not in headings(page)


def waiting(run: RunBudget, collective_ns: int) -> RunBudget:
    """The same rank, which spends a part of its step waiting in collectives."""
    host = tuple(
        replace(each, ns=collective_ns, parts=(Part("collective", collective_ns),))
        if each.category == "wait"
        else replace(each, ns=run.wall.ns - collective_ns if each.category == "python" else 0)
        for each in run.host
    )
    return replace(run, host=host)


def test_the_slowest_rank_is_the_one_for_which_the_others_wait_in_collectives() -> None:
    first, second = ranks(2_000_000, 1_900_000).ranks
    page = job_outline(RunJob((waiting(first, 1_500_000), waiting(second, 200_000)), "traces/job"))
    assert page.sentence.startswith(
        "Rank 1 is the slowest: 1.70 ms per step besides waiting in collectives, 55% above the median of 2 ranks. python"
    )
    assert list(pieces(page, "Ranks")) == ["0", "1 (slowest)"]
    # Where a rank has no stacks, nothing says how long it waited.
    unknown = replace(waiting(second, 200_000), sampling=replace(second.sampling, stacks=0))
    page = job_outline(RunJob((waiting(first, 1_500_000), unknown), "traces/job"))
    assert page.sentence.startswith("Rank 0 is the slowest: 2.00 ms per step, 3% above the median of 2 ranks.")


def test_of_many_ranks_the_slow_ones_and_the_fastest_are_shown_in_their_order() -> None:
    page = job_outline(ranks(*range(MS, 71 * MS, MS)))
    ((_, *told),) = rows(page, "Ranks")
    assert len(told) == 64
    assert [row[0] for row in told[:2]] == ["0", "7"]
    assert words(page, "Ranks") == ["6 ranks in between are left out; --json has them."]
    (table,) = (block for block in section(page, "Ranks").blocks if isinstance(block, Table))
    brief = [row.cells[0].text for row in table.shown(whole=False).rows]
    assert brief == ["0", *map(str, range(55, 69)), "69 (slowest)", "48 more in between"]
