"""The page of a difference in structure: which operators, kernels and launches came, went or changed between two traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.page.charts.axes import LONGER, SHORTER
from overhead_lens.report.page.charts.time_bars import TimeBar, time_bars
from overhead_lens.report.page.model import Block, Chart, Page, Section, Table, Text
from overhead_lens.report.text import structure as told
from overhead_lens.report.text.blocks import cut
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.traces.structure.model import Divided, SelfTime, StructureChange, StructureDelta
from overhead_lens.units import format_signed_ns

_MOST_BARS = 10
_MOST_ROWS = 25
_LONGEST_NAME = 120
_MOST_SWAPS = 40


def structure_page(delta: StructureDelta, _classifier: Classifier) -> Page:
    """The page."""
    sections = [
        Section(told.heading(each, delta).capitalize(), list(_self_times(each, delta))) for each in delta.divided
    ]
    sections.append(Section("Other counts of events", [Text([told.sentence(delta)])]))
    sections += [Section(title, list(_changes(delta, changes)), is_open=False) for title, changes in told.groups(delta)]
    if delta.swaps:
        rows = [
            (operator, mark, amount, f"{cut(kernel, _LONGEST_NAME)}{more}")
            for operator, mark, amount, kernel, more in _swaps(delta)
        ]
        more = len(delta.swaps) - _MOST_SWAPS
        caption = f"{more} more are left out; --json has them" if more > 0 else ""
        table = Table(("operator", "", "events and time", "kernel"), rows, frozenset({2}), caption)
        sections.append(Section("other kernels under the same operator", [table], is_open=False))
    traces = [("base", told.in_words(delta.base)), ("new", told.in_words(delta.new))]
    return Page(f"{delta.base.path} → {delta.new.path}", told.answer(delta), sections, traces)


def _swaps(delta: StructureDelta) -> Iterator[tuple[str, str, str, str, str]]:
    return told.swap_rows(delta, _MOST_SWAPS)


def _self_times(divided: Divided, delta: StructureDelta) -> Iterator[Block]:
    if moved := [each for each in divided.names if each.delta_ns][:_MOST_BARS]:
        yield _chart(moved)
    heads, rows = told.self_time_cells(divided, delta, _MOST_ROWS)
    rows = [(*cells, cut(name, _LONGEST_NAME)) for *cells, name in rows]
    yield Table(heads, rows, frozenset({0, 1, 2}), "each instant belongs to the event that began last")


def _changes(delta: StructureDelta, changes: Sequence[StructureChange]) -> Iterator[Block]:
    heads, rows = told.change_cells(delta, changes[:_MOST_ROWS])
    rows = [(*cells, cut(name, _LONGEST_NAME)) for *cells, name in rows]
    yield Table(heads, rows, frozenset({0}), "largest change of time first")
    if (more := len(changes) - _MOST_ROWS) > 0:
        yield Text([f"{more} smaller changes are left out; --json has them."])


def _chart(times: Sequence[SelfTime]) -> Chart:
    bars = [
        TimeBar(
            plain(each.name),
            format_signed_ns(each.delta_ns),
            each.delta_ns,
            LONGER if each.delta_ns > 0 else SHORTER,
        )
        for each in times
    ]
    return time_bars(bars, f"The {len(bars)} largest differences, to the right where the new trace takes longer.")
