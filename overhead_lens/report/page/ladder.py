"""The page of a ladder: the compiled call as a waterfall of its layers, all rungs, single steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from overhead_lens.report.page.axes import error_bars, label, rounded, time_unit
from overhead_lens.report.page.model import Block, Chart, Page, Section, Table, Text
from overhead_lens.report.text import ladder as told
from overhead_lens.report.text.blocks import interval_text
from overhead_lens.studies.ladder.analysis import Ladder, Layer, Rung
from overhead_lens.units import format_ns

_ROW_PX = 44
_AXIS_PX = 50
_INDENT_PX = 14
_WHOLE, _PART, _PUBLISHED = "#4477aa", "#f58518", "#999999"


def ladder_page(ladder: Ladder) -> Page:
    """The page."""
    return Page(told.title(ladder), _answer(ladder), list(_sections(ladder)), _provenance(ladder))


def _answer(ladder: Ladder) -> str:
    done = sum(rung.ns is not None for rung in ladder.rungs)
    return ladder.sentence or f"{done} of {len(ladder.rungs)} rungs could be timed."


def _sections(ladder: Ladder) -> Iterator[Section]:
    if ladder.layers:
        heads, rows = told.layer_cells(ladder.layers)
        table = Table(heads, rows, frozenset({1, 2, 3}), "intervals are of paired differences")
        yield Section("What the compiled call is made of", [_waterfall(ladder.layers), table])
    yield Section("Rungs", list(_rungs(ladder)))
    heads, rows = told.step_cells(ladder)
    blocks: list[Block] = [Table(heads, rows, frozenset({1, 3, 4, 5, 6, 7}), "small jobs done in two ways")]
    if reasons := told.steps_not_done(ladder):
        blocks.append(Text(reasons))
    yield Section("Single steps", blocks, is_open=False)
    if ladder.warnings:
        yield Section("Warnings", [Text(ladder.warnings)])


def _waterfall(layers: Sequence[Layer]) -> Chart:
    """The whole call on top, then each layer from where the one above it ends; whiskers are the intervals."""
    total_ns = sum(layer.ns for layer in layers)
    unit_ns, unit = time_unit(total_ns)
    left_ns, bases = total_ns, []
    for layer in layers:
        left_ns -= layer.ns
        bases.append(left_ns)
    values = [total_ns, *(layer.ns for layer in layers)]
    names = ["torch.compile", *(layer.name for layer in layers)]
    texts = [format_ns(total_ns), *(f"{format_ns(layer.ns)} ({layer.ns / total_ns:.0%})" for layer in layers)]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(names))),
        "base": [0, *(rounded(base / unit_ns) for base in bases)],
        "x": [rounded(ns / unit_ns) for ns in values],
        "marker": {"color": [_WHOLE, *[_PART] * len(layers)]},
        "error_x": error_bars(values, [(total_ns, total_ns), *(layer.ci95_ns for layer in layers)], unit_ns),
        "customdata": [f"{label(name, 80)}: {text}" for name, text in zip(names, texts, strict=True)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    ends = [base + ns for base, ns in zip([0, *bases], values, strict=True)]
    highs = [max(end, base + layer.ci95_ns[1]) for end, base, layer in zip(ends[1:], bases, layers, strict=True)]
    rows = [_Row(name, text, high / unit_ns) for name, text, high in zip(names, texts, [total_ns, *highs], strict=True)]
    described = f"Layers of the compiled call, from outside in, which sum to {format_ns(total_ns)}."
    return Chart({"data": [bars], "layout": _layout(rows, unit)}, described, _height(len(rows)))


@dataclass(frozen=True, slots=True)
class _Row:
    """What is written about a bar: its name above it, its time behind ``end``, in the axis' unit."""

    name: str
    text: str
    end: float
    depth: int = 0


