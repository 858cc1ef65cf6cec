"""The page of a difference in structure: which operators, kernels and launches came, went or changed between two traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.page.charts.time_bars import TimeBar, time_bars
from overhead_lens.report.page.model import Block, Chart, Page, Section, Table, Text
from overhead_lens.report.text import structure as told
from overhead_lens.report.text.blocks import cut
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.traces.structure.model import StructureChange, StructureDelta
from overhead_lens.units import format_signed_ns

_MOST_BARS = 10
_MOST_ROWS = 25
_LONGEST_NAME = 120
_MOST_SWAPS = 40
_INKS = {"appeared": "#228833", "vanished": "#e45756", "changed": "#ccbb44", "same": "#4477aa"}


def structure_page(delta: StructureDelta, _classifier: Classifier) -> Page:
    """The page."""
    sections = [Section(title, list(_changes(delta, changes))) for title, changes in told.groups(delta)]
    if delta.swaps:
        rows = [
            (operator, mark, amount, f"{cut(kernel, _LONGEST_NAME)}{more}")
            for operator, mark, amount, kernel, more in _swaps(delta)
        ]
        more = len(delta.swaps) - _MOST_SWAPS
        caption = f"{more} more are left out; --json has them" if more > 0 else ""
        table = Table(("operator", "", "events and time", "kernel"), rows, frozenset({2}), caption)
        sections.append(Section("other kernels under the same operator", [table]))
    traces = [("base", told.in_words(delta.base)), ("new", told.in_words(delta.new))]
    return Page(f"{delta.base.path} → {delta.new.path}", told.sentence(delta), sections, traces)


def _swaps(delta: StructureDelta) -> Iterator[tuple[str, str, str, str, str]]:
    return told.swap_rows(delta, _MOST_SWAPS)


def _changes(delta: StructureDelta, changes: Sequence[StructureChange]) -> Iterator[Block]:
    if moved := [change for change in changes if change.delta_ns][:_MOST_BARS]:
        yield _chart(moved)
    heads, rows = told.change_cells(delta, changes[:_MOST_ROWS])
    rows = [(*cells, cut(name, _LONGEST_NAME)) for *cells, name in rows]
    yield Table(heads, rows, frozenset({0, 1}), "largest change of time first")
    if (more := len(changes) - _MOST_ROWS) > 0:
        yield Text([f"{more} smaller changes are left out; --json has them."])


def _chart(changes: Sequence[StructureChange]) -> Chart:
    bars = [
        TimeBar(
            told.name_of(change),
            f"{format_signed_ns(change.delta_ns)}, {change.status}",
            change.delta_ns,
            _INKS[change.status],
        )
        for change in changes
    ]
    return time_bars(bars, f"The {len(bars)} largest changes of time, to the right where the new trace takes longer.")
