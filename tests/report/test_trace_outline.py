"""Tables and findings of a recorded trace."""

from __future__ import annotations

from overhead_lens.report.outline import Outline, Table
from overhead_lens.report.outlines.recorded.findings import finding_sections
from overhead_lens.report.outlines.trace import trace_outline
from overhead_lens.report.printers.page import page_of
from overhead_lens.traces.findings.model import Evidence, Finding
from tests.drawn.timelines import CLASSIFIER, analyzer_of, timed


def test_only_operators_divide_into_dispatch_and_kernel() -> None:
    analysis = analyzer_of(
        timed(0, 10, "aten::view"),
        timed(20, 100, "aten::mm"),
        timed(130, 30, "aten::empty"),
        timed(170, 50, "CheckpointFunction"),
        timed(230, 101, "aten::bmm"),
    ).analysis()
    (section,) = (each for each in trace_outline(analysis).sections if each.heading.startswith("Costliest operators"))
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    assert [[cell.text for cell in (row.cells[0], *row.cells[3:])] for row in table.rows] == [
        ["101 ns", "50 ns", "51 ns", "kernel", "aten::bmm"],
        ["100 ns", "50 ns", "50 ns", "dispatcher", "aten::mm"],
        ["50 ns", "", "", "python", "CheckpointFunction"],
        ["30 ns", "", "", "allocation", "aten::empty"],
        ["10 ns", "10 ns", "0 ns", "dispatcher", "aten::view"],
    ]


def test_a_page_shows_every_figure_of_the_evidence() -> None:
    line = f"transformers/models/{'x' * 50}/modeling.py(218): forward"
    evidence = tuple(Evidence(f"{'k' * 70}{at}", 48, 650_400 + at, "Qwen2DecoderLayer_18", line) for at in range(3))
    finding = Finding(
        "fusible_kernels", "compute", "0", "it", 2_000_000, evidence, "", "fuse", share=0.5, sentence="it"
    )
    page = page_of(Outline("t", "", finding_sections([finding])), CLASSIFIER)
    assert page.count("650.4 µs at …") == page.count("forward in Qwen2DecoderLayer_18</p>") == 3
