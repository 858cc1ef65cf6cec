"""Steps of a run over time, as points by phase, the slowest marked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from overhead_lens.program.area import Phase
from overhead_lens.report.outline import Notes, Picture
from overhead_lens.report.page.charts.axes import (
    FRAME,
    error_bars,
    label,
    log_time_axis,
    rounded,
    time_unit,
)
from overhead_lens.report.page.model import Chart
from overhead_lens.stats.values import Ints
from overhead_lens.studies.run.analysis import StepTimes, StepWall
from overhead_lens.studies.run.slowest import Slow
from overhead_lens.units import format_ns

_MOST_POINTS = 1_500
_LOGARITHMIC = 15
_PHASES = {
    Phase.WARM_UP: ("warm-up", "#999999", "circle-open"),
    Phase.BARE: ("bare", "#4477aa", "circle"),
    Phase.ATTACHING: ("attaching", "#ccbb44", "x"),
    Phase.SAMPLED: ("sampled", "#228833", "diamond"),
    Phase.TRACED: ("traced", "#aa3377", "square"),
}


def run_steps(times: StepTimes, wall: StepWall, slowest: Sequence[Slow]) -> list[Picture]:
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
        Notes([f"A point is the median of {size:,} steps in a row; its line reaches from the least to the most."]),
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
