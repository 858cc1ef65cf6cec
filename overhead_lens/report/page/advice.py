"""The page of advice: what each remedy saves, the budget of the call as it is, what the best save together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.outlines.origin import origin
from overhead_lens.report.page.charts.bars import bars_chart, host_bar
from overhead_lens.report.page.charts.time_bars import PART, WHOLE, TimeBar, time_bars
from overhead_lens.report.page.model import Block, Chart, Page, Section, Table, Text
from overhead_lens.report.text import advice as told
from overhead_lens.report.text.blocks import measured_text
from overhead_lens.studies.advise.analysis import Advice, TriedRemedy
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import format_signed_ns


def advice_page(advice: Advice, _classifier: Classifier) -> Page:
    """The page."""
    return Page(
        told.title(advice),
        advice.sentence,
        list(_sections(advice)),
        origin(advice.base.capture, advice.base.environment, side="base"),
    )


def _sections(advice: Advice) -> Iterator[Section]:
    measured = [each for each in advice.remedies if each.wall is not None]
    if measured:
        heads, rows = told.remedy_cells(measured)
        yield Section("Remedies", [_savings(measured), Table(heads, rows, frozenset({1, 2, 3}))])
    if helping := [each for each in measured if each.helps]:
        rows = [(each.remedy, each.how, each.summary, each.source) for each in helping]
        yield Section("How it is done", [Table(("remedy", "code", "what it does", "source"), rows)])
    yield Section("Where the time goes", list(_budgets(advice)))
    if reasons := told.not_measured(advice.remedies):
        yield Section("Not measured", [Text(reasons)], is_open=False)
    if advice.warnings:
        yield Section("Warnings", [Text(advice.warnings)])


def _savings(remedies: Sequence[TriedRemedy]) -> Chart:
    """What each saves, with its interval; to the left where it costs time."""
    bars = [
        TimeBar(
            each.remedy,
            f"{format_signed_ns(-each.wall.delta_ns)}, {each.verdict}",
            -each.wall.delta_ns,
            PART if each.helps else WHOLE,
            ci95_ns=(-each.wall.ci95_ns[1], -each.wall.ci95_ns[0]),
        )
        for each in remedies
        if each.wall is not None
    ]
    return time_bars(
        bars, f"What {len(bars)} remedies save per call, with 95 % intervals; to the left: they cost time."
    )


def _budgets(advice: Advice) -> Iterator[Block]:
    base, together = advice.base, advice.together
    sides = (
        [("as it is", base)]
        if together is None
        else [("as it is", together.delta.base), ("with them", together.delta.new)]
    )
    full_ns = max(side.wall.ns for _, side in sides)
    bars = [host_bar(name, measured_text(side.wall), side.host, full_ns) for name, side in sides]
    yield bars_chart(bars, "The budget of the call, to one scale.")
    if together is not None:
        yield Text([told.together_line(together)])
