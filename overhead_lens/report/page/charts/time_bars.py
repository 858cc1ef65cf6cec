"""Bars on an axis of time, below one another: a name above each, its time behind it, whiskers for its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from overhead_lens.report.page.charts.axes import WHISKER, error_bars, label, rounded, time_unit
from overhead_lens.report.page.model import Chart
from overhead_lens.stats.values import Interval
from overhead_lens.units import format_ns

WHOLE, PART, MARK = "#4477aa", "#f58518", "#999999"
_ROW_PX = 44
_AXIS_PX = 50
_INDENT_PX = 14
_ROOM = 0.3


@dataclass(frozen=True, slots=True)
class TimeBar:
    """A bar.

    Attributes:
        name: What it is of.
        text: What stands behind it.
        ns: Its length; below 0 it reaches to the left.
        begin_ns: Where it begins.
        ci95_ns: Of its length; None without one.
        marks: Figures of others to hold it against: ns and whose they are.
        depth: How far its name is indented.
    """

    name: str
    text: str
    ns: float
    ink: str
    begin_ns: float = 0.0
    ci95_ns: Interval | None = None
    marks: Sequence[tuple[float, str]] = ()
    depth: int = 0

    @property
    def ends_ns(self) -> tuple[float, float]:
        """Where it, its whiskers and its marks end at the left and at the right."""
        lengths = (0.0, self.ns, *(self.ci95_ns or ()))
        reached = [*(self.begin_ns + length for length in lengths), *(ns for ns, _ in self.marks)]
        return min(reached), max(reached)


def time_bars(bars: Sequence[TimeBar], described: str) -> Chart:
    """The bars, at least one, the first on top."""
    low_ns, high_ns = min(bar.ends_ns[0] for bar in bars), max(bar.ends_ns[1] for bar in bars)
    unit_ns, unit = time_unit(max(-low_ns, high_ns))
    room = _ROOM * (high_ns - low_ns or 1.0)
    layout = {
        "bargap": 0.6,
        "xaxis": {
            "title": {"text": unit},
            "range": [rounded(low_ns / unit_ns), rounded((high_ns + room) / unit_ns)],
            "fixedrange": True,
        },
        "yaxis": {"range": [len(bars) - 0.5, -0.9], "visible": False, "fixedrange": True},
        "annotations": [note for at, bar in enumerate(bars) for note in _notes(at, bar, unit_ns)],
        "showlegend": False,
        "margin": {"l": 4, "r": 4, "t": 4, "b": _AXIS_PX},
    }
    data = [_bars(bars, unit_ns), *_marks(bars, unit_ns)]
    return Chart({"data": data, "layout": layout}, described, _ROW_PX * len(bars) + _AXIS_PX + 20)


def _bars(bars: Sequence[TimeBar], unit_ns: int) -> dict[str, Any]:
    values = [bar.ns for bar in bars]
    return {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(bars))),
        "x": [rounded(ns / unit_ns) for ns in values],
        "base": [rounded(bar.begin_ns / unit_ns) for bar in bars],
        "marker": {"color": [bar.ink for bar in bars], "line": {"width": 0}},
        "error_x": {**error_bars(values, [bar.ci95_ns or (bar.ns, bar.ns) for bar in bars], unit_ns), "color": WHISKER},
        "customdata": [f"{label(bar.name, 120)}: {label(bar.text, 80)}" for bar in bars],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _marks(bars: Sequence[TimeBar], unit_ns: int) -> list[dict[str, Any]]:
    found = [(at, ns, whose) for at, bar in enumerate(bars) for ns, whose in bar.marks]
    if not found:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "y": [at for at, _, _ in found],
            "x": [rounded(ns / unit_ns) for _, ns, _ in found],
            "marker": {"symbol": "line-ns-open", "size": 16, "color": MARK, "line": {"width": 3}},
            "customdata": [f"{format_ns(ns)}: {label(whose, 80)}" for _, ns, whose in found],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
    ]


def _notes(at: int, bar: TimeBar, unit_ns: int) -> list[dict[str, Any]]:
    above = {"xref": "paper", "x": 0, "xanchor": "left", "xshift": _INDENT_PX * bar.depth, "yanchor": "bottom"}
    behind = {"x": rounded(bar.ends_ns[1] / unit_ns), "xanchor": "left", "xshift": 6, "yanchor": "middle"}
    shared = {"showarrow": False, "borderpad": 0}
    return [
        {**shared, **above, "y": at - 0.25, "text": f"<b>{label(bar.name, 60)}</b>"},
        {**shared, **behind, "y": at, "text": label(bar.text, 40)},
    ]
