"""From drawn evidence to a budget: exact integers that close."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.budget.make import Budget, make_budget
from overhead_lens.budget.model import Breakdown, Closure, CompileNote, GuardTree, Operator, Wall
from overhead_lens.errors import InvariantError, MeasurementError
from overhead_lens.scenario import Work
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.host import HostCategory, Part
from tests.drawn.builders import breakdown
from tests.drawn.captures import evidence
from tests.drawn.stacks import BINDING, CLASSIFIER, ENTRY, USER, stack
from tests.drawn.timelines import events

KERNEL = "at::native::AVX2::copy_kernel (libtorch_cpu.so)"
EMPTY = "at::detail::empty_cpu (libtorch_cpu.so)"
TREE = "torch::dynamo::(anonymous namespace)::RootGuardManager::check_nopybind_template<F> (libtorch_python.so)"
TENSOR = "torch::dynamo::(anonymous namespace)::TENSOR_MATCH::check_nopybind (libtorch_python.so)"


def meta(**changes: Any) -> dict[str, Any]:
    base = {
        "scenario": "drawn",
        "variant": "drawn",
        "compile": False,
        "device": "cpu",
        "params": {},
        "work": {"units": 1, "flops": 0, "bytes": 80},
        "work_known": True,
        "peaks": {"copy": [{"bytes": 1 << 20, "bytes_per_s": 4e10}], "flops_per_s": 1e11},
        "trace": {"calls": 2, "traced_wall_ns": 200, "bare_wall_ns": 200, "operator_floor_ns": 30},
        "samples": {},
        "guards": None,
    }
    return {**base, **changes}


def clock(wall_ns: int, *, faults: int = 0, system_ns: int = 0) -> pd.DataFrame:
    row = {
        "calls": 10,
        "wall_ns": 10 * wall_ns,
        "reference_ns": 100,
        "minor_faults": 10 * faults,
        "system_ns": 10 * system_ns,
    }
    return pd.DataFrame([{"process": process, "block": block, **row} for process in range(5) for block in range(4)])


def budget(stacks: list[Stack], frame: pd.DataFrame, events: pd.DataFrame | None = None, **changes: Any) -> Budget:
    return make_budget(evidence(meta(**changes), frame, [stacks] if stacks else [], events), CLASSIFIER)


def ns(found: Budget) -> dict[str, int]:
    return {each.category: each.ns for each in found.breakdown.host if each.ns}


def parts(found: Budget, category: str) -> dict[str, int]:
    return {part.name: part.ns for part in found.breakdown.category(category).parts if part.ns}


def test_wall_times_shares() -> None:
    stacks = [stack(USER, count=50), stack(USER, BINDING, count=10), stack(USER, BINDING, ENTRY, KERNEL, count=40)]
    found = budget(stacks, clock(1_000))
    assert ns(found) == {"python": 600, "kernel": 400}
    assert parts(found, "python") == {"user": 500, "binding": 100}
    assert found.breakdown.wall.floor_ns == 2.0
    assert [frame.ns for frame in found.breakdown.category("python").top] == [500, 100]


def test_arithmetic_of_narrow_types_has_no_known_peak() -> None:
    work = {"units": 1, "flops": 100_000, "bytes": 80}
    wide = ("float32", "float64", "complex64", "int64", "float", "double", "float32 (batch 16)", "1024x16")
    narrow = ("bfloat16", "torch.float16", "float8_e4m3fn", "int8", "torch.half", "bf16", "complex32")
    floors = {
        dtype: budget([stack(USER)], clock(200), work=work, params={"dtype": dtype}).breakdown.wall.floor_ns
        for dtype in (*wide, *narrow)
    }
    assert floors == pytest.approx({**dict.fromkeys(wide, 1_000.0), **dict.fromkeys(narrow, 2.0)})


def test_the_wall_is_the_steady_time_of_blocks_in_pieces() -> None:
    found = budget([stack(USER, count=50)], clock(1_000).assign(steady_ns=8_000))
    assert ns(found) == {"python": 800}
    assert set(found.blocks["call_ns"]) == {800.0}
    assert set(found.blocks["mean_ns"]) == {1_000.0}


def test_blocks_know_their_compilation() -> None:
    frame = clock(1_000)
    stacks = [stack(USER, count=50)]
    assert set(budget(stacks, frame).blocks["compilation"]) == {0}
    found = budget(stacks, frame.assign(compilation=frame["block"] // 2)).blocks
    assert found["compilation"].tolist() == (found["block"] // 2).tolist() == [0, 0, 1, 1] * 5


@settings(max_examples=40)
@given(
    counts=st.lists(st.integers(0, 500), min_size=5, max_size=5).filter(any),
    wall_ns=st.integers(20, 10**8),
    faults=st.integers(0, 50),
)
def test_the_budget_always_closes(counts: list[int], wall_ns: int, faults: int) -> None:
    paths = [
        (USER,),
        (USER, BINDING),
        (USER, BINDING, ENTRY),
        (USER, BINDING, ENTRY, EMPTY),
        (USER, BINDING, ENTRY, KERNEL),
    ]
    stacks = [stack(*path, count=count) for path, count in zip(paths, counts, strict=True) if count]
    found = budget(stacks, clock(wall_ns, faults=faults, system_ns=wall_ns // 3)).breakdown
    assert sum(each.ns for each in found.host) == found.wall.ns == wall_ns
    assert found.closure.residual_ns == 0
    for each in found.host:
        assert each.ci95_ns[0] <= each.ns <= each.ci95_ns[1]
    assert found.operators is not None
    assert found.operators.total_ns == wall_ns


def test_page_faults_move_from_kernel_to_allocation() -> None:
    stacks = [
        stack(USER, BINDING, ENTRY, KERNEL, count=90),
        stack(USER, BINDING, ENTRY, "munmap (libc.so.6)", count=10),
    ]
    found = budget(stacks, clock(100_000, faults=50, system_ns=40_000))
    # 40,000 ns in the system, of which 10 % of the call are the sampled munmap: 30,000 ns of faults.
    assert ns(found) == {"allocation": 40_000, "kernel": 60_000}
    assert parts(found, "allocation") == {"storage": 10_000, "page_fault": 30_000}
    # The frames and the operator tree tell the same story as the categories.
    assert [frame.ns for frame in found.breakdown.category("kernel").top] == [60_000]
    assert [frame.ns for frame in found.breakdown.category("allocation").top] == [30_000, 10_000]
    assert found.breakdown.operators is not None
    (add,) = found.breakdown.operators.children
    assert add.categories == {"kernel": 60_000, "allocation": 40_000}


def test_page_faults_take_time_of_the_thread_too() -> None:
    measured = [
        {"process": 0, "faults": 1_000, "user_ns": 150_000},
        {"process": 1, "faults": 2_000, "user_ns": 100_000},
        {"process": 2, "faults": 0, "user_ns": 0},
    ]
    stacks = [stack(USER, BINDING, ENTRY, KERNEL, count=90_000), stack(USER, BINDING, ENTRY, count=10_000)]
    found = budget(stacks, clock(100_000, faults=50, system_ns=40_000), page_faults=measured)
    # 40,000 ns in the system and 50 times 100 ns, the mean of 150 and 50, on the way there and back.
    assert ns(found) == {"dispatcher": 10_000, "allocation": 45_000, "kernel": 45_000}
    low, high = found.breakdown.category("allocation").ci95_ns
    # Either process alone: 50 or 150 ns of a fault; never having seen another allocation adds some ns.
    assert low == pytest.approx(42_500, abs=100)
    assert high == pytest.approx(47_500, abs=100)


def test_page_faults_wait_for_a_core_as_all_else_does() -> None:
    """The thread ran half of the time, of which 10 % of the call it waited for a device."""
    stacks = [
        stack(USER, BINDING, ENTRY, KERNEL, count=90),
        stack(USER, "cudaDeviceSynchronize (libcudart.so.13)", count=10),
    ]
    rows = clock(100_000, faults=50, system_ns=20_000).assign(cpu_ns=10 * 45_000)
    assert ns(budget(stacks, rows)) == {"allocation": 40_000, "kernel": 50_000, "wait": 10_000}
    # Running while it waits, as a device's driver does, shortens nothing.
    rows = rows.assign(cpu_ns=10 * 100_000)
    assert ns(budget(stacks, rows)) == {"allocation": 20_000, "kernel": 70_000, "wait": 10_000}


def test_reading_before_a_cold_call_is_no_time_of_the_call() -> None:
    """The same thread reads memory before each call, for five times as long as the call takes."""
    stacks = [
        stack(USER, BINDING, ENTRY, KERNEL, count=80),
        stack(USER, BINDING, ENTRY, "munmap (libc.so.6)", count=10),
        stack(USER, "take_gil (libpython3.11.so.1.0)", count=10),
    ]
    rows = clock(100_000, faults=50, system_ns=40_000).assign(cpu_ns=10 * 600_000)
    found = budget(stacks, rows, environment={"caches": "caches displaced by 64 MB"})
    assert ns(found) == {"allocation": 40_000, "kernel": 50_000, "wait": 10_000}
    assert parts(found, "allocation") == {"storage": 10_000, "page_fault": 30_000}


def test_system_time_of_input_is_not_that_of_page_faults() -> None:
    stacks = [
        stack(USER, BINDING, ENTRY, KERNEL, count=60),
        stack(USER, "read (libc.so.6)", count=30),
        stack(USER, count=10),
    ]
    rows = clock(100_000, faults=50, system_ns=40_000)
    # The file is in memory: the call ran all the time, 30,000 ns of it in read.
    found = budget(stacks, rows.assign(cpu_ns=10 * 100_000))
    assert ns(found) == {"python": 10_000, "allocation": 10_000, "kernel": 50_000, "wait": 30_000}
    # It slept for 20,000 ns of them, until the file was there.
    found = budget(stacks, rows.assign(cpu_ns=10 * 80_000))
    assert ns(found) == {"python": 10_000, "allocation": 30_000, "kernel": 30_000, "wait": 30_000}


def test_a_call_waits_no_longer_than_its_cpu_clock_leaves() -> None:
    """It hands half of its work to another thread; the sampler, on their core, finds it waiting in three of four stacks."""
    stacks = [
        stack(USER, BINDING, ENTRY, KERNEL, count=90),
        stack(USER, TREE, count=60),
        stack(USER, "futex (libc.so.6)", count=450),
    ]
    found = budget(stacks, clock(1_000).assign(cpu_ns=10 * 500))
    assert ns(found) == {"guard": 200, "kernel": 300, "wait": 500}
    assert [guard.sampled_ns for guard in found.breakdown.guards] == [pytest.approx(200)]
    assert found.breakdown.operators is None
    assert {category: sum(counts) for (category, _), counts in found.process_stacks.items()} == pytest.approx(
        {"guard": 120, "kernel": 180, "wait": 300}
    )
    assert (
        "stacks show threads waiting too often (the call 75%, by CPU clock at most 50%): py-spy often stops"
        " a thread only once it waits; the budget keeps to the CPU clock"
    ) in found.breakdown.warnings


def test_calls_for_memory_are_awake_for_as_long_as_the_cpu_clock_leaves() -> None:
    """Stacks show it asleep for 60 % of the time, its clock for 20 %: what they show it doing awake takes twice as long."""
    stacks = [
        stack(USER, BINDING, ENTRY, KERNEL, count=180),
        stack(USER, BINDING, ENTRY, "munmap (libc.so.6)", count=60),
        stack(USER, "futex (libc.so.6)", count=360),
    ]
    found = budget(stacks, clock(100_000, faults=50, system_ns=40_000).assign(cpu_ns=10 * 80_000))
    # 40,000 ns in the system, half of them in munmap.
    assert ns(found) == {"allocation": 40_000, "kernel": 40_000, "wait": 20_000}
    assert parts(found, "allocation") == {"storage": 20_000, "page_fault": 20_000}


def test_time_that_few_stacks_show_awake_lacks_no_rule() -> None:
    stacks = [stack(USER, count=20), stack(USER, "futex (libc.so.6)", count=180)]
    found = budget(stacks, clock(1_000).assign(cpu_ns=10 * 500))
    assert ns(found) == {"python": 100, "wait": 500, "unattributed": 400}
    (warned,) = [line for line in found.breakdown.warnings if " is unattributed: " in line]
    assert warned == "40.0% (400 ns) is unattributed: the thread's CPU clock ran while its stacks show it waiting"


def test_only_a_hot_loop_reads_caches() -> None:
    levels = [
        {"level": "L2", "bytes": 1 << 20, "capacity_bytes": 2 << 20, "bytes_per_s": 2e11},
        {"level": "DRAM", "bytes": 1 << 27, "capacity_bytes": None, "bytes_per_s": 2.5e10},
    ]
    peaks, work = {"copy": levels, "flops_per_s": 1e11}, {"units": 1, "flops": 0, "bytes": 1_000_000}

    def read_caches(**environment: str) -> bool:
        made = budget([stack(USER)], clock(10_000), peaks=peaks, work=work, environment=environment)
        return any("repeated calls read cache" in line for line in made.breakdown.warnings)

    assert read_caches()
    assert not read_caches(caches="caches displaced by 64 MB")


def test_page_faults_are_a_share_of_what_their_blocks_ran() -> None:
    """One block of four was five times as long, in its faults too: the steady call had fewer."""
    stacks = [stack(USER, BINDING, ENTRY, KERNEL)]
    rows = clock(100_000, faults=50, system_ns=20_000)
    disturbed = rows["block"] == 3
    for name in ("wall_ns", "system_ns"):
        rows.loc[disturbed, name] *= 5
    rows = rows.assign(cpu_ns=rows["wall_ns"], steady_ns=10 * 100_000)
    assert ns(budget(stacks, rows)) == {"allocation": 20_000, "kernel": 80_000}


def test_page_faults_take_no_more_than_the_kernel_has() -> None:
    measured = [{"process": 0, "faults": 1, "user_ns": 500}]
    stacks = [stack(USER, BINDING, ENTRY, KERNEL, count=30), stack(USER, count=70)]
    found = budget(stacks, clock(100_000, faults=50, system_ns=20_000), page_faults=measured)
    assert ns(found) == {"python": 70_000, "allocation": 30_000}


def test_page_faults_are_said() -> None:
    found = budget([stack(USER, BINDING, ENTRY, KERNEL)], clock(100_000, faults=50, system_ns=40_000)).breakdown
    assert (
        "50 page faults per call take 40.00 µs (40% of it): the call gets fresh memory every time;"
        " give it an output to write to, or keep malloc from returning its pages"
    ) in found.warnings


def test_system_time_without_faults_stays_where_it_is() -> None:
    found = budget([stack(USER, BINDING, ENTRY, KERNEL)], clock(100_000, faults=0, system_ns=40_000))
    assert ns(found) == {"kernel": 100_000}


def test_guard_rows_sum_to_the_category() -> None:
    listed = [
        {"type": "TENSOR_MATCH", "text": "check_tensor(...)", "source": "L['x']"},
        {"type": "TENSOR_MATCH", "text": "check_tensor(...)", "source": "L['y']"},
        {"type": "GLOBAL_STATE", "text": "___check_global_state()", "source": "L"},
    ]
    lookup = "lookup (libtorch_python.so)"
    stacks = [
        stack(USER, count=40),
        stack(lookup, TREE, count=10),
        stack(lookup, TREE, TENSOR, count=30),
        stack("get_backend (libtorch_python.so)", count=20),
    ]
    found = budget(stacks, clock(1_000), guards={"guards": listed}, compile=True).breakdown
    assert [(guard.guard, guard.sampled_ns) for guard in found.guards] == [
        ("BACKEND_MATCH", 200.0),
        ("TENSOR_MATCH L['x']", 150.0),
        ("TENSOR_MATCH L['y']", 150.0),
        ("cache lookup and walk of the guard tree", 100.0),
        ("GLOBAL_STATE ___check_global_state()", 0.0),
    ]
    assert found.category("guard").ns == 600
    assert {guard.warm_ns for guard in found.guards} == {None}


def test_timed_guards_sum_to_the_tree() -> None:
    timed = [
        {"type": "TENSOR_MATCH", "text": "", "source": "L['x']", "warm_ns": [30.0, 40.0, 35.0], "cold_ns": 900.0},
        {"type": "GLOBAL_STATE", "text": "", "source": "", "warm_ns": [-2.0, -1.0, 1.0], "cause": "a.py:3 in f: x"},
        {"type": "LAMBDA_GUARD", "text": "f()", "source": "", "warm_ns": None, "reason": "no value"},
    ]
    tree = {"warm_ns": [float(at) for at in range(601, 616)], "cold_ns": 5_000.0}
    found = budget([stack(USER)], clock(1_000), guards={"guards": timed, "tree": tree}, compile=True).breakdown
    rows = {guard.guard: (guard.warm_ns, guard.warm_ci95_ns, guard.cold_ns, guard.cause) for guard in found.guards}
    assert rows == {
        "cache lookup and walk of the guard tree": (608.0 - 35.0, None, None, None),
        "TENSOR_MATCH L['x']": (35.0, (30.0, 40.0), 900.0, None),
        "GLOBAL_STATE": (0.0, (-2.0, 1.0), None, "a.py:3 in f: x"),
        "LAMBDA_GUARD f()": (None, None, None, None),
    }
    # The 4th and the 12th of 15: both hold the median in 96.5 % of cases.
    assert found.guard_tree == GuardTree(608.0, (604.0, 612.0), 5_000.0)
    assert sum(guard.warm_ns or 0.0 for guard in found.guards) == found.guard_tree.warm_ns


def test_why_it_was_compiled_again() -> None:
    noted = {
        "compilations": [
            {"name": "f", "place": "a.py:1", "reason": None, "seconds": 1.0},
            {"name": "f", "place": "a.py:1", "reason": "size mismatch", "seconds": 1.0},
        ],
        "graph_breaks": [{"reason": "print", "place": "a.py:2"}] * 2,
    }
    found = budget([stack(USER)], clock(1_000), guards=noted, compile=True).breakdown
    assert found.compile_notes == (
        CompileNote("recompiled", "a.py:1", "size mismatch"),
        CompileNote("graph break", "a.py:2", "print"),
    )


TRACE = events(
    ("measured_loop", "user_annotation", 0, 200),
    ("aten::add", "cpu_op", 10, 80),
    ("aten::empty", "cpu_op", 20, 20),
    ("aten::add", "cpu_op", 110, 80),
    ("aten::empty", "cpu_op", 120, 20),
)


def test_without_samples_the_trace_decides_and_says_so() -> None:
    found = budget([], clock(100), TRACE, samples={"reason": "no permission"})
    # Per call: 20 ns outside of any operator, 20 in empty, 60 in add: 30 of them what an operator takes at least.
    assert ns(found) == {"python": 20, "dispatcher": 30, "allocation": 20, "kernel": 30}
    assert {each.evidence for each in found.breakdown.host} == {"trace", "none"}
    assert found.breakdown.closure.trace_sum_ns == 100
    assert found.breakdown.operators is None
    assert "no samples (no permission): shares come from the corrected trace" in found.breakdown.warnings


BACKWARD = pd.concat(
    [
        events(
            ("measured_loop", "user_annotation", 0, 200),
            ("aten::empty", "cpu_op", 10, 40),
            ("aten::empty", "cpu_op", 110, 40),
        ),
        events(
            ("autograd::engine::evaluate_function: AddBackward0", "cpu_op", 55, 40),
            ("cudaLaunchKernel", "cuda_runtime", 60, 30),
            ("autograd::engine::evaluate_function: AddBackward0", "cpu_op", 155, 40),
            ("cudaLaunchKernel", "cuda_runtime", 160, 30),
        ).assign(tid=2),
        # No thread waits for this one.
        events(("aten::mul", "cpu_op", 0, 190)).assign(tid=3),
    ],
    ignore_index=True,
)
OVERSTATED = "the call waits for a backward pass on another thread, and stacks overstate that wait"
WAITS = (
    "torch::autograd::Engine::execute (libtorch_cpu.so)",
    "torch::autograd::Engine::thread_main (libtorch_cpu.so)",
    "pthread_cond_wait (libc.so.6)",
)


def test_a_backward_pass_on_another_thread_counts_where_the_trace_shows_it() -> None:
    by_trace = budget([], clock(100), BACKWARD, samples={"reason": "no permission"})
    # The node's own 10 ns are no kernel, whatever an operator takes at least: it launches one.
    assert ns(by_trace) == {"python": 20, "dispatcher": 10, "allocation": 40, "launch": 30}
    waiting = [stack(USER, count=50), stack(USER, *WAITS, count=50)]
    found = budget(waiting, clock(100), BACKWARD)
    assert ns(found) == ns(by_trace)
    assert found.breakdown.operators is None
    assert f"{OVERSTATED}: shares come from the corrected trace" in found.breakdown.warnings
    assert ns(budget(waiting, clock(100), TRACE)) == {"python": 50, "wait": 50}


def test_the_profilers_cost_is_taken_out() -> None:
    timing = {"calls": 2, "traced_wall_ns": 200, "bare_wall_ns": 160, "operator_floor_ns": 1_000}
    found = budget([], clock(80), TRACE, trace=timing)
    # 10 ns per event, half of it in the event and half in its parent; per call: loop 20 - 5, add 60 - 10, empty 20 - 5.
    assert ns(found) == {"python": 15, "dispatcher": 50, "allocation": 15}
    assert found.breakdown.closure.trace_sum_ns == 80


def test_work_is_known_only_where_the_scenario_defines_it() -> None:
    work = {"units": 2, "flops": 5, "bytes": 80}
    assert budget([stack(USER)], clock(300), None, work=work).breakdown.work == Work(2, 5, 80)
    unknown = budget([stack(USER)], clock(300), None, work=work, work_known=False).breakdown
    assert (unknown.work, unknown.wall.floor) == (None, None)


def test_a_kernel_that_no_rule_knows_is_said_where_the_trace_tells_how_many_operators_there_are() -> None:
    stacks = [stack(USER, BINDING, ENTRY, "at::native::foo (libtorch_cpu.so)")]
    (warned,) = [line for line in budget(stacks, clock(6_001), TRACE).breakdown.warnings if "no rule knows" in line]
    assert warned.startswith(
        "at::native::foo (libtorch_cpu.so) takes 6.00 µs by itself, more than setting up 2 operators"
    )
    for silent in (budget(stacks, clock(6_000), TRACE), budget(stacks, clock(90_000), None)):
        assert not any("no rule knows" in line for line in silent.breakdown.warnings)


def test_no_evidence_at_all() -> None:
    with pytest.raises(MeasurementError, match="has neither samples nor a trace"):
        budget([], clock(100))


def test_the_clock_says_how_long_rare_compilations_take() -> None:
    frame = clock(100).assign(compiles=0)
    frame.loc[3::4, "compiles"] = 1
    frame.loc[3::4, "wall_ns"] = [17_000, 17_000, 17_000, 33_000, 33_000]
    # Compilers at work disturb the reference loop beside.
    frame.loc[3::4, "reference_ns"] = 130
    compiling = stack(USER, "_compile (torch/_dynamo/convert_frame.py)", count=30)
    found = budget([stack(USER, count=60), stack(USER, BINDING, count=10), compiling], frame)
    # 16,000 ns in one of four blocks of 10 calls each, whatever the number of stacks.
    assert ns(found) == {"python": 100, "compile": 400}
    assert parts(found, "python") == {"user": 86, "binding": 14}
    assert "compilations within the timed blocks: 5; the wall time holds them" in found.breakdown.warnings
    assert set(found.blocks["call_ns"]) == {500.0, 900.0}
    # What compilations differ by is in their own interval alone.
    assert found.breakdown.category("python").ci95_ns[1] == pytest.approx(100.0)
    assert found.breakdown.category("compile").ci95_ns[1] > 800.0


def test_compilations_that_no_stack_shows_are_left_out() -> None:
    frame = clock(100).assign(compiles=0)
    frame.loc[3, ["compiles", "wall_ns"]] = (2, 17_000)
    found = budget([stack(USER)], frame)
    assert ns(found) == {"python": 100}
    left_out = "compilations within the timed blocks: 2; the wall time leaves them out"
    assert left_out in found.breakdown.warnings


def test_constructors_refuse_what_does_not_close() -> None:
    good = breakdown(python=10)
    with pytest.raises(InvariantError, match="do not sum to the wall"):
        Breakdown(good.subject, Wall(11, (1.0, 20.0), 1, 1, 1, 0.0), good.host, Closure(10, 0, None, None, None))
    with pytest.raises(InvariantError, match="host categories are"):
        Breakdown(good.subject, good.wall, good.host[::-1], Closure(10, 0, None, None, None))
    with pytest.raises(InvariantError, match="parts of python do not sum"):
        HostCategory("python", 10, (1.0, 20.0), 1.0, "samples", (Part("user", 9),))
    with pytest.raises(InvariantError, match="is negative"):
        HostCategory("python", -1, (0.0, 1.0), 0.0, "samples")
    with pytest.raises(InvariantError, match="do not sum"):
        Operator("aten::add", 10, 4, {"kernel": 4}, ())
    assert tuple(each.category for each in good.host) == HOST_CATEGORIES
