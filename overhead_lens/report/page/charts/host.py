"""A host budget as charts: the categories side by side as one bar, and each with its interval; the same as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from overhead_lens.report.page.charts.axes import WHISKER, error_bars, hatched, label, rounded, time_unit
from overhead_lens.report.page.charts.bars import bars_chart, host_bar
from overhead_lens.report.page.model import Block, Chart, Table
from overhead_lens.report.text.blocks import bounds_cell, interval_text, measured_text
from overhead_lens.report.text.plain import plain
from overhead_lens.stats.estimate import Measured
from overhead_lens.taxonomy.categories import HATCHES, INKS
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.units import format_ns

_ROW_PX = 30
_AXIS_PX = 44
_MOST_PARTS = 4


def host_blocks(name: str, host: Sequence[HostCategory], wall: Measured, per: str) -> list[Block]:
    """The closed budget of one ``per``: a bar, the categories with intervals, a table."""
    whole = f"The categories of a {per}, which sum to {format_ns(wall.ns)}."
    return [
        bars_chart([host_bar(name, measured_text(wall), host, wall.ns)], whole),
        *([_categories(host, per)] if any(category.ns for category in host) else []),
        host_table(host, wall),
    ]


def _categories(host: Sequence[HostCategory], per: str) -> Chart:
    """A bar a category with its 95 % interval, in the taxonomy's order."""
    shown = [category for category in host if category.ns]
    unit_ns, unit = time_unit(max(category.ci95_ns[1] for category in shown))
    data = [_category(at, category, unit_ns) for at, category in enumerate(shown)]
    most = max(category.ci95_ns[1] for category in shown) / unit_ns
    layout = {
        "barmode": "overlay",
        "bargap": 0.35,
        "xaxis": {"title": {"text": f"{unit} per {label(per)}, with 95 % intervals"}, "range": [0, most * 1.45]},
        "yaxis": {
            "tickvals": list(range(len(shown))),
            "ticktext": [label(category.category) for category in shown],
            "range": [len(shown) - 0.5, -0.5],
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
        },
        "annotations": [
            {
                "x": rounded(category.ci95_ns[1] / unit_ns),
                "y": at,
                "text": f" {format_ns(category.ns)}, {category.share:.1%}",
                "xanchor": "left",
                "showarrow": False,
            }
            for at, category in enumerate(shown)
        ],
        "margin": {"l": 92, "r": 8, "t": 4, "b": _AXIS_PX},
        "showlegend": False,
    }
    described = "; ".join(f"{category.category} {format_ns(category.ns)}" for category in shown)
    return Chart({"data": data, "layout": layout}, f"Time by category: {described}.", _ROW_PX * len(shown) + _AXIS_PX)


def _category(at: int, category: HostCategory, unit_ns: int) -> dict[str, Any]:
    """The bar of one category."""
    ink = INKS[category.category]
    return {
        "type": "bar",
        "orientation": "h",
        "y": [at],
        "x": [rounded(category.ns / unit_ns)],
        "error_x": {**error_bars([category.ns], [category.ci95_ns], scale=unit_ns), "color": WHISKER},
        "marker": {"color": ink, "pattern": hatched(ink, HATCHES[category.category]), "line": {"width": 0}},
        "customdata": [_told(category)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _told(category: HostCategory) -> str:
    return label(f"{category.category} {format_ns(category.ns)} [{interval_text(category.ci95_ns)}]", 80)


def host_table(host: Sequence[HostCategory], wall: Measured) -> Table:
    """Every category that took time, with its largest parts, and the sum."""
    rows = [
        (
            category.category,
            f"{category.share:.1%}",
            format_ns(category.ns),
            interval_text(category.ci95_ns),
            category.evidence,
            _within(category),
        )
        for category in host
        if category.ns
    ]
    total = ("sum = wall", "100 %", format_ns(wall.ns), bounds_cell(wall), "clock", "")
    heads = ("category", "share", "time", "95 % interval", "evidence", "most of it")
    return Table(heads, [*rows, total], frozenset({1, 2, 3}), "the budget, which closes")


def _within(category: HostCategory) -> str:
    """The largest parts of a category; its largest frames where it has none."""
    parts = sorted((part for part in category.parts if part.ns), key=lambda part: -part.ns)[:_MOST_PARTS]
    named = [(part.name, part.ns) for part in parts] or [(frame.frame, frame.ns) for frame in category.top[:2]]
    return ", ".join(f"{plain(name)} {format_ns(ns)}" for name, ns in named)
