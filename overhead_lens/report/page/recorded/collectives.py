"""Collectives on the page of a trace, and on that of several ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.page.model import Block, Section, Table, Text
from overhead_lens.report.text.recorded import collectives as told
from overhead_lens.traces.collectives.model import CollectiveCost
from overhead_lens.traces.collectives.stragglers import Stragglers

_MOST_ROWS = 50
_FIGURES = frozenset(range(8))
DEFINED = (
    "Size and bandwidth as NCCL-tests define them (doc/PERFORMANCE.md). A kernel's duration holds its wait for the other ranks: "
    "on one rank bandwidths are lower bounds. Hidden is time in which compute runs on the same device."
)


def collective_sections(costs: Sequence[CollectiveCost]) -> Iterator[Section]:
    """One section; none without collectives."""
    if costs:
        heads, rows = told.collective_cells(costs, _MOST_ROWS)
        caption = "collectives by kind and size, the most exposed first"
        yield Section("Collectives", [Table(heads, rows, _FIGURES, caption), Text([DEFINED])])


def straggler_blocks(found: Stragglers) -> Iterator[Block]:
    """The stragglers, step by step."""
    if found.holders:
        yield Text(told.straggler_lines(found))
        heads, rows = told.holder_cells(found, _MOST_ROWS)
        yield Table(heads, rows, frozenset(range(1, len(heads))), "ranks that others wait for")
    if found.steps:
        heads, rows = told.step_cells(found, _MOST_ROWS)
        yield Table(heads, rows, frozenset({0, 1, 2, 4}), "waiting in collectives, step by step")
    if found.transfers:
        heads, rows = told.transfer_cells(found.transfers, _MOST_ROWS)
        caption = "collectives by the rank that came last, without waits"
        yield Table(heads, rows, frozenset(range(2, len(heads))), caption)
