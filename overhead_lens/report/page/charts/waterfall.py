"""A difference as a waterfall: from the base's wall time, category by category, to the new one's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from overhead_lens.comparison.model import CategoryChange
from overhead_lens.report.looks import LONGER, SHORTER, ink
from overhead_lens.report.page.charts.axes import label, rounded, time_unit
from overhead_lens.report.page.model import Chart
from overhead_lens.report.text.blocks import signed_interval_text
from overhead_lens.units import format_ns, format_signed_ns

_ROW_PX = 34
_AXIS_PX = 44
_WALL = "#8b949e"


def waterfall(base_ns: int, wall_delta_ns: int, host: Sequence[CategoryChange], per: str) -> Chart:
    """The chart; the categories sum to ``wall_delta_ns``, which two medians may miss by a little."""
    changes = [change for change in host if change.delta_ns]
    end_ns = base_ns + wall_delta_ns
    unit_ns, unit = time_unit(max(base_ns, end_ns))
    names = ["base", *(change.category for change in changes), "new"]
    texts = [format_ns(base_ns), *(format_signed_ns(change.delta_ns) for change in changes), format_ns(end_ns)]
    told = [
        f"base {format_ns(base_ns)}",
        *(
            f"{change.category} {format_signed_ns(change.delta_ns)} [{signed_interval_text(change.ci95_ns)}], {change.verdict}"
            for change in changes
        ),
        f"new {format_ns(end_ns)}",
    ]
    data: dict[str, Any] = {
        "type": "waterfall",
        "orientation": "h",
        "measure": ["absolute", *("relative" for _ in changes), "total"],
        "y": list(range(len(names))),
        "x": [rounded(ns / unit_ns) for ns in (base_ns, *(change.delta_ns for change in changes), 0)],
        "text": [label(text) for text in texts],
        "textposition": "outside",
        "cliponaxis": False,
        "customdata": [label(text, 120) for text in told],
        "hovertemplate": "%{customdata}<extra></extra>",
        "increasing": {"marker": {"color": ink(LONGER)}},
        "decreasing": {"marker": {"color": ink(SHORTER)}},
        "totals": {"marker": {"color": _WALL}},
        "connector": {"line": {"width": 1, "color": _WALL}},
    }
    layout = {
        "bargap": 0.35,
        "showlegend": False,
        "xaxis": {"title": {"text": f"{unit} per {per}"}, "rangemode": "tozero"},
        "yaxis": {
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "range": [len(names) - 0.5, -0.5],
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
        },
        "margin": {"l": 92, "r": 64, "t": 4, "b": _AXIS_PX},
    }
    return Chart({"data": [data], "layout": layout}, "; ".join(told), _ROW_PX * len(names) + _AXIS_PX)
