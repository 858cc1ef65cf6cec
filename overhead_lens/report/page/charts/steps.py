"""Steps of a run over time, as points by phase, the slowest marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from overhead_lens.program.area import Phase
from overhead_lens.report.outline import Notes, Picture
from overhead_lens.report.page.charts.axes import linear_axis, log_axis, round_time, time_axis
from overhead_lens.report.page.model import Note, Plot, Series, Symbol
from overhead_lens.report.text.blocks import counted, cut
from overhead_lens.stats.values import Ints
from overhead_lens.studies.run.analysis import RunBudget, StepTimes
from overhead_lens.studies.run.slowest import Slow
from overhead_lens.units import format_ns

_MOST_POINTS = 1_500
_LOGARITHMIC = 15
_PHASES: dict[Phase, tuple[str, str, Symbol]] = {
    Phase.WARM_UP: ("warm-up", "#999999", "circle"),
    Phase.BARE: ("bare", "#4477aa", "circle"),
    Phase.ATTACHING: ("attaching", "#ccbb44", "x"),
    Phase.SAMPLED: ("sampled", "#228833", "diamond"),
    Phase.TRACED: ("traced", "#aa3377", "square"),
    Phase.AFTERWARDS: ("afterwards", "#66ccee", "x"),
}


def run_steps(run: RunBudget, times: StepTimes) -> list[Picture]:
    """The steps of a run one by one, or many steps in groups of the same phase."""
    slowest, wall_ns = run.slowest, run.wall.ns
    size = max(1, -(-len(times.ns) // _MOST_POINTS))
    is_log = times.ns.max() > _LOGARITHMIC * max(1.0, float(np.median(times.ns)))
    series = [points for phase in _PHASES if (points := _points(times, phase, size))]
    last = times.first + len(times.ns) - 1
    mean = "mean, bare" if run.steps.measured else "mean"
    series.append(Series(mean, "#4477aa", [times.first, last], [wall_ns] * 2, "line", is_dashed=True))
    series += [_slowest(slowest)] if slowest else []
    room = 0.02 * len(times.ns)
    numbers = linear_axis(times.first - room, last + room, "{:,.0f}".format, "step")
    plot = Plot(
        series,
        replace(numbers, ticks=[(at, text) for at, text in numbers.ticks if at == round(at)]),
        log_axis(times.ns.tolist(), round_time) if is_log else time_axis(times.ns.tolist()),
        f"The time of {counted(len(times.ns), 'step')} by phase; "
        f"the dashed line is the mean of {run.steps.wall_of}, {format_ns(wall_ns)}.",
        notes=[Note(slow.step, slow.wall_ns, f"{slow.step:,}: {cut(slow.because, 30)}") for slow in slowest[:1]],
    )
    if size == 1:
        return [plot]
    legend = f"A point is the median of {size:,} steps in a row; its line reaches from the least to the most."
    return [plot, Notes([legend])]


def _points(times: StepTimes, phase: Phase, size: int) -> Series | None:
    """The steps of a phase: a point each, or one for ``size`` of them."""
    rows = np.flatnonzero(times.phase == phase)
    if not len(rows):
        return None
    name, ink, symbol = _PHASES[phase]
    groups = list(_groups(rows, size))
    numbers = [int(group[0]) + times.first for group in groups]
    middles = [float(np.median(times.ns[group])) for group in groups]
    tooltips = [_tooltip(number, len(group), ns) for number, group, ns in zip(numbers, groups, middles, strict=True)]
    ends = [(int(times.ns[group].min()), int(times.ns[group].max())) for group in groups] if size > 1 else []
    return Series(name, ink, numbers, middles, tooltips=tooltips, ends=ends, symbol=symbol)


def _tooltip(first: int, count: int, ns: float) -> str:
    of = f"step {first:,}" if count == 1 else f"steps {first:,} to {first + count - 1:,}, median"
    return f"{of}: {format_ns(ns)}"


def _groups(rows: Ints, size: int) -> Iterator[Ints]:
    """Rows that follow one another, at most ``size`` of them at a time."""
    for stretch in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1):
        for start in range(0, len(stretch), size):
            yield stretch[start : start + size]


def _slowest(slowest: Sequence[Slow]) -> Series:
    tooltips = [f"step {slow.step:,}: {format_ns(slow.wall_ns)}: {cut(slow.because, 80)}" for slow in slowest]
    numbers, walls = [slow.step for slow in slowest], [slow.wall_ns for slow in slowest]
    return Series("slowest", "#e45756", numbers, walls, tooltips=tooltips, symbol="ring")
