"""Two traces compared by structure."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from overhead_lens.documents.structure import structure_document
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.report.text.structure import print_structure
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.structure.compare import compare_structure, stable_name
from overhead_lens.traces.structure.model import StructureChange, StructureDelta, Swap
from tests.documents import validated
from tests.drawn.timelines import CLASSIFIER, timed, trace_of
from tests.public_traces import public_trace


def mm(steps: int, kernel: str = "A", kernel_ns: int = 10, *, marked: bool = True) -> Trace:
    """Steps of 1000 ns, each with two ``aten::mm`` of 50 ns that launch one kernel each."""
    entries = []
    for step in range(steps):
        if marked:
            entries.append(timed(step * 1000, 1000, f"ProfilerStep#{step}", "user_annotation"))
        for at in (step * 1000 + 10, step * 1000 + 110):
            entries.append(timed(at, 50, "aten::mm"))
            entries.append(timed(at + 10, 10, "cudaLaunchKernel", "cuda_runtime", correlation=at))
            entries.append(timed(at + 30, kernel_ns, kernel, "kernel", (0, 7), device=0, stream=7, correlation=at))
    return trace_of(entries)


def compared(base: Trace, new: Trace) -> StructureDelta:
    return compare_structure(base, new, Analyzer(base, CLASSIFIER).analysis(), Analyzer(new, CLASSIFIER).analysis())


def printed(delta: StructureDelta) -> str:
    out = io.StringIO()
    print_structure(Console(file=out, width=100), delta)
    return out.getvalue()


def test_three_steps_do_not_differ_from_five() -> None:
    delta = compared(mm(3), mm(5))
    assert (delta.is_same, delta.per_step, delta.swaps) == (True, True, ())
    assert delta.changes == (
        StructureChange("operator", "aten::mm", "same", 6, 10, 300, 500, 0),
        StructureChange("kernel", "A", "same", 6, 10, 60, 100, 0),
        StructureChange("launch", "cudaLaunchKernel", "same", 6, 10, 60, 100, 0),
    )
    assert "The same operators, kernels and launches per step." in printed(delta)


def test_without_steps_totals_are_compared() -> None:
    delta = compared(mm(3, marked=False), mm(5))
    assert (delta.per_step, {change.status for change in delta.changes}) == (False, {"changed"})
    assert "totals are compared" in printed(delta)


def test_a_kernel_by_another_name_is_one_swap_of_its_operator() -> None:
    delta = compared(mm(3), mm(5, "B", 20))
    assert [(each.name, each.status, each.delta_ns) for each in delta.changes if each.kind == "kernel"] == [
        ("B", "appeared", 40),
        ("A", "vanished", -20),
    ]
    assert delta.swaps == (Swap("aten::mm", ("A",), ("B",), 6, 10, 60, 200),)


def test_swaps_are_printed_per_step() -> None:
    lines = [" ".join(line.split()) for line in printed(compared(mm(3), mm(5, "B", 20))).splitlines()]
    assert lines[-3:] == [
        "other kernels under the same operator per step",
        "aten::mm 2x 20 ns - A",
        "2x 40 ns + B",
    ]


@pytest.mark.parametrize(
    ("name", "stable"),
    [
        (f"## Call CompiledFxGraph f{'q' * 51} ##", "## Call CompiledFxGraph … ##"),
        ("call <0x7f12ab34cd>", "call <0x…>"),
        ("triton_poi_fused_add_3", "triton_poi_fused_add_3"),
    ],
)
def test_only_what_differs_from_run_to_run_is_left_out(name: str, stable: str) -> None:
    assert stable_name(name) == stable


def public(name: str) -> Trace:
    return read_trace(public_trace(name))


def test_a_recorded_trace_is_the_same_as_itself() -> None:
    trace = public("hta_sampled_rank0")
    delta = compared(trace, trace)
    assert (delta.is_same, delta.swaps, {each.delta_ns for each in delta.changes}) == (True, (), {0})


def test_two_recorded_ranks() -> None:
    delta = compared(public("hta_sampled_rank0"), public("hta_sampled_rank1"))
    assert (delta.base.steps, delta.new.steps, delta.base.events, delta.new.events) == (2, 2, 4737, 4610)
    sizes = [abs(each.delta_ns) for each in delta.changes]
    assert sizes == sorted(sizes, reverse=True)
    assert validated(structure_document(delta).to_json())["schema"] == "overhead-lens/structure/1"
