"""Budgets as bars below one another: threads, ranks, regions, devices; a name and a time above each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from overhead_lens.report.page.charts.axes import hatched, label, rounded
from overhead_lens.report.page.model import Chart, Table
from overhead_lens.report.text.blocks import interval_text
from overhead_lens.taxonomy.categories import CATEGORIES
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.units import format_ns

ROW_PX = 46
_LEGEND_ROW_PX = 20
_LEGEND_COLUMNS = 3
_MOST_PARTS = 3
# Of name and remark together, which share a line on the narrowest screen; the table has them in full.
_MOST_LETTERS = 46
_LEAST_LETTERS = 14
# What is narrower can be pointed at, and stands in the table; it needs no entry of the legend.
_LEGEND_SHARE = 0.005


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a bar; pieces of one name share a color and an entry of the legend."""

    name: str
    ink: str
    hatch: str
    ns: int
    told: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar.

    Attributes:
        name: What it is of.
        remark: What stands at its right.
        stretches: From left to right.
        full_ns: The time of the whole width.
    """

    name: str
    remark: str
    stretches: Sequence[Stretch]
    full_ns: float


def host_bar(name: str, remark: str, host: Sequence[HostCategory], full_ns: float) -> Bar:
    """The bar of a host budget."""
    stretches = [
        Stretch(category.category, looks.ink, looks.hatch, category.ns, _told(category))
        for category, looks in zip(host, CATEGORIES, strict=True)
    ]
    return Bar(name, remark, stretches, full_ns)


def _told(category: HostCategory) -> str:
    """Time, share, interval and largest parts of a category."""
    low, high = category.ci95_ns
    interval = f" [{interval_text((low, high))}]" if low < high else ""
    parts = sorted((part for part in category.parts if part.ns), key=lambda part: -part.ns)[:_MOST_PARTS]
    named = "".join(f"<br>{part.name} {format_ns(part.ns)}" for part in parts)
    return f"{category.category} {format_ns(category.ns)} ({category.share:.1%}){interval}{named}"


def bars_chart(bars: Sequence[Bar], described: str) -> Chart:
    """Bars below one another, the first on top."""
    looks = {stretch.name: stretch for bar in bars for stretch in bar.stretches if stretch.ns}
    data = [_trace(look, bars) for look in looks.values()]
    # As many entries stand side by side on the narrowest screen.
    entries = sum(trace["showlegend"] for trace in data)
    below_px = _LEGEND_ROW_PX * (1 + -(-entries // _LEGEND_COLUMNS))
    layout = {
        "barmode": "stack",
        "bargap": 0.55,
        "xaxis": {"range": [0, 1], "visible": False, "fixedrange": True},
        "yaxis": {"range": [len(bars) - 0.45, -0.85], "visible": False, "fixedrange": True},
        "annotations": [note for at, bar in enumerate(bars) for note in _notes(at, bar)],
        "legend": {"orientation": "h", "y": 0, "yanchor": "top", "traceorder": "normal"},
        "margin": {"l": 4, "r": 4, "t": 4, "b": below_px},
    }
    return Chart({"data": data, "layout": layout}, described, ROW_PX * len(bars) + below_px + 10)


def bars_table(bars: Sequence[Bar], of: str, remark: str) -> Table:
    """The chart as a table: a row per bar, with the time of each of its pieces.

    Args:
        bars: As they are drawn.
        of: What the bars are of.
        remark: What their remarks say.
    """
    names = dict.fromkeys(stretch.name for bar in bars for stretch in bar.stretches if stretch.ns)
    rows = []
    for bar in bars:
        times = {stretch.name: format_ns(stretch.ns) for stretch in bar.stretches if stretch.ns}
        rows.append((bar.name, bar.remark, *(times.get(name, "") for name in names)))
    return Table((of, remark, *names), rows, frozenset(range(1, len(names) + 2)))


def _trace(look: Stretch, bars: Sequence[Bar]) -> dict[str, Any]:
    """The Plotly trace of one name's pieces in all bars."""
    found = [
        (at, bar, stretch)
        for at, bar in enumerate(bars)
        for stretch in bar.stretches
        if stretch.name == look.name and stretch.ns
    ]
    return {
        "type": "bar",
        "orientation": "h",
        "name": label(look.name),
        "y": [at for at, _, _ in found],
        "x": [rounded(stretch.ns / max(1, bar.full_ns)) for _, bar, stretch in found],
        "marker": {
            "color": look.ink,
            "pattern": hatched(look.ink, look.hatch),
            "line": {"width": 0},
        },
        "showlegend": any(stretch.ns >= _LEGEND_SHARE * bar.full_ns for _, bar, stretch in found),
        "customdata": [f"{label(bar.name)}: {stretch.told}" for _, bar, stretch in found],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _notes(at: int, bar: Bar) -> list[dict[str, Any]]:
    room = max(_LEAST_LETTERS, _MOST_LETTERS - len(bar.remark))
    shared = {"xref": "paper", "y": at - 0.28, "yanchor": "bottom", "showarrow": False, "borderpad": 0}
    return [
        {**shared, "x": 0, "xanchor": "left", "text": f"<b>{label(bar.name, room)}</b>"},
        {**shared, "x": 1, "xanchor": "right", "text": label(bar.remark, _MOST_LETTERS)},
    ]
