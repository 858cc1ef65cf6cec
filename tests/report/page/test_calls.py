"""The page of a call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from overhead_lens.directories import load_directory
from overhead_lens.report.outlines.breakdown import breakdown_outline
from overhead_lens.taxonomy.host import HostCategory
from tests.drawn.captures import draw_capture
from tests.drawn.stacks import CLASSIFIER
from tests.report.page.seen import words


def test_where_the_trace_divides_a_call_its_stacks_are_said_to_differ(tmp_path: Path) -> None:
    budget = load_directory(draw_capture(tmp_path / "capture"), CLASSIFIER)
    said = words(breakdown_outline(replace(budget, capture=str(tmp_path / "capture"))), "Sampled stacks")
    assert said == ["300 stacks; the whole width is 1.00 µs per call."]
    host = tuple(
        HostCategory(each.category, ns, (ns, ns), ns / 1_000, "trace")
        for each in budget.host
        for ns in [1_000 if each.category == "kernel" else 0]
    )
    traced = replace(budget, capture=str(tmp_path / "capture"), host=host)
    assert words(breakdown_outline(traced), "Sampled stacks")[1:] == [
        "Other evidence corrects these stacks in the budget: python 0 ns (by stacks 1.00 µs), kernel 1.00 µs (by stacks 0 ns).",
    ]
