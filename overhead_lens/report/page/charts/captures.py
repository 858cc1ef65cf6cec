"""Captures of a segment of a history as a picture: every category with its levels, and where they changed."""

from __future__ import annotations

from collections.abc import Iterator

from overhead_lens.report.page.charts.axes import SYMBOLS, numbered_axis, time_axis
from overhead_lens.report.page.model import Plot, Series, Upright
from overhead_lens.report.text.blocks import cut
from overhead_lens.studies.history.analysis import SERIES, WALL, HistoryChange, Segment
from overhead_lens.taxonomy.categories import INKS
from overhead_lens.units import format_ns

MOST_POINTS = 400
_MOST_TICKS = 12
_INKS = {WALL: "#808080", **INKS}


def captures_chart(segment: Segment) -> Plot:
    """The last captures as points with intervals, levels as lines, changes as upright lines with their number."""
    first = max(0, len(segment.points) - MOST_POINTS)
    points = segment.points[first:]
    many = "no change" if not segment.changes else f"{len(segment.changes)} changes, marked by upright lines"
    return Plot(
        [series for name in segment.levels for series in _series(segment, name, first)],
        numbered_axis([cut(point.name, 18) for point in points], _MOST_TICKS),
        time_axis((ns for point in points for name in segment.levels for ns in point.ci95_ns[name]), "per call"),
        f"Time per call of {len(points)} captures, by category; {many}.",
        height_px=360,
        uprights=[
            _upright(segment, number, change, first)
            for number, change in enumerate(segment.changes, 1)
            if change.position > first
        ],
    )


def _series(segment: Segment, name: str, first: int) -> Iterator[Series]:
    """The levels of a category, and its captures above them, counted from the first that is drawn."""
    bounds = [0, *(change.position for change in segment.changes), len(segment.points)]
    places: list[float] = []
    heights: list[float | None] = []
    for level, start, end in zip(segment.levels[name], bounds, bounds[1:], strict=False):
        if end > first:
            places += [max(start - first, 0) - 0.5, end - first - 0.5, end - first - 0.5]
            heights += [level.value, level.value, None]
    yield Series("", _INKS[name], places, heights, "line")
    points = segment.points[first:]
    yield Series(
        name,
        _INKS[name],
        range(len(points)),
        [point.ns[name] for point in points],
        tooltips=[
            f"{cut(point.name)}, {point.started:%Y-%m-%d %H:%M}: {name} {format_ns(point.ns[name])}" for point in points
        ],
        ends=[point.ci95_ns[name] for point in points],
        symbol=SYMBOLS[SERIES.index(name) % len(SYMBOLS)],
    )


def _upright(segment: Segment, number: int, change: HistoryChange, first: int) -> Upright:
    before, after = segment.points.index(change.before), segment.points.index(change.after)
    return Upright(change.position - 0.5 - first, str(number), (before - first, after - first))
