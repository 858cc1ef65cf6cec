"""The page of a call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from overhead_lens.directories import load_directory
from overhead_lens.report.outlines.breakdown import breakdown_outline
from overhead_lens.report.outlines.delta import delta_outline
from overhead_lens.stored import compare_captures
from overhead_lens.taxonomy.host import HostCategory
from tests.drawn.captures import LOOP, ROW, complete, draw_capture
from tests.drawn.stacks import CLASSIFIER
from tests.report.page.seen import words


def test_the_blocks_of_one_process_and_those_that_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.mkdir()
    rows = [{**ROW, "block": block, "reference_ns": 70 if block == 4 else 7} for block in range(5)]
    budget = load_directory(complete(path, rows, [f"main (worker.py:1);{LOOP};work (a.py:1) 100"]), CLASSIFIER)
    assert words(breakdown_outline(budget), "Wall time per process") == [
        "Timed blocks of 1 process; median of each (line): 1.00 µs.",
        "Left out: 2 of 5 blocks, beside which the reference loop shows a disturbed machine.",
    ]


def test_what_cannot_be_advised_from_its_capture_is_not_said_to_be(tmp_path: Path) -> None:
    path = draw_capture(tmp_path / "my capture", has_arguments=True)
    budget = load_directory(path, CLASSIFIER)
    of_a_lambda = replace(budget, subject=replace(budget.subject, kind="callable"))
    assert breakdown_outline(budget).ends == [f"capture: {path}", "try: ol.advise with the same function and arguments"]
    assert breakdown_outline(of_a_lambda).ends == [f"capture: {path}"]


def test_where_the_trace_divides_a_call_its_stacks_are_said_to_differ(tmp_path: Path) -> None:
    budget = load_directory(draw_capture(tmp_path / "capture"), CLASSIFIER)
    budget = replace(budget, capture=str(tmp_path / "capture"))
    host = tuple(
        HostCategory(each.category, ns, (ns, ns), ns / 1_000, "trace")
        for each in budget.host
        for ns in [1_000 if each.category == "kernel" else 0]
    )
    traced = replace(budget, host=host)
    differs = "Other evidence corrects these stacks in the budget, here on the scale of the stacks: python 0 ns (by stacks 1.00 µs), kernel 1.00 µs (by stacks 0 ns)."
    whole = "300 stacks; the whole width is 1.00 µs per call."
    assert words(breakdown_outline(budget), "Sampled stacks") == [whole]
    assert words(breakdown_outline(traced), "Sampled stacks") == [whole, differs]
    delta = compare_captures(tmp_path / "capture", tmp_path / "capture", CLASSIFIER, 0.01)
    page = delta_outline(replace(delta, base=budget, new=traced))
    assert words(page, "Stacks of both sides")[1:] == [f"new: {differs}"]
