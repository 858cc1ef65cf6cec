"""Captures of a segment of a history as a picture: every category with its levels, and where they changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from overhead_lens.report.page.charts.axes import FRAME, SYMBOLS, error_bars, label, note, rounded, time_unit, upright
from overhead_lens.report.page.model import Chart
from overhead_lens.studies.history.analysis import SERIES, WALL, Segment
from overhead_lens.taxonomy.categories import INKS
from overhead_lens.units import format_ns

MOST_POINTS = 400
_MOST_TICKS = 12
_INKS = {WALL: "#808080", **INKS}


def captures_chart(segment: Segment) -> Chart:
    """Captures as points with intervals, levels as lines, changes as upright lines with their number."""
    unit_ns, unit = time_unit(max(max(point.ns.values()) for point in segment.points))
    shown = range(max(0, len(segment.points) - MOST_POINTS), len(segment.points))
    data = [trace for name in segment.levels for trace in _series(segment, name, shown, unit_ns)]
    ticks = shown[:: max(1, -(-len(shown) // _MOST_TICKS))]
    layout = {
        **FRAME,
        "xaxis": {
            "tickvals": list(ticks),
            "ticktext": [label(segment.points[at].name, 18) for at in ticks],
            "range": [shown.start - 0.6, shown.stop - 0.4],
            "tickangle": -30,
        },
        "yaxis": {"title": {"text": f"{unit} per call"}, "rangemode": "tozero"},
        **_marks(segment),
    }
    many = "no change" if not segment.changes else f"{len(segment.changes)} changes, marked by upright lines"
    described = f"Time per call of {len(shown)} captures, by category; {many}."
    return Chart({"data": data, "layout": layout}, described, 420)


def _series(segment: Segment, name: str, shown: range, unit_ns: int) -> Iterator[dict[str, Any]]:
    points = [segment.points[at] for at in shown]
    values, intervals = [point.ns[name] for point in points], [point.ci95_ns[name] for point in points]
    yield {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "legendgroup": name,
        "x": list(shown),
        "y": [rounded(value / unit_ns) for value in values],
        "error_y": error_bars(values, intervals, unit_ns),
        "marker": {"color": _INKS[name], "symbol": SYMBOLS[SERIES.index(name) % len(SYMBOLS)], "size": 6},
        "customdata": [
            f"{label(point.name)}, {point.started:%Y-%m-%d %H:%M}<br>{name} {format_ns(value)}"
            for point, value in zip(points, values, strict=True)
        ],
        "hovertemplate": "%{customdata}",
    }
    bounds = [0, *(change.position for change in segment.changes), len(segment.points)]
    places: list[float | None] = []
    heights: list[float | None] = []
    for level, start, end in zip(segment.levels[name], bounds, bounds[1:], strict=False):
        if end > shown.start:
            places += [max(start, shown.start) - 0.5, end - 0.5, None]
            heights += [rounded(level.value / unit_ns), rounded(level.value / unit_ns), None]
    yield {
        "type": "scatter",
        "mode": "lines",
        "legendgroup": name,
        "showlegend": False,
        "hoverinfo": "skip",
        "x": places,
        "y": heights,
        "line": {"color": _INKS[name], "width": 3 if name == WALL else 1.5},
    }


def _marks(segment: Segment) -> dict[str, Any]:
    """A numbered line at every change, over its 95 % confidence interval."""
    shapes, notes = [], []
    for number, change in enumerate(segment.changes, 1):
        before, after = segment.points.index(change.before), segment.points.index(change.after)
        stretch = {"x0": before, "x1": after, "y0": 0, "y1": 1, "yref": "paper"}
        shapes.append(
            {"type": "rect", **stretch, "fillcolor": "rgba(228,87,86,0.12)", "line": {"width": 0}, "layer": "below"}
        )
        shapes.append(upright(change.position - 0.5, "#e45756", "dash"))
        notes.append(note(f" {number}", change.position - 0.5, 1, xanchor="left", yanchor="top"))
    return {"shapes": shapes, "annotations": notes}
