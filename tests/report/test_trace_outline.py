"""Tables of a recorded trace."""

from __future__ import annotations

from overhead_lens.report.outline import Table
from overhead_lens.report.outlines.trace import trace_outline
from tests.drawn.timelines import analyzer_of, timed


def test_only_operators_divide_into_dispatch_and_kernel() -> None:
    analysis = analyzer_of(
        timed(0, 10, "aten::view"),
        timed(20, 100, "aten::mm"),
        timed(130, 30, "aten::empty"),
        timed(170, 50, "CheckpointFunction"),
    ).analysis()
    (section,) = (each for each in trace_outline(analysis).sections if each.heading.startswith("Costliest operators"))
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    assert [[cell.text for cell in (row.cells[0], *row.cells[3:])] for row in table.rows] == [
        ["100 ns", "50 ns", "50 ns", "dispatcher", "aten::mm"],
        ["50 ns", "", "", "python", "CheckpointFunction"],
        ["30 ns", "", "", "allocation", "aten::empty"],
        ["10 ns", "10 ns", "0 ns", "dispatcher", "aten::view"],
    ]
