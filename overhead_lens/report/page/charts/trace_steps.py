"""Steps of a trace over time: stacked bars of the busiest thread's categories, and how busy the devices are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from overhead_lens.report.outline import Notes, Picture
from overhead_lens.report.page.charts.axes import FRAME, INKS, hatched, label, rounded, time_unit
from overhead_lens.report.page.model import Chart
from overhead_lens.taxonomy.categories import CATEGORIES
from overhead_lens.traces.budgets import TraceStep
from overhead_lens.units import format_ns

_MOST_BARS = 250
_MOST_TICKS = 10
_MOST_DEVICES = 8


def trace_steps(steps: Sequence[TraceStep]) -> list[Picture]:
    """The budget of every step of a trace, stacked; groups of steps in a row where they are many."""
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
    return [chart, Notes([f"A bar is the mean of {size:,} steps in a row; the open circle is the longest of them."])]


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


def busy_steps(steps: Sequence[TraceStep]) -> list[Picture]:
    """How busy each device is in every step, at least one; nothing without devices."""
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