def _layout(rows: Sequence[_Row], unit: str) -> dict[str, Any]:
    above = {"xref": "paper", "x": 0, "xanchor": "left", "yanchor": "bottom", "showarrow": False, "borderpad": 0}
    behind = {"xanchor": "left", "yanchor": "middle", "showarrow": False, "xshift": 6}
    names = [
        {**above, "xshift": _INDENT_PX * row.depth, "y": at - 0.25, "text": f"<b>{label(row.name, 60)}</b>"}
        for at, row in enumerate(rows)
    ]
    times = [{**behind, "y": at, "x": rounded(row.end), "text": row.text} for at, row in enumerate(rows)]
    most = max(row.end for row in rows)
    return {
        "bargap": 0.6,
        "xaxis": {"title": {"text": unit}, "range": [0, 1.3 * most], "fixedrange": True, "automargin": True},
        "yaxis": {"range": [len(rows) - 0.5, -0.9], "visible": False, "fixedrange": True},
        "annotations": [*names, *times],
        "showlegend": False,
        "margin": {"l": 4, "r": 4, "t": 4, "b": _AXIS_PX},
    }


def _height(rows: int) -> int:
    return _ROW_PX * rows + _AXIS_PX + 20


def _rungs(ladder: Ladder) -> Iterator[Block]:
    done = [rung for rung in ladder.rungs if rung.ns is not None and rung.ci95_ns is not None]
    if done:
        yield _times(done)
    heads, rows = told.rung_cells(ladder)
    indented = [
        (f"{'· ' * rung.depth}{name.strip()}", *rest) for rung, (name, *rest) in zip(ladder.rungs, rows, strict=True)
    ]
    yield Table(heads, indented, frozenset(range(1, len(heads))), told.how(ladder))
    if reasons := told.not_done(ladder):
        yield Text(reasons)


def _times(rungs: Sequence[Rung]) -> Chart:
    """The time of each rung with its interval; upright marks are published figures."""
    values = [rung.ns or 0.0 for rung in rungs]
    intervals = [rung.ci95_ns or (0.0, 0.0) for rung in rungs]
    unit_ns, unit = time_unit(max(values))
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(rungs))),
        "x": [rounded(ns / unit_ns) for ns in values],
        "marker": {"color": _WHOLE},
        "error_x": error_bars(values, intervals, unit_ns),
        "customdata": [
            f"{rung.kind.title}: {format_ns(ns)} [{interval_text(interval)}]"
            for rung, ns, interval in zip(rungs, values, intervals, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    ends = [
        max(ns, interval[1], *(figure.ns for figure in rung.published)) / unit_ns
        for rung, ns, interval in zip(rungs, values, intervals, strict=True)
    ]
    rows = [
        _Row(rung.kind.title, format_ns(ns), end, rung.depth) for rung, ns, end in zip(rungs, values, ends, strict=True)
    ]
    described = f"The time of {len(rungs)} ways to make the call, with 95 % intervals and published figures."
    return Chart(
        {"data": [bars, *_published(rungs, unit_ns)], "layout": _layout(rows, unit)}, described, _height(len(rows))
    )


def _published(rungs: Sequence[Rung], unit_ns: int) -> Iterator[dict[str, Any]]:
    found = [(at, figure) for at, rung in enumerate(rungs) for figure in rung.published]
    if found:
        yield {
            "type": "scatter",
            "mode": "markers",
            "y": [at for at, _ in found],
            "x": [rounded(figure.ns / unit_ns) for _, figure in found],
            "marker": {"symbol": "line-ns-open", "size": 16, "color": _PUBLISHED, "line": {"width": 3}},
            "customdata": [f"published: {format_ns(figure.ns)}, {label(figure.source, 80)}" for _, figure in found],
            "hovertemplate": "%{customdata}<extra></extra>",
        }


def _provenance(ladder: Ladder) -> list[tuple[str, str]]:
    known = [(name, str(value)) for name, value in ladder.environment.items() if isinstance(value, (str, int, float))]
    return [*known, ("ladder", ladder.directory)]
