"""Two traces compared by structure."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from overhead_lens.documents.analysis import structure_document
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.report.forms import print_text
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.structure.compare import compare_structure
from overhead_lens.traces.structure.model import SelfTime, StructureChange, StructureDelta, Swap
from overhead_lens.traces.structure.names import matched, stable_name
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
    return compare_structure(Analyzer(base, CLASSIFIER), Analyzer(new, CLASSIFIER))


def printed(delta: StructureDelta) -> str:
    out = io.StringIO()
    print_text(Console(file=out, width=100), delta)
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


def test_three_steps_do_not_differ_from_five_on_a_device_that_is_behind() -> None:
    """Two kernels of 750 ns in each step of 1000 ns: the last ones run after the last step."""
    delta = compared(behind(3), behind(5))
    assert delta.is_same
    assert [each for each in delta.changes if each.kind == "kernel"] == [
        StructureChange("kernel", "A", "same", 6, 10, 4500, 7500, 0)
    ]


def behind(steps: int) -> Trace:
    """The steps of ``mm`` on a device that takes longer than the host."""
    entries = []
    for step in range(steps):
        entries.append(timed(step * 1000, 1000, f"ProfilerStep#{step}", "user_annotation"))
        for number, at in enumerate((step * 1000 + 20, step * 1000 + 120)):
            start = 50 + 750 * (2 * step + number)
            entries.append(timed(at, 10, "cudaLaunchKernel", "cuda_runtime", correlation=at))
            entries.append(timed(start, 750, "A", "kernel", (0, 7), device=0, stream=7, correlation=at))
    return trace_of(entries)


def test_without_steps_totals_are_compared() -> None:
    delta = compared(mm(3, marked=False), mm(5))
    assert (delta.per_step, {change.status for change in delta.changes}) == (False, {"changed"})
    assert "compared in all, because not both traces have steps." in " ".join(printed(delta).split())


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
        "operator events and time kernel",
        "aten::mm - 2x 20 ns A",
        "+ 2x 40 ns B",
    ]


def test_what_happens_in_one_of_thirty_steps_is_not_said_to_happen_in_none() -> None:
    once = trace_of(
        [
            timed(30_000, 10, "aten::once"),
            *(timed(at * 1000, 1000, f"ProfilerStep#{at}", "user_annotation") for at in range(31)),
        ]
    )
    assert "0.0323 → 0  vanished  aten::once" in printed(compared(once, mm(5)))


@pytest.mark.parametrize(
    ("name", "stable"),
    [
        (f"## Call CompiledFxGraph f{'q' * 51} ##", "## Call CompiledFxGraph … ##"),
        ("call <0x7f12ab34cd>", "call <0x…>"),
        ("triton_poi_fused_add_3", "triton_poi_fused_add_3"),
        ("ncclKernel_SendRecv_int8_t(ncclWorkElem)", "ncclKernel_SendRecv_int8_t"),
        ("void f<g(int)::{lambda(int)#1}>(int, h<2>(char))", "f<g(int)::{lambda(int)#1}>"),
        ("Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH (Device -> Pageable)"),
        ("(between events)", "(between events)"),
        ("a/b.py(12): f", "a/b.py: f"),
    ],
)
def test_only_what_differs_from_run_to_run_is_left_out(name: str, stable: str) -> None:
    assert stable_name(name) == stable


def test_functions_are_matched_without_their_file_unless_two_have_the_name() -> None:
    base, new = matched(["a.py(1): f", "a.py(9): g", "b.py(9): g"], ["moved.py(3): f", "a.py(8): g", "aten::f"])
    assert base == {"a.py(1): f": "f", "a.py(9): g": "a.py: g", "b.py(9): g": "b.py: g"}
    assert new == {"moved.py(3): f": "f", "a.py(8): g": "a.py: g", "aten::f": "aten::f"}


def test_self_times_say_what_makes_the_difference() -> None:
    """Steps of 1000 ns: 2 x 40 ns are of aten::mm, 2 x 10 of launches, the rest of the step's mark."""
    host, device = compared(mm(3), mm(5, "void A(int)", 25)).divided
    assert (host.where, {each.name: (each.base_ns, each.new_ns) for each in host.names}) == (
        "host",
        {"aten::mm": (80, 80), "cudaLaunchKernel": (20, 20), "ProfilerStep#…": (900, 900)},
    )
    assert device.names == (SelfTime("(idle)", 980, 950), SelfTime("A", 20, 50))
    assert printed(compared(mm(3), mm(5, "B", 25))).splitlines()[3].startswith("step 1.00 µs → 1.00 µs (1.00x)")


NAMES = ["aten::mm", "a.py(1): f", "b.py(2): f", "cudaLaunchKernel"]
KERNELS = ["A", "void A(int)", "B<2>(char)", "Memcpy HtoD (Pageable -> Device)"]
EVENT = st.tuples(st.integers(0, 3000), st.integers(0, 700))
SIDE = st.tuples(
    st.lists(st.integers(1, 500), max_size=4),
    st.lists(st.tuples(EVENT, st.sampled_from(NAMES)), max_size=10),
    st.lists(st.tuples(EVENT, st.sampled_from(KERNELS), st.integers(7, 8)), max_size=10),
)


def drawn_side(steps: list[int], host: list, device: list) -> Trace:
    entries, at = [], 0
    for number, dur in enumerate(steps):
        entries.append(timed(at, dur, f"ProfilerStep#{number}", "user_annotation"))
        at += dur + 10
    cats = {name: "python_function" if ".py" in name else "cpu_op" for name in NAMES} | {
        "cudaLaunchKernel": "cuda_runtime"
    }
    entries += [timed(start, dur, name, cats[name]) for (start, dur), name in host]
    entries += [
        timed(start, dur, name, "kernel", (0, stream), device=0, stream=stream) for (start, dur), name, stream in device
    ]
    return trace_of(entries)


@settings(max_examples=50)
@given(base=SIDE, new=SIDE)
def test_self_times_sum_to_the_difference(base: tuple, new: tuple) -> None:
    delta = compared(drawn_side(*base), drawn_side(*new))
    wall_ns, steps = delta.base.wall_ns, max(1, delta.base.steps)
    assert abs(delta.base.step_ns * steps - wall_ns) * 2 <= steps
    for divided in delta.divided:
        assert sum(each.delta_ns for each in divided.names) == delta.new.step_ns - delta.base.step_ns
        assert len({each.name for each in divided.names}) == len(divided.names)
        sizes = [abs(each.delta_ns) for each in divided.names]
        assert sizes == sorted(sizes, reverse=True)


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


def longer(operators: int) -> list[str]:
    """The report of operators, each of which takes longer by its number."""
    base, new = (
        trace_of([timed(100 * at, 10 + at * more, f"aten::op_{at}") for at in range(operators)]) for more in (0, 1)
    )
    return printed(compared(base, new)).splitlines()


def test_a_name_that_is_left_out_alone_is_in_the_singular() -> None:
    assert any(line.endswith("(1 other)") for line in longer(25))


def test_the_row_for_the_other_names_stays_in_a_brief_table() -> None:
    """Of forty operators 25 are rows, 12 of them brief, and 15 are one row."""
    lines = longer(40)
    (more,) = (at for at, line in enumerate(lines) if "13 more" in line)
    (others,) = (at for at, line in enumerate(lines) if "others)" in line)
    assert more < others < next(at for at, line in enumerate(lines) if at > others and "sum" in line)
