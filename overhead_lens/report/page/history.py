"""The page of a history: for each segment the captures of every category with their levels, and where they changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from overhead_lens.report.page.charts.axes import FRAME, SYMBOLS, error_bars, label, note, rounded, time_unit, upright
from overhead_lens.report.page.model import Block, Chart, Page, Section, Table, Text
from overhead_lens.report.text.history import ERROR_RATE, apart, heading, level_cells
from overhead_lens.studies.history.analysis import SERIES, WALL, History, HistoryChange, Segment, Series
from overhead_lens.taxonomy.categories import INKS
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import format_ns

_MOST_POINTS = 400
_MOST_TICKS = 12
_MOST_CHARTS = 40
_MOST_STRETCHES = 12
_MOST_SKIPPED = 50
_INKS = {WALL: "#808080", **INKS}


def history_page(history: History, _classifier: Classifier) -> Page:
    """The page."""
    sections = [_section(series, at) for at, series in enumerate(history.series[:_MOST_CHARTS])]
    rest = len(history.series) - _MOST_CHARTS
    if rest > 0:
        told = f"{rest} further series are left out of this page; --json has them all."
        sections.append(Section("Further series", [Text([told])]))
    if history.skipped:
        sections.append(_skipped(history))
    if history.warnings:
        sections.append(Section("Warnings", [Text(history.warnings)]))
    title = f"{history.capture_count:,} captures below {history.directory}"
    return Page(title, _answer(history), [*sections, Section("Method", [Text([ERROR_RATE])], is_open=False)])


def _answer(history: History) -> str:
    """The change that is the latest, and how many there are."""
    segments = [(series, segment) for series in history.series for segment in series.segments]
    found = [(change, series) for series, segment in segments for change in segment.changes]
    if not found:
        return f"No change point in {len(history.series)} series of captures."
    change, series = max(found, key=lambda pair: pair[0].likely.started)
    others = f" It is the latest of {len(found)} changes." if len(found) > 1 else ""
    return f"{series.title}: {change.sentence}.{others}"


def _section(series: Series, at: int) -> Section:
    blocks: list[Block] = []
    if told := apart(series):
        blocks.append(Text([told]))
    for segment in series.segments:
        blocks += [Text([heading(segment, series.differing), *_folded(segment)]), _chart(segment), *_changes(segment)]
        heads, rows = level_cells(segment, _MOST_STRETCHES)
        blocks.append(Table(heads, rows, frozenset(range(1, len(heads))), "levels between changes, per call"))
    return Section(series.title, blocks, is_open=at == 0 or any(segment.changes for segment in series.segments))


def _folded(segment: Segment) -> list[str]:
    drawn = f"The chart shows the last {_MOST_POINTS} of them."
    return [drawn] if len(segment.points) > _MOST_POINTS else []


def _chart(segment: Segment) -> Chart:
    """Captures as points with intervals, levels as lines, changes as upright lines with their number."""
    unit_ns, unit = time_unit(max(max(point.ns.values()) for point in segment.points))
    shown = range(max(0, len(segment.points) - _MOST_POINTS), len(segment.points))
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
    """A line with its number at every change, over the stretch in which it lies with 95 % confidence."""
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


def _changes(segment: Segment) -> Iterator[Block]:
    if not segment.changes:
        yield Text(["no change point"])
        return
    heads = ("", "what changed", "found in", "p", "reference loop")
    rows = [_change(number, change) for number, change in enumerate(segment.changes, 1)]
    yield Table(heads, rows, frozenset({0, 3, 4}), "change points")
    if warned := [f"{number}: {change.warning}" for number, change in enumerate(segment.changes, 1) if change.warning]:
        yield Text(warned)


def _change(number: int, change: HistoryChange) -> Sequence[str]:
    return str(number), change.sentence, change.found_in, f"{change.p_value:.2g}", f"{change.reference_share:+.1%}"


def _skipped(history: History) -> Section:
    rows = [(skipped.kind, skipped.path, skipped.reason) for skipped in history.skipped[:_MOST_SKIPPED]]
    more = len(history.skipped) - _MOST_SKIPPED
    caption = f"{len(history.skipped)} directories" + (f", the first {_MOST_SKIPPED} of them" if more > 0 else "")
    return Section("Skipped", [Table(("", "directory", "why"), rows, caption=caption)], is_open=False)
