"""Steps over time: those of a run as points by phase, the slowest marked; those of a trace as stacked bars."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from overhead_lens.program.area import Phase
from overhead_lens.report.page.charts.axes import (
    FRAME,
    INKS,
    error_bars,
    hatched,
    label,
    log_time_axis,
    rounded,
    time_unit,
)
from overhead_lens.report.page.model import Block, Chart, Text
from overhead_lens.stats.values import Ints
from overhead_lens.studies.run.analysis import StepTimes, StepWall
from overhead_lens.studies.run.slowest import Slow
from overhead_lens.taxonomy.categories import CATEGORIES
from overhead_lens.traces.budgets import TraceStep
from overhead_lens.units import format_ns

_MOST_POINTS = 1_500
_MOST_BARS = 250
_MOST_TICKS = 10
_MOST_DEVICES = 8
_LOGARITHMIC = 15
_PHASES = {
    Phase.WARM_UP: ("warm-up", "#999999", "circle-open"),
    Phase.BARE: ("bare", "#4477aa", "circle"),
    Phase.ATTACHING: ("attaching", "#ccbb44", "x"),
    Phase.SAMPLED: ("sampled", "#228833", "diamond"),
    Phase.TRACED: ("traced", "#aa3377", "square"),
}


def run_steps(times: StepTimes, wall: StepWall, slowest: Sequence[Slow]) -> list[Block]:
    """The steps of a run one by one, or many steps in groups of the same phase."""
    size = max(1, -(-len(times.ns) // _MOST_POINTS))
    unit_ns, unit = time_unit(float(times.ns.max()))
    is_log = times.ns.max() > _LOGARITHMIC * max(1.0, float(np.median(times.ns)))
    data = [trace for phase in _PHASES if (trace := _points(times, phase, size, 1 if is_log else unit_ns))]
    data.append(_mean(times, wall, 1 if is_log else unit_ns))
    data += [_slowest(slowest, 1 if is_log else unit_ns)] if slowest else []
    layout = {
        **FRAME,
        "xaxis": {"title": {"text": "step"}, "rangemode": "nonnegative"},
        "yaxis": log_time_axis(times.ns.tolist()) if is_log else {"title": {"text": unit}, "rangemode": "tozero"},
        "annotations": [_because(slow, times, unit_ns, is_log=is_log) for slow in slowest[:1]],
    }
    mean_text = f"the dotted line is their mean while nothing watched, {format_ns(wall.ns)}"
    described = f"The time of {len(times.ns):,} steps by phase; {mean_text}."
    chart = Chart({"data": data, "layout": layout}, described, 320)
    if size == 1:
        return [chart]
    return [
        chart,
        Text([f"A point is the median of {size:,} steps in a row; its line reaches from the least to the most."]),
    ]


def _points(times: StepTimes, phase: Phase, size: int, unit_ns: int) -> dict[str, Any] | None:
    """The steps of a phase: a point each, or one for ``size`` of them."""
    rows = np.flatnonzero(times.phase == phase)
    if not len(rows):
        return None
    name, color, symbol = _PHASES[phase]
    groups = list(_groups(rows, size))
    middles = [float(np.median(times.ns[group])) for group in groups]
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [int(group[0]) + times.first for group in groups],
        "y": [rounded(ns / unit_ns) for ns in middles],
        "marker": {"color": color, "symbol": symbol, "size": 5},
        "hovertemplate": "step %{x:,}: %{customdata}",
        "customdata": [format_ns(ns) for ns in middles],
    }
    if size == 1:
        return trace
    ends = [(int(times.ns[group].min()), int(times.ns[group].max())) for group in groups]
    return {**trace, "error_y": {**error_bars(middles, ends, unit_ns), "width": 0}}


def _groups(rows: Ints, size: int) -> Iterator[Ints]:
    """Rows that follow one another, at most ``size`` of them at a time."""
    for stretch in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1):
        for start in range(0, len(stretch), size):
            yield stretch[start : start + size]


def _mean(times: StepTimes, wall: StepWall, unit_ns: int) -> dict[str, Any]:
    height = rounded(wall.ns / unit_ns)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "mean, bare",
        "x": [times.first, times.first + len(times.ns) - 1],
        "y": [height, height],
        "line": {"color": "#4477aa", "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
    }


def _slowest(slowest: Sequence[Slow], unit_ns: int) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "slowest",
        "x": [slow.step for slow in slowest],
        "y": [rounded(slow.wall_ns / unit_ns) for slow in slowest],
        "marker": {"color": "#e45756", "symbol": "circle-open", "size": 12, "line": {"width": 2}},
        "customdata": [f"{format_ns(slow.wall_ns)}: {label(slow.because, 80)}" for slow in slowest],
        "hovertemplate": "step %{x:,}: %{customdata}",
    }


def _because(slow: Slow, times: StepTimes, unit_ns: int, *, is_log: bool) -> dict[str, Any]:
    """The cause of a slow step, beside its point, on the side with room."""
    is_left = slow.step - times.first < len(times.ns) / 2
    return {
        "x": slow.step,
        "y": math.log10(slow.wall_ns) if is_log else rounded(slow.wall_ns / unit_ns),
        "text": f"{slow.step:,}: {label(slow.because, 30)}",
        "font": {"size": 11},
        "xanchor": "left" if is_left else "right",
        "ax": 14 if is_left else -14,
        "ay": 0,
        "arrowwidth": 1,
        "arrowcolor": "#e45756",
        "arrowhead": 0,
    }


def trace_steps(steps: Sequence[TraceStep]) -> list[Block]:
    """The budget of every step of a trace, stacked; many steps are grouped."""
    size = max(1, -(-len(steps) // _MOST_BARS))
    groups = [steps[start : start + size] for start in range(0, len(steps), size)]
    unit_ns, unit = time_unit(max(step.window.wall_ns for step in steps))
    data = [_stacked(groups, at, unit_ns) for at in range(len(CATEGORIES)) if any(step.host[at].ns for step in steps)]
    slowest = max(range(len(steps)), key=lambda at: steps[at].window.wall_ns)
    if size > 1:
        data.append(_longest(groups, unit_ns))
    layout = {
        **FRAME,
        "barmode": "stack",
        "bargap": 0.15 if size == 1 else 0,
        "xaxis": _step_axis(groups),
        "yaxis": {"title": {"text": unit}},
        "annotations": _slowest_bar(steps, slowest, size, unit_ns),
    }
    described = (
        f"{len(steps):,} steps with the categories of the busiest thread; step {steps[slowest].step:,} is the slowest."
    )
    chart = Chart({"data": data, "layout": layout}, described, 320)
    if size == 1:
        return [chart]
    return [chart, Text([f"A bar is the mean of {size:,} steps in a row; the open circle is the longest of them."])]


def _stacked(groups: Sequence[Sequence[TraceStep]], at: int, unit_ns: int) -> dict[str, Any]:
    category = CATEGORIES[at]
    means = [sum(step.host[at].ns for step in group) / len(group) for group in groups]
    return {
        "type": "bar",
        "name": category.name,
        "x": list(range(len(groups))),
        "y": [rounded(ns / unit_ns) for ns in means],
        "marker": {"color": category.ink, "pattern": hatched(category.ink, category.hatch), "line": {"width": 0}},
        "customdata": [
            f"{_numbers(group)}: {category.name} {format_ns(ns)}" for group, ns in zip(groups, means, strict=True)
        ],
        "hovertemplate": "%{customdata}",
    }


def _numbers(group: Sequence[TraceStep]) -> str:
    first, last = group[0].step, group[-1].step
    return f"step {first:,}" if len(group) == 1 else f"steps {first:,} to {last:,}, mean"


def _longest(groups: Sequence[Sequence[TraceStep]], unit_ns: int) -> dict[str, Any]:
    steps = [max(group, key=lambda step: step.window.wall_ns) for group in groups]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "longest step",
        "x": list(range(len(groups))),
        "y": [rounded(step.window.wall_ns / unit_ns) for step in steps],
        "marker": {"color": "#808080", "symbol": "circle-open", "size": 5},
        "customdata": [f"step {step.step:,}: {format_ns(step.window.wall_ns)}" for step in steps],
        "hovertemplate": "%{customdata}",
    }


def _slowest_bar(steps: Sequence[TraceStep], slowest: int, size: int, unit_ns: int) -> list[dict[str, Any]]:
    if len(steps) == 1:
        return []
    wall_ns, is_left = steps[slowest].window.wall_ns, slowest < len(steps) / 2
    return [
        {
            "x": slowest // size,
            "y": rounded(wall_ns / unit_ns),
            "text": f"step {steps[slowest].step:,}: {format_ns(wall_ns)}",
            "font": {"size": 11},
            "xanchor": "left" if is_left else "right",
            "ax": 14 if is_left else -14,
            "ay": -14,
            "arrowwidth": 1,
            "arrowcolor": "#e45756",
            "arrowhead": 0,
        }
    ]


def busy_steps(steps: Sequence[TraceStep]) -> list[Block]:
    """Busy share of each device per step (at least one step); empty without devices, or for a single step."""
    size = max(1, -(-len(steps) // _MOST_BARS))
    groups = [steps[start : start + size] for start in range(0, len(steps), size)]
    devices = [device.device for device in steps[0].devices]
    if not devices or len(steps) == 1:
        return []
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"device {label(device)}",
            "x": list(range(len(groups))),
            "y": [rounded(_busy_percent(group, at)) for group in groups],
            "line": {"color": INKS[at % len(INKS)], "width": 1.5, "shape": "hvh"},
            "hovertemplate": "%{y:.1f} %",
        }
        for at, device in enumerate(devices[:_MOST_DEVICES])
    ]
    layout = {
        **FRAME,
        "xaxis": _step_axis(groups),
        "yaxis": {"title": {"text": "device busy"}, "ticksuffix": " %", "range": [0, 103]},
        "showlegend": len(data) > 1,
    }
    described = f"The share of each of {len(steps):,} steps in which the devices were busy."
    return [Chart({"data": data, "layout": layout}, described, 180)]


def _busy_percent(group: Sequence[TraceStep], at: int) -> float:
    spans_ns = sum(step.devices[at].span_ns for step in group)
    return 100 * sum(step.devices[at].busy_ns for step in group) / max(1, spans_ns)


def _step_axis(groups: Sequence[Sequence[TraceStep]]) -> dict[str, Any]:
    ticks = range(0, len(groups), max(1, -(-len(groups) // _MOST_TICKS)))
    return {
        "title": {"text": "step"},
        "tickvals": list(ticks),
        "ticktext": [f"{groups[at][0].step:,}" for at in ticks],
        "range": [-0.6, len(groups) - 0.4],
    }
