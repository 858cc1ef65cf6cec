"""The page of a ladder: the compiled call as a waterfall of its layers, all rungs, single steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.page.charts.time_bars import PART, WHOLE, TimeBar, time_bars
from overhead_lens.report.page.model import Block, Chart, Page, Section, Table, Text
from overhead_lens.report.text import ladder as told
from overhead_lens.studies.ladder.analysis import Ladder, Layer, Rung
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import format_ns


def ladder_page(ladder: Ladder, _classifier: Classifier) -> Page:
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
    total_ns = left_ns = sum(layer.ns for layer in layers)
    bars = [TimeBar("torch.compile", format_ns(total_ns), total_ns, WHOLE)]
    for layer in layers:
        left_ns -= layer.ns
        text = f"{format_ns(layer.ns)} ({layer.ns / total_ns:.0%})"
        bars.append(TimeBar(layer.name, text, layer.ns, PART, left_ns, layer.ci95_ns))
    return time_bars(bars, f"Layers of the compiled call, from outside in, which sum to {format_ns(total_ns)}.")


def _rungs(ladder: Ladder) -> Iterator[Block]:
    if done := [rung for rung in ladder.rungs if rung.ns is not None]:
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
    bars = [
        TimeBar(
            rung.kind.title,
            format_ns(rung.ns),
            rung.ns,
            WHOLE,
            ci95_ns=rung.ci95_ns,
            marks=[(figure.ns, f"published, {figure.source}") for figure in rung.published],
            depth=rung.depth,
        )
        for rung in rungs
        if rung.ns is not None
    ]
    marked = ", and upright marks for published figures" if any(rung.published for rung in rungs) else ""
    return time_bars(bars, f"The time of {len(bars)} ways to make the call, with 95 % intervals{marked}.")


def _provenance(ladder: Ladder) -> list[tuple[str, str]]:
    known = [(name, str(value)) for name, value in ladder.environment.items() if isinstance(value, (str, int, float))]
    return [*known, ("ladder", ladder.directory)]
