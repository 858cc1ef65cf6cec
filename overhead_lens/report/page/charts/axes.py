"""Parts of several charts: units and ticks of time, error bars, lines, notes, colors for what is not a category."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from overhead_lens.report.text.blocks import cut
from overhead_lens.report.text.plain import plain
from overhead_lens.stats.values import Interval
from overhead_lens.units import NS_PER_MS, NS_PER_S, NS_PER_US, format_ns

# Paul Tol's bright scheme, told apart with any color vision, on white and on black.
INKS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999999")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
WHISKER = "#8a9199"
"""Whiskers over bars, seen on white and on black."""
_FEW_DECADES = 1.5

FRAME: Mapping[str, Any] = {
    "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
    "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
    "hovermode": "closest",
}
"""Layout of a chart with axes: as much room as ticks and titles take, the legend above."""


def time_unit(most_ns: float) -> tuple[int, str]:
    """How many ns the unit has in which an axis up to ``most_ns`` is read best, and its name."""
    for unit_ns, name in ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "µs")):
        if most_ns >= 2 * unit_ns:
            return unit_ns, name
    return 1, "ns"


def log_time_axis(values_ns: Iterable[float]) -> dict[str, Any]:
    """A logarithmic axis of ns whose ticks carry units; its range holds all values."""
    positive = [ns for ns in values_ns if ns > 0 and math.isfinite(ns)] or [1.0]
    low, high = math.log10(min(positive)), math.log10(max(positive))
    steps = (1, 2, 5) if high - low < _FEW_DECADES else (1,)
    decades = range(math.floor(low) - 1, math.ceil(high) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    room = 0.06 * max(high - low, 0.5)
    return {
        "type": "log",
        "range": [low - room, high + room],
        "tickvals": ticks,
        "ticktext": [_tick(ns) for ns in ticks],
    }


def _tick(ns: float) -> str:
    """A round time without the decimals that ``format_ns`` gives it."""
    number, _, unit = format_ns(ns).partition(" ")
    return f"{float(number):g} {unit}"


def label(text: str, width: int = 40) -> str:
    """A name inside a chart, escaped because Plotly interprets markup."""
    return escape(cut(plain(text), width), quote=False)


def rounded(value: float) -> float:
    """Five digits, more than a screen shows."""
    return float(f"{value:.5g}")


def error_bars(values: Sequence[float], intervals: Sequence[Interval], scale: float = 1.0) -> dict[str, Any]:
    """``error_x`` or ``error_y`` of intervals about values, all divided by ``scale``."""
    pairs = list(zip(values, intervals, strict=True))
    return {
        "type": "data",
        "symmetric": False,
        "array": [rounded(max(0.0, high - value) / scale) for value, (_, high) in pairs],
        "arrayminus": [rounded(max(0.0, value - low) / scale) for value, (low, _) in pairs],
        "thickness": 1.2,
        "width": 3,
    }


def upright(x: float, color: str = "#999999", dash: str = "dot") -> dict[str, Any]:
    """A shape: a line from the bottom of the chart to its top."""
    place = {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper"}
    return {"type": "line", **place, "line": {"color": color, "width": 1, "dash": dash}}


def note(text: str, x: float, y: float, **more: Any) -> dict[str, Any]:
    """An annotation without an arrow; ``y`` is a share of the chart's height."""
    return {"text": text, "x": x, "y": y, "yref": "paper", "showarrow": False, "font": {"size": 11}, **more}


def hatched(inks: str | Sequence[str], hatches: str | Sequence[str]) -> dict[str, Any]:
    """``marker.pattern`` of areas in these colors, which tells them apart where colors do not."""
    return {"shape": hatches, "bgcolor": inks, "fgcolor": "#14171a", "fgopacity": 0.28, "size": 6, "solidity": 0.2}


def paled(ink: str) -> str:
    """A color that lets the page shine through."""
    red, green, blue = (int(ink[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.45)"
