"""The terminal report of a history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, interval_text
from overhead_lens.report.text.plain import plain
from overhead_lens.stats.change_points import ALPHA, LEAST_CAPTURES, Level
from overhead_lens.studies.history.analysis import History, Segment, Series
from overhead_lens.taxonomy.categories import COLORS
from overhead_lens.units import format_ns

_BARS = "▁▂▃▄▅▆▇█"
_TREND_WIDTH = 24
# More stretches than these do not fit beside each other.
_MOST_STRETCHES = 4
_MOST_SKIPPED = 5
_LONGEST = 200

ERROR_RATE = (
    f"Where nothing changed, at most {ALPHA:.0%} of histories have a change point; one needs {LEAST_CAPTURES} captures "
    "on either side."
)
"""What a change point is worth."""


def print_history(console: Console, history: History) -> None:
    """Print every series: trend and levels per category, change points, what was skipped."""
    console.print(Text(f"{history.capture_count:,} captures below {_name(history.directory)}", style="bold"))
    for series in history.series:
        console.print()
        _print_series(console, series)
    console.print()
    console.print(Text(ERROR_RATE, style="dim"))
    _print_skipped(console, history)
    for warning in history.warnings:
        console.print(Text(f"warning: {_name(warning)}", style="yellow"))


def _print_series(console: Console, series: Series) -> None:
    console.print(Text(_name(series.title), style="bold"))
    if note := apart(series):
        console.print(Text(note, style="yellow"))
    for segment in series.segments:
        console.print(Text(heading(segment, series.differing)))
        console.print(_levels(segment))
        for change in segment.changes:
            console.print(Text(_name(change.sentence), style="bold"))
            if change.warning:
                console.print(Text(f"warning: {change.warning}", style="yellow"))
        if not segment.changes:
            console.print(Text("no change point"))


def apart(series: Series) -> str:
    """Why the captures of a series are not all compared; empty where they are."""
    if len(series.segments) == 1:
        return ""
    note = f"{len(series.segments)} segments, not compared with one another: they differ in"
    return f"{note} {', '.join(series.differing)}"


def heading(segment: Segment, differing: Sequence[str]) -> str:
    """Number, time and names of a segment's captures, and what sets it apart."""
    first, last = segment.points[0], segment.points[-1]
    where = ", ".join(f"{name} {segment.environment[name]}" for name in differing)
    span = f"{first.started:%Y-%m-%d %H:%M} to {last.started:%Y-%m-%d %H:%M}, {first.name} to {last.name}"
    return _name(f"{where + ': ' if where else ''}{len(segment.points)} captures, {span}")


def _levels(segment: Segment) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("category", no_wrap=True)
    table.add_column("trend", no_wrap=True)
    (_, *heads), rows = level_cells(segment)
    for head in heads:
        table.add_column(Text(head), justify="right")
    for name, *levels in rows:
        trend = _trend([point.ns[name] for point in segment.points])
        table.add_row(Text(name, style=COLORS.get(name, "bold")), trend, *levels)
    return table


def level_cells(segment: Segment, most: int = _MOST_STRETCHES) -> Cells:
    """The level of each series between changes: the first and the last of more than ``most`` stretches."""
    stretches = segment.stretches
    shown = range(len(stretches)) if len(stretches) <= most else [0, *range(1 - most, 0)]
    heads = [_name(f"from {stretches[at][0].name} ({len(stretches[at])})") for at in shown]
    rows = [(name, *(_level(levels[at]) for at in shown)) for name, levels in segment.levels.items()]
    return ("category", *heads), rows


def _level(level: Level) -> str:
    low, high = level.ci95
    return f"{format_ns(level.value)} [{interval_text((max(low, 0.0), high))}]"


def _trend(values: Sequence[float]) -> str:
    """Values as bars from the least to the largest; many of them by the median of each of ``_TREND_WIDTH`` groups."""
    width = min(len(values), _TREND_WIDTH)
    groups = [sorted(values[at * len(values) // width : (at + 1) * len(values) // width]) for at in range(width)]
    middles = [group[len(group) // 2] for group in groups]
    low, high = min(middles), max(middles)
    if low == high:
        return _BARS[0] * width
    return "".join(_BARS[round((middle - low) / (high - low) * (len(_BARS) - 1))] for middle in middles)


def _print_skipped(console: Console, history: History) -> None:
    if not history.skipped:
        return
    counts = Counter(skipped.kind for skipped in history.skipped)
    total = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    console.print(Text(f"skipped: {total}", style="yellow"))
    for skipped in history.skipped[:_MOST_SKIPPED]:
        console.print(Text(f"  {skipped.kind}: {_name(skipped.path)}: {_name(skipped.reason)}", style="dim"))
    if len(history.skipped) > _MOST_SKIPPED:
        console.print(Text(f"  {len(history.skipped) - _MOST_SKIPPED} more (--json lists them)", style="dim"))


def _name(text: str) -> str:
    """Text from a capture, made harmless for a terminal and shortened."""
    return plain(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
