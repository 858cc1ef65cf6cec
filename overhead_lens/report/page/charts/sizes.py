"""A sweep as pictures: times over sizes with the fitted lines and their crossings, and how far the lines miss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from overhead_lens.report.page.charts.axes import (
    FRAME,
    INKS,
    SYMBOLS,
    error_bars,
    label,
    log_time_axis,
    note,
    rounded,
    upright,
)
from overhead_lens.report.page.model import Chart
from overhead_lens.report.text.blocks import interval_text
from overhead_lens.studies.sweep.analysis import DOES_NOT_FIT, TOLERANCE_SHARE, Sweep, SweptVariant
from overhead_lens.units import format_ns

_POINTS_OF_A_LINE = 60
_ROOM = 0.06


def times_chart(sweep: Sweep) -> Chart:
    """Points with their intervals, lines, and a dotted line where two of them cross; both axes logarithmic."""
    data: list[dict[str, Any]] = []
    for at, variant in enumerate(sweep.variants):
        data += [_measured(variant, at), _fitted(variant, sweep, at)]
    ends = [ns for variant in sweep.variants for point in variant.points for ns in (point.ns, *point.ci95_ns)]
    layout = {
        **FRAME,
        "xaxis": _sizes_axis(sweep),
        "yaxis": {**log_time_axis(ends), "title": {"text": "per call"}},
        **_crossings(sweep),
    }
    described = f"Time per call by {sweep.against}, both logarithmic, for {len(sweep.variants)} variants with their fitted lines."
    return Chart({"data": data, "layout": layout}, described, 420)


def _measured(variant: SweptVariant, at: int) -> dict[str, Any]:
    points = variant.points
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label(variant.name) + (" (no line fits)" if variant.fit == DOES_NOT_FIT else ""),
        "legendgroup": str(at),
        "x": [max(point.size, 1) for point in points],
        "y": [point.ns for point in points],
        "error_y": error_bars([point.ns for point in points], [point.ci95_ns for point in points]),
        "marker": {"color": _ink(at), "symbol": _symbol(at), "size": 8},
        "customdata": [
            f"{point.size:,}: {format_ns(point.ns)} [{interval_text(point.ci95_ns)}], line {point.residual_share:+.0%}"
            for point in points
        ],
        "hovertemplate": "%{customdata}",
    }


def _fitted(variant: SweptVariant, sweep: Sweep, at: int) -> dict[str, Any]:
    low, high = max(min(sweep.sizes), 1), max(*sweep.sizes, 1)
    along = np.geomspace(low, high, _POINTS_OF_A_LINE)
    return {
        "type": "scatter",
        "mode": "lines",
        "legendgroup": str(at),
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [rounded(size) for size in along],
        "y": [rounded(variant.line.overhead_ns + size * variant.line.element_ns) for size in along],
        "line": {"color": _ink(at), "width": 1.5, "dash": "dash" if variant.fit == DOES_NOT_FIT else "solid"},
    }


def _crossings(sweep: Sweep) -> dict[str, Any]:
    """A dotted line for each crossing within the sizes, the size beside it."""
    sizes = [
        crossing.size
        for crossing in sweep.crossings
        if crossing.size is not None and min(sweep.sizes) <= crossing.size <= max(sweep.sizes)
    ]
    beside = {"xanchor": "left", "yanchor": "bottom"}
    return {
        "shapes": [upright(size) for size in sizes],
        # One above the other, where they would lie on one another.
        "annotations": [
            note(f"{size:,.0f}", math.log10(size), 0.05 * (at % 3), **beside) for at, size in enumerate(sizes)
        ],
    }


def residuals_chart(sweep: Sweep) -> Chart:
    """The deviation of each line from the measurements, with the band that counts as a fit."""
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": label(variant.name),
            "x": [max(point.size, 1) for point in variant.points],
            "y": [rounded(100 * point.residual_share) for point in variant.points],
            "error_y": error_bars(
                [point.residual_share for point in variant.points],
                [point.residual_ci95 for point in variant.points],
                scale=0.01,
            ),
            "line": {"color": _ink(at), "width": 1},
            "marker": {"color": _ink(at), "symbol": _symbol(at), "size": 7},
            "hovertemplate": "%{x:,}: %{y:+.1f} %",
        }
        for at, variant in enumerate(sweep.variants)
    ]
    percent = 100 * TOLERANCE_SHARE
    layout = {
        **FRAME,
        "xaxis": _sizes_axis(sweep),
        "yaxis": {"title": {"text": "line above measured"}, "ticksuffix": " %", "zeroline": True},
        "shapes": [
            {
                "type": "rect",
                "x0": 0,
                "x1": 1,
                "xref": "paper",
                "y0": -percent,
                "y1": percent,
                "fillcolor": "rgba(128,128,128,0.15)",
                "line": {"width": 0},
                "layer": "below",
            }
        ],
    }
    described = f"How far each line lies above the measured times; a line fits within {percent:.0f} % (shaded)."
    return Chart({"data": data, "layout": layout}, described, 300)


def _sizes_axis(sweep: Sweep) -> dict[str, Any]:
    low, high = math.log10(max(min(sweep.sizes), 1)), math.log10(max(*sweep.sizes, 1))
    room = _ROOM * max(high - low, 0.5)
    return {"type": "log", "range": [low - room, high + room], "title": {"text": label(sweep.against)}, "dtick": 1}


def _ink(at: int) -> str:
    return INKS[at % len(INKS)]


def _symbol(at: int) -> str:
    return SYMBOLS[(at + at // len(INKS)) % len(SYMBOLS)]
