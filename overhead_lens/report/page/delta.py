"""The page of a difference: what changed as a waterfall, both budgets to one scale, both sides' stacks laid over each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from overhead_lens.comparison.contributors import guard_kinds_in_words
from overhead_lens.comparison.model import Delta
from overhead_lens.report.page.breakdown import provenance, stacks_of
from overhead_lens.report.page.charts.axes import LONGER, SHORTER, label, rounded, time_unit
from overhead_lens.report.page.charts.bars import bars_chart, host_bar
from overhead_lens.report.page.charts.icicle import difference_icicle
from overhead_lens.report.page.charts.tree import tree_of
from overhead_lens.report.page.model import Block, Chart, Page, Section, Table, Text
from overhead_lens.report.text.blocks import measured_text, side_titles, signed_interval_text
from overhead_lens.report.text.run import run_sides
from overhead_lens.report.text.run import title as run_title
from overhead_lens.studies.run.delta import RunDelta
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import format_ns, format_signed_ns

_ROW_PX = 34
_AXIS_PX = 44
_WALL = "#8b949e"
_MOST_MOVED = 40


def delta_page(delta: Delta, classifier: Classifier) -> Page:
    """The page of two budgets."""
    base, new = delta.base, delta.new
    titles = dict.fromkeys(side_titles(base, new))
    title = f"{' → '.join(titles)}: {format_signed_ns(delta.wall_delta_ns)} per call, {delta.verdict}"
    pairs = [*provenance(base, "base"), *provenance(new, "new")]
    return Page(title, delta.sentence, list(_sections(delta, classifier)), pairs)


def _sections(delta: Delta, classifier: Classifier) -> Iterator[Section]:
    kinds = guard_kinds_in_words(delta.base, delta.new)
    guards = [Text([f"Guards: {kinds}."])] if kinds else []
    yield Section("What changed", [_waterfall(delta, "call"), _table(delta, "call"), *guards])
    yield Section("Both budgets", [_bars(delta, side_titles(delta.base, delta.new))])
    yield Section("Stacks of both sides", _stacks(delta, classifier))
    if moved := _moved(delta):
        yield Section("What moved inside the categories", [moved], is_open=False)
    if delta.warnings:
        yield Section("Warnings", [Text(delta.warnings)])


def run_delta_page(delta: RunDelta, _classifier: Classifier) -> Page:
    """The page of two runs of a program."""
    title = f"{run_sides(delta)}: {format_signed_ns(delta.wall_delta_ns)} per {delta.per}, {delta.verdict}"
    bars = _bars(delta, (run_title(delta.base), run_title(delta.new)))
    sections = [
        Section("What changed", [_waterfall(delta, delta.per), _table(delta, delta.per)]),
        Section("Both budgets", [bars]),
    ]
    if moved := _moved(delta):
        sections.append(Section("What moved inside the categories", [moved], is_open=False))
    if delta.warnings:
        sections.append(Section("Warnings", [Text(delta.warnings)]))
    return Page(title, delta.sentence, sections, [("base", delta.base.capture), ("new", delta.new.capture)])


def _waterfall(delta: Delta | RunDelta, per: str) -> Chart:
    """From the base's wall time, category by category, to the new one's."""
    base, new = delta.base.wall.ns, delta.new.wall.ns
    unit_ns, unit = time_unit(max(base, new))
    changes = [change for change in delta.host if change.delta_ns]
    names = ["base", *(change.category for change in changes), "new"]
    # The categories sum to the estimated difference, which two medians miss by a little.
    end_ns = base + delta.wall_delta_ns
    texts = [format_ns(base), *(format_signed_ns(change.delta_ns) for change in changes), format_ns(end_ns)]
    told = [
        f"base {format_ns(base)}",
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
        "x": [rounded(ns / unit_ns) for ns in (base, *(change.delta_ns for change in changes), 0)],
        "text": [label(text) for text in texts],
        "textposition": "outside",
        "cliponaxis": False,
        "customdata": [label(text, 120) for text in told],
        "hovertemplate": "%{customdata}<extra></extra>",
        "increasing": {"marker": {"color": LONGER}},
        "decreasing": {"marker": {"color": SHORTER}},
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


def _table(delta: Delta | RunDelta, per: str) -> Table:
    base, new = delta.base, delta.new
    rows = [
        (
            change.category,
            format_ns(old.ns),
            format_ns(recent.ns),
            format_signed_ns(change.delta_ns),
            signed_interval_text(change.ci95_ns),
            f"{change.verdict}, known by its frames" if change.only_in_frames else change.verdict,
        )
        for change, old, recent in zip(delta.host, base.host, new.host, strict=True)
        if old.ns or recent.ns
    ]
    total = (
        "sum = wall",
        format_ns(base.wall.ns),
        format_ns(new.wall.ns),
        format_signed_ns(delta.wall_delta_ns),
        signed_interval_text(delta.wall_ci95_ns),
        delta.verdict,
    )
    heads = ("category", "base", "new", "difference", "95 % interval", "verdict")
    return Table(heads, [*rows, total], frozenset({1, 2, 3, 4}), f"new less base, per {per}")


def _bars(delta: Delta | RunDelta, titles: tuple[str, str]) -> Chart:
    full_ns = max(delta.base.wall.ns, delta.new.wall.ns)
    bars = [
        host_bar(
            f"{name}: {title}",
            measured_text(side.wall),
            side.host,
            full_ns,
        )
        for name, title, side in zip(("base", "new"), titles, (delta.base, delta.new), strict=True)
    ]
    return bars_chart(bars, "Both budgets to one scale.")


def _stacks(delta: Delta, classifier: Classifier) -> list[Block]:
    sides = [stacks_of(side) for side in (delta.base, delta.new)]
    if missing := [text for _, text in sides if text]:
        return [Text(missing)]
    fitted = classifier.fitted(stack for stacks, _ in sides for stack in stacks)
    base, new = (tree_of(stacks, fitted, "the call") for stacks, _ in sides)
    return difference_icicle(base, new, (delta.base.wall.ns, delta.new.wall.ns), "call")


def _moved(delta: Delta | RunDelta) -> Table | None:
    rows = [
        (change.category, part.kind, format_signed_ns(part.delta_ns), part.verdict, part.name)
        for change in delta.host
        for part in change.contributors
    ]
    heads = ("category", "kind", "difference", "verdict", "name")
    return (
        Table(heads, rows[:_MOST_MOVED], frozenset({2}), "those that are known to have moved first") if rows else None
    )
