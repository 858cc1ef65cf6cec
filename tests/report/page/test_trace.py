"""The pages of analyzed traces: one, several ranks, and what changed between two."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from overhead_lens.report.outline import Bars, Length, Outline, Table
from overhead_lens.report.outlines.ranks import job_outline
from overhead_lens.report.outlines.structure import structure_outline
from overhead_lens.report.outlines.trace import trace_outline
from overhead_lens.report.page.charts import trace_steps as drawing
from overhead_lens.report.page.model import Area, Lanes
from overhead_lens.report.page.plot import lanes_svg
from overhead_lens.traces import over_time
from overhead_lens.traces.job.ranks import Job
from overhead_lens.traces.model import TraceAnalysis, TraceFailure
from tests.comparison.test_structure import compared, mm
from tests.drawn.memory import memory
from tests.drawn.timelines import analyzer_of, timed
from tests.report.page.seen import blocks, headings, notes, plots, rows, section, series, words
from tests.traces.test_ranks import rank


def steps(*walls_ns: int) -> TraceAnalysis:
    """Steps that are an operator of 10 ns and a wait for the device, with a kernel of half the step."""
    entries, start = [], 0
    for number, wall_ns in enumerate(walls_ns):
        entries.append(timed(start, wall_ns, f"ProfilerStep#{number + 5}", "user_annotation"))
        entries.append(timed(start, 10, "aten::mm"))
        entries.append(timed(start + 2, 4, "cudaLaunchKernel", "cuda_runtime", correlation=start + 1))
        entries.append(timed(start + 10, wall_ns - 10, "cudaDeviceSynchronize", "cuda_runtime", correlation=start + 2))
        entries.append(
            timed(start + 10, wall_ns // 2, "gemm", "kernel", (0, 7), device=0, stream=7, correlation=start + 1)
        )
        start += wall_ns
    return analyzer_of(*entries).analysis()


def test_steps_are_stacked_budgets_and_the_slowest_is_marked() -> None:
    analysis = steps(100, 100, 300, 100)
    page = trace_outline(analysis)
    stacked, busy = plots(page, "Steps over time")
    found = series(stacked)
    for at, category in enumerate(analysis.steps[0].host):
        if any(step.host[at].ns for step in analysis.steps):
            assert found[category.category].y == [step.host[at].ns for step in analysis.steps]
    assert [sum(heights) for heights in zip(*(each.y for each in found.values()), strict=True)] == [
        100,
        100,
        300,
        100,
    ]
    assert notes(stacked) == ["step 7: 300 ns"]
    assert stacked.notes[0].x == 2
    assert [text for _, text in stacked.x.ticks] == ["5", "6", "7", "8"]
    assert busy.series[0].y == [50.0] * 4
    assert "step 7 is the slowest, mostly by wait (+200 ns over the median step)" in words(page, "Over time")[-1]


@pytest.mark.parametrize(
    ("longest", "said"),
    [
        ((20, 180, 0), "step 3 is the slowest, mostly by wait (+80 ns over the median step)"),
        ((90, 110, 70), "step 3 is the slowest, led by dispatcher (+80 ns over the median step)"),
        ((10, 100, 0), ""),
    ],
)
def test_most_of_what_a_step_takes_longer_is_more_than_half_of_it(longest: tuple[int, int, int], said: str) -> None:
    """Nanoseconds of an operator, a wait and Python of a step; the two before have 10 + 100."""
    entries, start = [], 0
    for number, (work, wait, python) in enumerate([(10, 100, 0), (10, 100, 0), longest], 1):
        entries.append(timed(start, work + wait + python, f"ProfilerStep#{number}", "user_annotation"))
        entries.append(timed(start, work, "aten::mm"))
        entries.append(timed(start + work, wait, "cudaDeviceSynchronize", "cuda_runtime", correlation=number))
        start += work + wait + python
    told = words(trace_outline(analyzer_of(*entries).analysis()), "Over time")[-1]
    assert told.partition("; ")[2] == said


def test_many_steps_are_means_of_groups_with_the_longest_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "_MOST_BARS", 2)
    page = trace_outline(steps(100, 200, 100, 400))
    stacked, _ = plots(page, "Steps over time")
    found = series(stacked)
    assert found.pop("longest step").y == [200, 400]
    assert [sum(heights) for heights in zip(*(each.y for each in found.values()), strict=True)] == [150, 250]
    assert stacked.notes[0].x == 1
    assert "A bar is the mean of 2 steps in a row; the open circle is the longest of them." in words(
        page, "Steps over time"
    )


def test_busy_and_idle_of_a_device_fill_its_span() -> None:
    analysis = steps(100, 100)
    page = trace_outline(analysis)
    (device,) = analysis.devices
    heading = f"Device 0: 2 events, span {device.span_ns} ns"
    found = pieces(page, heading)
    assert sum(found.values()) == device.span_ns
    assert found == {"compute": device.busy_ns, **{f"idle: {name}": ns for name, ns in device.idle_blame.items() if ns}}
    (amounts,) = rows(page, heading)
    assert amounts[1][:3] == ["busy", f"{device.busy_ns / device.span_ns:.1%}", f"{device.busy_ns} ns"]
    launches, _ = rows(page, "Launches: latencies and steps")
    assert launches[1][:3] == ["0", "2", "8 ns"]


def test_kinds_of_work_that_overlap_are_cut_into_pieces_that_sum_to_busy() -> None:
    entries = [
        timed(0, 100, "gemm", "kernel", (0, 7), device=0, stream=7),
        timed(60, 80, "ncclDevKernel", "kernel", (0, 8), device=0, stream=8),
        timed(130, 30, "Memcpy", "gpu_memcpy", (0, 9), device=0, stream=9),
    ]
    page = trace_outline(analyzer_of(*entries).analysis())
    heading = "Device 0: 3 events, span 160 ns"
    assert pieces(page, heading) == {"compute": 60, "communication": 40, "both at once": 40, "copy": 20}
    assert [row[0::3] for row in rows(page, heading)[0][2:6]] == [
        *(["compute", "60 ns without communication"], ["communication", "40 ns without compute"]),
        *(["copy", "20 ns of it alone"], ["both at once", ""]),
    ]


def pieces(page: Outline, heading: str) -> dict[str, float]:
    """Sizes of the pieces of the only bar below a heading."""
    (bars,) = [block for block in section(page, heading).blocks if isinstance(block, Bars)]
    return {piece.look: piece.size for bar in bars.bars for piece in bar.pieces}


def test_host_figures_and_what_was_counted() -> None:
    analysis = replace(steps(100, 100), issues={"negative_duration": 3}, notes=("a note",))
    page = trace_outline(analysis)
    assert [row[:3] for row in rows(page, "Host: thread 10, sum = window")[0][1:]] == [
        *(["dispatcher", "6.0%", "12 ns"], ["dispatch", "6.0%", "12 ns"], ["launch", "4.0%", "8 ns"]),
        *(["wait", "90.0%", "180 ns"], ["device", "90.0%", "180 ns"], ["sum = window", "100 %", "200 ns"]),
    ]
    assert page.warnings == ["events had a negative duration and were taken as 0 ns long (3)", "a note"]
    assert rows(page, "What was dropped, repaired or is uncertain")[0][1:] == [["negative duration", "3"]]


def test_what_to_try_comes_first_then_the_picture_and_the_budgets() -> None:
    page = trace_outline(steps(100, 100, 300, 100))
    unfolded = [each.heading for each in page.sections if each.is_open]
    assert unfolded == [
        *("What to try, each saves at most (not to be added up)", "Over time"),
        *("Device 0: 4 events, span 550 ns", "Host: thread 10, sum = window"),
    ]
    assert [heading for heading in headings(page) if heading in unfolded] == unfolded
    assert len(section(page, unfolded[0]).blocks) <= 3


def test_the_picture_over_time_is_the_budget_in_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_time, "MOST_BUCKETS", 4)
    (lanes, _) = blocks(trace_outline(steps(100, 100, 100, 100)), "Over time")
    assert isinstance(lanes, Lanes)
    (thread, host), (device, kinds) = lanes.lanes
    assert (thread, {area.name: area.ns for area in host}) == (
        "thread 10",
        {"dispatcher": (6,) * 4, "launch": (4,) * 4, "wait": (90,) * 4},
    )
    assert (device, {area.name: area.ns for area in kinds if not area.name.startswith("idle")}) == (
        "device 0",
        {"compute": (50,) * 4},
    )
    assert (lanes.lengths_ns, lanes.marks) == ([100] * 4, [(at / 4, f"step {at + 5}") for at in range(4)])
    assert [area.tooltip for area in host] == [
        "dispatcher 24 ns (6.0% of the window)",
        "launch 16 ns (4.0% of the window)",
        "wait 360 ns (90.0% of the window)",
    ]


def test_where_the_picture_begins_is_said_if_memory_and_counters_begin_earlier() -> None:
    recording = timed(0, 1_500, "PyTorch Profiler (0)", "Trace", ("Spans", "PyTorch Profiler"))
    work = timed(1_000, 500, "aten::mm")
    page = trace_outline(analyzer_of(recording, work, memory(1_200, 8, 1)).analysis())
    (lanes, _) = blocks(page, "Over time")
    assert isinstance(lanes, Lanes)
    assert lanes.ticks == ["0", "125 ns", "250 ns", "375 ns", "500 ns"]
    assert "Memory of cuda:0: peak 8 B live at 1.20 µs" in "".join(headings(page))
    said = ["The picture begins 1.00 µs after the file's first event, from which times of memory and counters count."]
    assert words(page, "Over time") == said
    assert words(trace_outline(analyzer_of(recording, work).analysis()), "Over time") == []


def test_areas_stand_on_one_another_as_high_as_their_share() -> None:
    areas = [Area("a", "#111111", (1, 1, 0), "a 2 ns"), Area("b", "#222222", (1, 1, 2), "b 4 ns")]
    text = lanes_svg(Lanes([("lane", areas)], (2, 2, 4), ("0", "8 ns"), [(0.5, "step 1")], "all"))
    assert re.findall('fill="(.*?)" d="(.*?)"', text) == [
        ("#111111", "M0 120h2v-60h-2z"),
        ("#222222", "M0 60h2v-60h-2zM2 120h1v-60h-1z"),
    ]
    assert '<line x1="1.50" x2="1.50"' in text


def test_a_trace_of_nothing() -> None:
    page = trace_outline(analyzer_of().analysis())
    assert (headings(page), page.sentence) == ([], "The trace holds neither host nor device work.")


def test_ranks_side_by_side_and_the_slowest_in_detail() -> None:
    job = Job.of(
        [
            rank(0, 100, [50, 30], python_ns=20),
            rank(1, 140, [10, 30], python_ns=90),
            TraceFailure("bad.json", "cut off"),
        ]
    )
    page = job_outline(job)
    assert page.title == "2 traces"
    assert page.sentence.startswith("Rank 1 is the slowest of 2 ranks: the others wait for it in collectives")
    hosts, collectives = [block for block in section(page, "Ranks").blocks if isinstance(block, Bars)]
    assert [bar.name for bar in hosts.bars] == ["rank 0", "rank 1 (slowest)"]
    assert [[piece.size for piece in bar.pieces] for bar in collectives.bars] == [[40, 40], [40, 0]]
    assert {bar.full for bar in collectives.bars} == {80}
    assert "Rank 1: Device 0: 3 events, span 180 ns" in headings(page)
    assert words(page, "Traces that could not be read") == ["bad.json: cut off"]


def test_a_trace_that_does_not_say_its_rank_is_called_by_its_path() -> None:
    first = replace(rank(None, 100, [50, 30], python_ns=20), path="a.json")
    second = replace(rank(None, 140, [10, 30], python_ns=90), path="b.json")
    page = job_outline(Job.of([first, second]))
    for bars in (block for block in section(page, "Ranks").blocks if isinstance(block, Bars)):
        assert [bar.name for bar in bars.bars] == ["a.json", "b.json (slowest)"]


@pytest.mark.parametrize(
    ("collective_ns", "fastest"),
    [(lambda number: [number + 10], 69), (lambda _: [], 0)],
)
def test_of_many_ranks_the_slow_ones_and_the_fastest_are_shown(
    collective_ns: Callable[[int], list[int]], fastest: int
) -> None:
    # With collectives the one that the others wait for is the slowest, without the one with the longest window.
    slowest = 69 - fastest
    page = job_outline(Job.of([rank(number, 100 + number, collective_ns(number)) for number in range(70)]))
    table = next(block for block in section(page, "Ranks").blocks if isinstance(block, Table))
    assert {row.cells[0].text for row in table.rows} >= {str(slowest), str(fastest)}
    (*brief, more) = [row.cells[0].text for row in table.shown(whole=False).rows]
    assert ({*brief} >= {str(slowest), str(fastest)}, len(brief), more) == (True, 16, "48 more in between")
    assert "6 ranks in between are left out; --json has them." in words(page, "Ranks")


def test_what_changed_between_two_traces() -> None:
    """Red is longer."""
    page = structure_outline(compared(mm(3), mm(3, kernel="B", kernel_ns=20)))
    assert page.sentence.startswith("step 1.00 µs → 1.00 µs (1.00x)")
    heading = "Device 0: self time per step, which sums to +0 ns"
    (table,) = [block for block in section(page, heading).blocks if isinstance(block, Table)]
    assert [(row.cells[0].look, row.cells[1].length, row.cells[4].text) for row in table.rows[:3]] == [
        ("longer", Length(1 / 3, 1.0, 1 / 3, 1 / 3), "B"),
        ("shorter", Length(0.0, 1 / 3, 1 / 3, 1 / 3), "(idle)"),
        ("shorter", Length(0.0, 1 / 3, 1 / 3, 1 / 3), "A"),
    ]
    assert rows(page, heading)[0][1] == ["+40 ns", "0 ns", "40 ns", "B"]
    kernels = rows(page, "kernel: other counts, largest change of time first")[0]
    assert kernels[1] == ["0 → 2", "appeared", "B"]
    assert rows(page, "Other kernels under the same operator per step")[0][1:] == [
        *(["aten::mm", "-", "2x 20 ns", "A"], ["", "+", "2x 40 ns", "B"]),
    ]
