"""A history of captures: for each series its levels and where they changed, in words and as a picture; what was skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from overhead_lens.report.cells import bounds, heads, row, text
from overhead_lens.report.outline import Block, Cell, Column, Drawing, Notes, Outline, Section, Table
from overhead_lens.report.page import model
from overhead_lens.report.page.charts.axes import SYMBOLS, numbered_axis, time_axis
from overhead_lens.report.text.blocks import counted, cut, left_out
from overhead_lens.stats.change_points import ALPHA, LEAST_CAPTURES, Level
from overhead_lens.studies.history.analysis import SERIES, WALL, History, HistoryChange, Segment, Series
from overhead_lens.taxonomy.categories import INKS
from overhead_lens.units import format_ns

_BARS = "▁▂▃▄▅▆▇█"
_TREND_WIDTH = 24
_MOST_STRETCHES, _MOST_SERIES, _MOST_SKIPPED, _BRIEF_SKIPPED = 4, 40, 50, 5

MOST_POINTS = 400
_MOST_TICKS = 12
_INKS = {WALL: "#808080", **INKS}

_ERROR_RATE = (
    f"Where nothing changed, at most {ALPHA:.0%} of histories have a change point; one needs {LEAST_CAPTURES} captures "
    "on either side."
)


def history_outline(history: History) -> Outline:
    """The outline."""
    shown = history.series[:_MOST_SERIES]
    return Outline(
        f"{counted(history.capture_count, 'capture')} below {history.directory}",
        _answer(history),
        Section.filled(
            *(_section(series, is_first=at == 0) for at, series in enumerate(shown)),
            Section("Further series", [Notes(left_out(len(history.series) - len(shown), "further series"))]),
            _skipped(history),
            Section("What a change point is worth", [Notes([_ERROR_RATE], tone="dim")], is_open=False),
        ),
        warnings=history.warnings,
    )


def _answer(history: History) -> str:
    """The change that is the latest, and how many there are."""
    segments = [(series, segment) for series in history.series for segment in series.segments]
    changes = [(change, series) for series, segment in segments for change in segment.changes]
    if not changes:
        return f"No change point in {len(history.series)} series of captures."
    change, series = max(changes, key=lambda pair: pair[0].likely.started)
    others = f" It is the latest of {len(changes)} changes." if len(changes) > 1 else ""
    return f"{series.title}: {change.sentence}.{others}"


def _section(series: Series, *, is_first: bool) -> Section:
    blocks: list[Block] = []
    if len(series.segments) > 1:
        apart = f"{len(series.segments)} segments, not compared with one another"
        blocks.append(Notes([f"{apart}: they differ in {', '.join(series.differing)}"], tone="warning"))
    for segment in series.segments:
        blocks += _segment(segment, series.differing)
    is_open = is_first or any(segment.changes for segment in series.segments)
    return Section(series.title, blocks, "everywhere" if is_first else "report", is_open)


def _segment(segment: Segment, differing: Sequence[str]) -> Iterator[Block]:
    first, last = segment.points[0], segment.points[-1]
    where = ", ".join(f"{name} {segment.environment[name]}" for name in differing)
    span = f"{first.started:%Y-%m-%d %H:%M} to {last.started:%Y-%m-%d %H:%M}, {first.name} to {last.name}"
    yield Notes([f"{where + ': ' if where else ''}{counted(len(segment.points), 'capture')}, {span}"])
    yield Drawing(lambda _: [captures_chart(segment)])
    yield from _changes(segment.changes)
    yield _levels(segment)


def _changes(changes: Sequence[HistoryChange]) -> Iterator[Block]:
    if not changes:
        yield Notes(["no change point"])
        return
    rows = []
    for number, change in enumerate(changes, 1):
        figures = (f"{change.p_value:.2g}", f"{change.reference_share:+.1%}")
        rows.append(row(str(number), text(change.sentence, tone="bold"), change.found_in, *figures))
    yield Table(heads("> | what changed! | found in ~1 | >p ~2 | >reference loop ~3"), rows)
    yield Notes([f"{number}: {each.warning}" for number, each in enumerate(changes, 1) if each.warning], "warning")


def _levels(segment: Segment) -> Table:
    """The level of each series between changes: the first and the last of many segments."""
    stretches = segment.between_changes
    few = len(stretches) <= _MOST_STRETCHES
    shown = range(len(stretches)) if few else [0, *range(1 - _MOST_STRETCHES, 0)]
    columns = heads("category | trend ~1")
    for at in shown:
        columns += [Column(f"from {stretches[at][0].name} ({len(stretches[at])})"), *heads("95 % ~2")]
    rows = []
    for name, levels in segment.levels.items():
        label = text(name, tone="bold") if name == WALL else text(name, name)
        trend = _trend([point.ns[name] for point in segment.points])
        rows.append(row(label, trend, *(cell for at in shown for cell in _level(levels[at]))))
    caption = "levels between changes, per call"
    more = f"; the chart shows the last {MOST_POINTS} captures" if len(segment.points) > MOST_POINTS else ""
    return Table(columns, rows, f"{caption}{more}")


def _level(level: Level) -> tuple[Cell, Cell]:
    low, high = level.ci95
    return text(format_ns(level.value)), bounds((max(low, 0.0), high))


def _trend(values: Sequence[float]) -> str:
    """Values as bars from the least to the largest; many of them by the median of each of ``_TREND_WIDTH`` groups."""
    width = min(len(values), _TREND_WIDTH)
    groups = [sorted(values[at * len(values) // width : (at + 1) * len(values) // width]) for at in range(width)]
    middles = [group[len(group) // 2] for group in groups]
    low, high = min(middles), max(middles)
    if low == high:
        return _BARS[0] * width
    return "".join(_BARS[round((middle - low) / (high - low) * (len(_BARS) - 1))] for middle in middles)


def _skipped(history: History) -> Section | None:
    if not history.skipped:
        return None
    counts = Counter(skipped.kind for skipped in history.skipped)
    total = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    rows = [row(skipped.kind, skipped.path, skipped.reason) for skipped in history.skipped[:_MOST_SKIPPED]]
    notes = Notes(left_out(len(history.skipped) - _MOST_SKIPPED, "row"))
    table = Table(heads("skipped | directory | why"), rows, brief=_BRIEF_SKIPPED)
    return Section(f"Skipped: {total}", [table, notes], is_open=False)


def captures_chart(segment: Segment) -> model.Plot:
    """The last captures as points with intervals, levels as lines, changes as upright lines with their number."""
    first = max(0, len(segment.points) - MOST_POINTS)
    points = segment.points[first:]
    many = "no change" if not segment.changes else f"{counted(len(segment.changes), 'change')}, marked by upright lines"
    return model.Plot(
        [series for name in segment.levels for series in _series(segment, name, first)],
        numbered_axis([cut(point.name, 18) for point in points], _MOST_TICKS),
        time_axis((ns for point in points for name in segment.levels for ns in point.ci95_ns[name]), "per call"),
        f"Time per call of {counted(len(points), 'capture')}, by category; {many}.",
        height_px=360,
        uprights=[
            _upright(segment, number, change, first)
            for number, change in enumerate(segment.changes, 1)
            if change.position > first
        ],
    )


def _series(segment: Segment, name: str, first: int) -> Iterator[model.Series]:
    """The levels of a category, and its captures above them, counted from the first that is drawn."""
    bounds = [0, *(change.position for change in segment.changes), len(segment.points)]
    places: list[float] = []
    heights: list[float | None] = []
    for level, start, end in zip(segment.levels[name], bounds, bounds[1:], strict=False):
        if end > first:
            places += [max(start - first, 0) - 0.5, end - first - 0.5, end - first - 0.5]
            heights += [level.value, level.value, None]
    yield model.Series("", _INKS[name], places, heights, "line")
    points = segment.points[first:]
    yield model.Series(
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


def _upright(segment: Segment, number: int, change: HistoryChange, first: int) -> model.Upright:
    before, after = segment.points.index(change.before), segment.points.index(change.after)
    return model.Upright(change.position - 0.5 - first, str(number), (before - first, after - first))
