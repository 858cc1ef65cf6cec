"""Findings of drawn traces: each bound to the nanosecond, what it rests on, where."""

from __future__ import annotations

from statistics import median_low
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.report.forms import to_html, to_json, to_text
from overhead_lens.traces.findings.model import Evidence, Finding
from tests.documents import validated
from tests.drawn.memory import memory
from tests.drawn.timelines import analyzer_of, call, drawn, kernel, timed

ADD = "void at::native::vectorized_elementwise_kernel<4>"
SYNCHRONIZE = "cudaStreamSynchronize"
LAUNCHED_ONE_BY_ONE = (
    drawn("[---------------------------)", "train.py(12): step", "python_function"),
    call("  [-)", 1),
    kernel("     [--)", 1),
    call("           [--)", 2),
    kernel("               [---)", 2),
    call("                      [-)", 3, "cudaGraphLaunch"),
    kernel("                          [-)", 3),
)


def findings(*entries: dict[str, Any]) -> dict[str, Finding]:
    return {each.id: each for each in analyzer_of(*entries).analysis().findings}


@settings(max_examples=60)
@given(walls_ns=st.lists(st.integers(2, 40), min_size=3, max_size=8))
def test_a_step_is_held_against_the_others(walls_ns: list[int]) -> None:
    """Half of each step, rounded down, is a copy; the rest is Python."""
    entries, at, expected = [], 0, []
    for number, wall_ns in enumerate(walls_ns):
        entries += [
            timed(at, wall_ns, f"ProfilerStep#{number}", "user_annotation"),
            timed(at, wall_ns // 2, "aten::copy_"),
            timed(at + wall_ns // 2, wall_ns - wall_ns // 2, "train.py(1): f", "python_function"),
        ]
        at += wall_ns
        others = walls_ns[:number] + walls_ns[number + 1 :]
        if wall_ns > 1.5 * median_low(others):
            halves = [(wall_ns - wall_ns // 2) - median_low(each - each // 2 for each in others)]
            expected.append(("slow_step" if number else "warm_up", wall_ns - median_low(others), *halves))
    found = [each for each in analyzer_of(*entries).analysis().findings if each.id in ("slow_step", "warm_up")]
    python = [next((each.ns for each in one.evidence if each.name == "python"), 0) for one in found]
    assert sorted(zip([one.id for one in found], [one.bound_ns for one in found], python, strict=True)) == sorted(
        expected
    )


def test_idle_time_that_a_graph_could_close() -> None:
    found = findings(*LAUNCHED_ONE_BY_ONE)["graphs_could_close_idle"]
    # Before the second kernel three of Python and three of its launch; one of the queue, and what a graph ends, do not count.
    assert (found.bound_ns, found.device, found.category, found.kind) == (6, "0", "python", "bound")
    step = "train.py(12): step"
    assert found.evidence == (Evidence("cudaLaunchKernel", 1, 3, line=step), Evidence(step, 1, 3, line=step))
    assert found.line == step


def test_the_host_bounds() -> None:
    analysis = analyzer_of(*LAUNCHED_ONE_BY_ONE).analysis()
    first = analysis.findings[0]
    assert (first.id, first.bound_ns, first.category) == ("host_bound", 11, "python")
    assert [(each.name, each.count, each.ns) for each in first.evidence] == [
        ("train.py(12): step", 1, 6),
        ("cudaLaunchKernel", 1, 3),
        ("cudaGraphLaunch", 1, 2),
    ]
    assert first.sentence == "launches by the host come 11 ns (39%) too late, mostly step (train.py:12) 6 ns"
    assert first.overlaps == ("graphs_could_close_idle (device 0)",)


@pytest.mark.parametrize(("until", "expected"), [(580, "slow_preparation"), (560, "host_work")])
def test_an_operator_that_launches_late_prepares_its_launch(until: int, expected: str) -> None:
    """One that launches nothing works on its own, though the device idles as long."""
    times = [*range(0, 80, 20), 570]
    found = findings(
        *(timed(at, 5, "cudaLaunchKernel", "cuda_runtime", correlation=1 + at) for at in times),
        *(timed(at + 6, 4, "k", "kernel", (0, 7), device=0, stream=7, correlation=1 + at) for at in times),
        timed(80, until - 80, "aten::cudnn_convolution"),
    )
    assert {"slow_preparation", "host_work"} & set(found) == {expected}
    one = found[expected]
    assert (one.bound_ns, one.category) == (500, "dispatcher")
    assert one.evidence[0] == Evidence("aten::cudnn_convolution", 1, min(until, 570) - 80)


@pytest.mark.parametrize(("later", "expected"), [(240, "slow_preparation"), (260, "host_work"), (490, "host_work")])
def test_an_operator_that_launches_late_every_time_prepares_nothing(later: int, expected: str) -> None:
    times = [*range(0, 80, 20), 570, 580 + later]
    found = findings(
        *(timed(at, 5, "cudaLaunchKernel", "cuda_runtime", correlation=1 + at) for at in times),
        *(timed(at + 6, 4, "k", "kernel", (0, 7), device=0, stream=7, correlation=1 + at) for at in times),
        timed(80, 500, "aten::_foreach_mul_"),
        timed(580, later + 10, "aten::_foreach_mul_"),
    )
    assert {"slow_preparation", "host_work"} & set(found) == {expected}


@pytest.mark.parametrize(("computing", "there"), [(9, True), (8, False)])
def test_a_device_bounds_that_computes_for_half_of_the_time(computing: int, there: bool) -> None:
    found = findings(
        call("[)", 1),
        kernel(f" [{'-' * (computing - 1)})", 1),
        call(" [)", 2),
        kernel(f"{' ' * 15}[)", 2),
        call(f"{' ' * 15}[---)", 3, SYNCHRONIZE),
    )
    assert ("device_bound" in found) == there
    if there:
        # Nothing is launched that waits for the second, but the host waits for it.
        assert (found["device_bound"].bound_ns, found["device_bound"].category) == (10, "compute")


def test_a_wait_is_exposed_as_far_as_the_device_idles_after_it() -> None:
    found = findings(
        drawn("[----------------)", "loop.py(3): train", "python_function"),
        drawn("  [--------)", "loss.py(7): item", "python_function"),
        call("[)", 1),
        kernel(" [-----)", 1),
        call("  [------)", 8, SYNCHRONIZE),
        call("             [)", 2),
        kernel("              [--)", 2),
        call("              [)", 9, SYNCHRONIZE),
    )["exposed_waits"]
    assert (found.bound_ns, found.device, found.line) == (7, "", "loss.py(7): item")
    assert found.evidence == (
        Evidence(SYNCHRONIZE, 2, 7 + 1, line="loss.py(7): item"),
        Evidence("waiting hidden behind the busy device", 2, 5 + 1),
    )


@pytest.mark.parametrize(("stalled", "there"), [(100_000, False), (100_001, True)])
def test_work_that_does_not_begin_is_no_copy_s_fault(stalled: int, there: bool) -> None:
    """The copy waits for a kernel that the device does not begin: without the copy it would not begin earlier."""
    place, begun = {"device": 0, "stream": 7}, 4_000 + stalled
    found = findings(
        timed(0, stalled + 8_000, "train.py(9): step", "python_function"),
        *(timed(at * 1_000, 1_000, "cudaMemcpyAsync", "cuda_runtime") for at in range(3)),
        timed(3_000, 1_000, "cudaLaunchKernel", "cuda_runtime", correlation=1),
        timed(begun, 2_000, "gemm", "kernel", (0, 7), correlation=1, **place),
        timed(5_000, stalled + 3_000, "cudaMemcpyAsync", "cuda_runtime", correlation=2),
        timed(begun + 2_000, 1_000, "Memcpy DtoH (Device -> Pageable)", "gpu_memcpy", (0, 7), correlation=2, **place),
    )
    assert ("stalled_queue" in found) == there
    # A usual call takes one of these microseconds. Two are idle after the kernel, two before it if the stall is too short to count.
    assert found["blocking_copies"].bound_ns == (2_000 if there else stalled)
    if there:
        stall = found["stalled_queue"]
        assert (stall.bound_ns, stall.category, stall.device) == (stalled, "queue", "0")
        assert stall.evidence == (Evidence("gemm", 1, stalled, line="train.py(9): step"),)
        assert stall.sentence == "launched work does not begin for 100.0 µs (93%), mostly gemm 100.0 µs at train.py:9"


def test_a_wait_behind_a_busy_device_spares_nothing() -> None:
    assert "exposed_waits" not in findings(
        call("[)", 1),
        call(" [)", 2),
        kernel(" [-----)", 1),
        kernel("       [-----)", 2),
        call("  [------)", 8, SYNCHRONIZE),
    )


def test_elementwise_kernels_one_after_the_other() -> None:
    found = findings(
        call("[-)", 1),
        call("  [--)", 2),
        call("     [)", 3),
        call("      [---)", 4),
        call("          [-----)", 5),
        call("                [----)", 6, "cudaGraphLaunch"),
        kernel("          [)", 1, ADD),
        kernel("           [)", 2, ADD),
        kernel("            [)", 3, ADD),
        kernel("             [)", 4),
        # Alone between others; on another stream; launched by a graph.
        kernel("                [)", 5, ADD),
        kernel("                 [)", 4, stream=9),
        kernel("                     [)", 6, ADD),
        kernel("                      [)", 6, ADD),
    )["fusible_kernels"]
    assert (found.bound_ns, found.evidence) == (2 + 3 + 1 - 3, (Evidence(ADD, 3, 6),))


def test_what_inductor_compiled_is_fused_as_far_as_it_can_be() -> None:
    assert "fusible_kernels" not in findings(
        call("[-)", 1),
        call("  [--)", 2),
        kernel("     [)", 1, "triton_poi_fused_add_0"),
        kernel("          [)", 2, "triton_poi_fused_mul_1"),
    )


def test_memory_from_the_driver_data_loading_and_pageable_copies() -> None:
    loading = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    found = findings(
        call("[--)", 7, "cudaMalloc"),
        call("    [-)", 8, "cudaFree"),
        drawn("        [------)", loading, "user_annotation"),
        drawn("          [--)", loading, "user_annotation"),
        call("                 [-----)", 1, "cudaMemcpyAsync"),
        call("                       [-)", 2, "cudaMemcpyAsync"),
        kernel("                  [---)", 1, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy"),
        kernel("                       [---)", 2, "Memcpy HtoD (Pinned -> Device)", "gpu_memcpy"),
    )
    allocations = found["driver_allocations"]
    assert (allocations.bound_ns, allocations.category, allocations.device) == (5, "allocation", "")
    assert allocations.evidence == (Evidence("cudaMalloc", 1, 3), Evidence("cudaFree", 1, 2))
    # One inside the other is waited for once.
    assert (found["data_loading"].bound_ns, found["data_loading"].evidence) == (7, (Evidence(loading, 2, 7),))
    # The call takes six, a usual one two; the copy runs for three of these four.
    assert (found["copies_to_device"].bound_ns, found["copies_to_device"].category) == (4, "wait")


def test_a_copy_that_waits_does_not_tell_if_its_memory_is_pinned() -> None:
    found = findings(
        call("[-----)", 1, "hipMemcpyWithStream"), kernel("  [--)", 1, "Memcpy HtoD (Host -> Device)", "gpu_memcpy")
    )["copies_to_device"]
    said = "copies to the device hold the host for 6 ns (100%), mostly Memcpy HtoD (Host -> Device) 6 ns"
    assert (found.bound_ns, found.sentence) == (6, said)


def test_memory_that_is_mapped_comes_from_the_driver() -> None:
    found = findings(
        call("[-)", 7, "hipMemCreate"),
        call("  [--)", 8, "hipMemMap"),
        call("      [-)", 1),
        kernel("         [)", 1),
    )["driver_allocations"]
    assert (found.bound_ns, found.evidence) == (5, (Evidence("hipMemMap", 1, 3), Evidence("hipMemCreate", 1, 2)))


def test_instantiating_a_graph_belongs_to_its_capture() -> None:
    found = findings(
        *(timed(10_000 * at, 1_000, "hipLaunchKernel", "cuda_runtime") for at in range(3)),
        timed(100_000, 1_000, "hipStreamBeginCapture", "cuda_runtime"),
        timed(105_000, 1_000, "hipStreamEndCapture", "cuda_runtime"),
        timed(110_000, 50_000, "hipGraphInstantiateWithFlags", "cuda_runtime"),
    )
    assert "slow_launches" not in found
    assert found["graph_capture"].bound_ns == 6_000 + 50_000


@pytest.mark.parametrize("counters", [False, True])
def test_counters_hold_launches_back(counters: bool) -> None:
    entries = [timed(10_000 * at, 1_000, "cudaLaunchKernel", "cuda_runtime") for at in range(3)]
    entries += [timed(50_000, 30_000, "cudaLaunchKernel", "cuda_runtime")]
    entries += [timed(50_000, 30_000, "gemm", "cuda_profiler_range", (0, 0))] if counters else []
    found = findings(*entries)["slow_launches"]
    assert found.bound_ns == 29_000
    assert found.remedy.startswith("record without the counters") == counters


def test_a_copy_without_its_device_event_may_itself_take_as_long() -> None:
    entries = [timed(10_000 * at, 1_000, "cudaLaunchKernel", "cuda_runtime") for at in range(3)]
    assert "slow_launches" not in findings(*entries, timed(50_000, 30_000, "cudaMemcpyAsync", "cuda_runtime"))
    assert (
        findings(*entries, timed(50_000, 30_000, "cudaMemsetAsync", "cuda_runtime"))["slow_launches"].bound_ns == 29_000
    )


@pytest.mark.parametrize("inside", ["", "cpu_op", "user_annotation"])
def test_a_part_of_a_program_that_a_runtime_records_is_not_a_slow_launch(inside: str) -> None:
    entries = [timed(0, 40_000, "gif_merge", "mtia_runtime")]
    entries += [timed(start, 1_000, "runFunction", "mtia_runtime") for start in (50_000, 60_000)]
    entries += [timed(10_000, 5_000, "forward", inside)] if inside else []
    assert ("slow_launches" in findings(*entries)) == (not inside)


def test_launches_of_graphs_are_slow_among_themselves() -> None:
    entries = [timed(2_000 * at, 1_000, "cudaLaunchKernel", "cuda_runtime") for at in range(4)]
    entries += [timed(at, 30_000, "cudaGraphLaunch", "cuda_runtime") for at in (10_000, 50_000, 90_000)]
    assert "slow_launches" not in findings(*entries)
    slow = findings(*entries, timed(200_000, 700_000, "cudaGraphLaunch", "cuda_runtime"))["slow_launches"]
    assert (slow.bound_ns, slow.evidence) == (670_000, (Evidence("cudaGraphLaunch", 1, 670_000),))


@pytest.mark.parametrize(
    ("name", "level", "category", "identifier"),
    [
        ("urEventWait", "xpu_runtime", "wait", "exposed_waits"),
        ("urQueueFinish", "xpu_runtime", "wait", "exposed_waits"),
        ("zeEventHostSynchronize", "xpu_driver", "wait", "exposed_waits"),
        ("zeCommandQueueSynchronize", "xpu_driver", "wait", "exposed_waits"),
        ("synchronizeStream", "mtia_runtime", "wait", "exposed_waits"),
        ("urUSMDeviceAlloc", "xpu_runtime", "allocation", "driver_allocations"),
        ("zeMemFree", "xpu_driver", "allocation", "driver_allocations"),
        ("urEnqueueKernelLaunch", "xpu_runtime", "launch", None),
    ],
)
def test_calls_of_other_vendors(name: str, level: str, category: str, identifier: str | None) -> None:
    """Of a window of 43 ns; kernels of an XPU name no stream."""
    analysis = analyzer_of(
        *(timed(at, 3, "urEnqueueKernelLaunch", "xpu_runtime", correlation=at) for at in (1, 30)),
        timed(4, 20, name, level),
        *(timed(at + 4, 10, "gemm", "kernel", (0, 7), device=0, correlation=at) for at in (1, 30)),
        timed(24, 6, "train.py(1): f", "python_function"),
    ).analysis()
    times = {each.category: each.ns for each in analysis.host if each.ns}
    assert times == {"launch": 6, "python": 6, "unattributed": 11} | {category: 20 + 6 * (category == "launch")}
    found = {each.id: each.bound_ns for each in analysis.findings}
    assert [each for each in ("exposed_waits", "driver_allocations") if each in found] == [identifier] * bool(
        identifier
    )


@pytest.mark.parametrize(("python", "there"), [(9, True), (10, False)])
def test_operators_on_a_host_alone(python: int, there: bool) -> None:
    found = findings(drawn("[)", "aten::view"), drawn(f"[{'-' * python})", "my.py(1): f", "python_function"))
    assert ("many_small_operators" in found) == there
    if there:
        operators = found["many_small_operators"]
        assert (operators.bound_ns, operators.evidence) == (1, (Evidence("aten::view", 1, 1, line="my.py(1): f"),))


@pytest.mark.parametrize(
    ("operator", "allocating", "beside", "there"),
    [
        ("aten::conv", 39, {}, True),
        ("aten::conv", 40, {}, False),
        ("aten::_local_scalar_dense", 39, {}, False),
        ("aten::conv", 39, {"deviceProperties": [{"id": 0, "name": "A100"}]}, False),
    ],
)
def test_operators_that_compute_on_a_host(operator: str, allocating: int, beside: dict[str, Any], there: bool) -> None:
    """Dispatch takes five times the 1 ns of a view, so two operators of 50 ns compute for 90 ns, half of 179 ns."""
    entries = [timed(0, 1, "aten::view")]
    for start in (1, 51 + allocating):
        entries += [timed(start, 50, operator), timed(start + 50, allocating, "aten::empty")]
    found = {each.id: each for each in analyzer_of(*entries, **beside).analysis().findings}
    assert ("kernels_on_host" in found) == there
    if there:
        assert (found["kernels_on_host"].bound_ns, found["kernels_on_host"].category) == (90, "kernel")
        assert found["kernels_on_host"].evidence == (Evidence(operator, 2, 90),)
        assert found["kernels_on_host"].sentence == (
            "operators compute on the host for 90 ns (50%), mostly 2 x aten::conv 90 ns"
        )


@pytest.mark.parametrize(("python", "there"), [(45, False), (44, True)])
def test_to_compute_is_a_cause_only_without_another(python: int, there: bool) -> None:
    entries = [timed(0, 1, "aten::view"), timed(1, 132, "aten::conv")]
    found = findings(*entries, timed(133, python, "my.py(1): f", "python_function"))
    assert ("kernels_on_host" in found, "host_python" in found) == (there, True)


def test_collectives_on_a_host_are_no_small_operators() -> None:
    others = [timed(0, 20, "aten::view"), timed(20, 80, "my.py(1): f", "python_function")]
    found = findings(*others, timed(100, 60, "c10d::allreduce_"), timed(160, 20, "record_param_comms"))
    assert (found["many_small_operators"].bound_ns, found["many_small_operators"].evidence) == (
        20,
        (Evidence("aten::view", 1, 20),),
    )


def test_operators_of_an_optimizer_are_its_own() -> None:
    """Only the views outside the optimizer count as small operators."""
    found = findings(
        timed(0, 800, "Optimizer.step#SGD.step", "user_annotation"),
        *(timed(10 * place, 10, "aten::view") for place in range(75)),
        *(timed(10 * place, 10, "aten::t") for place in range(80, 100)),
    )
    optimizer, operators = found["unfused_optimizer"], found["many_small_operators"]
    assert (optimizer.bound_ns, operators.bound_ns) == (800, 200)
    assert operators.evidence == (Evidence("aten::t", 20, 200),)
    # RMSprop, for example, has no argument ``fused``.
    assert optimizer.remedy == "fused=True of the optimizer (Adam, AdamW, SGD, Adagrad), or foreach=True"


def test_a_trace_of_python_alone_has_none() -> None:
    assert findings(drawn("[-----)", "my.py(1): f", "python_function")) == {}


def test_they_are_shown_with_what_to_try() -> None:
    analysis = analyzer_of(*LAUNCHED_ONE_BY_ONE).analysis()
    (trace,) = validated(to_json(analysis))["traces"]
    assert [(each["id"], each["bound_ns"], each["kind"]) for each in trace["findings"]] == [
        ("host_bound", 11, "bound"),
        ("graphs_could_close_idle", 6, "bound"),
    ]
    text = " ".join(to_text(analysis, whole=True).split())
    assert "A captured graph could close 6 ns (21%) of idle time, led by cudaLaunchKernel 3 ns at train.py:12." in text
    assert "1x cudaLaunchKernel 3 ns at train.py(12): step 1x step (train.py:12) 3 ns" in text
    assert "its time overlaps with host_bound (device 0)" in text
    assert "torch.cuda.graph" in to_html(analysis)


def test_the_order_of_the_events_does_not_matter() -> None:
    assert findings(*LAUNCHED_ONE_BY_ONE[::-1]) == findings(*LAUNCHED_ONE_BY_ONE)


@pytest.mark.parametrize(
    ("steps", "size", "identifier"),
    [
        (2, 2 << 20, "driver_allocations"),
        (3, 2 << 20, "memory_growth"),
        # Losses that are kept fit into what the allocator has.
        (3, 512, "driver_allocations"),
    ],
)
def test_what_the_first_step_sets_up_or_needs_no_driver_is_no_growth(steps: int, size: int, identifier: str) -> None:
    entries = [timed(0, 5, "cudaMalloc", "cuda_runtime", correlation=1)]
    for step in range(steps):
        entries += [
            timed(100 * step, 100, f"ProfilerStep#{step}", "user_annotation"),
            memory(100 * step + 10, size, step + 1, total=size * (step + 1)),
        ]
    assert {"driver_allocations", "memory_growth"} & set(findings(*entries)) == {identifier}
