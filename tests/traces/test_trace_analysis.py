"""Budgets of recorded traces, drawn and checked to the nanosecond."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from overhead_lens.readers.kineto.model import columns_of
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.report.forms import to_json, to_text
from overhead_lens.traces import loops as kernels
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.budgets import Kinds
from overhead_lens.traces.columns import where
from overhead_lens.traces.host import of_each
from overhead_lens.traces.intervals import both, cut, is_among, union, without
from overhead_lens.traces.launches import launching_operators
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.traces.pieces import pieces_of
from overhead_lens.traces.timeline import cut_at
from tests.documents import validated
from tests.drawn.timelines import (
    AUTOGRAD,
    CLASSIFIER,
    MAIN,
    WORKER,
    analyzer_of,
    blame,
    call,
    drawn,
    host,
    kernel,
    timed,
    trace_of,
)  # fmt: skip
from tests.drawn.trace_text import document
from tests.public_traces import public_traces, reference
from tests.traces.test_over_time import closes

VIEW = "aten::view"


def test_gaps_of_the_busiest_thread_are_python_and_what_lies_outside_is_nobodys() -> None:
    analysis = analyzer_of(
        kernel("[----------------------)", 1),
        drawn("    [--)", VIEW),
        drawn("            [--)", VIEW),
    ).analysis()
    assert host(analysis.host) == {"dispatcher": 6, "python": 5, "unattributed": 12}
    (python,) = [each for each in analysis.host if each.category == "python"]
    assert [(part.name, part.ns) for part in python.parts if part.ns] == [("user", 5)]
    assert python.top[0].frame == "(between events)"
    assert analysis.window.wall_ns == 23


def test_annotations_are_transparent() -> None:
    analysis = analyzer_of(
        drawn("[-----------------------)", "torch/nn/modules/module.py(1): forward", "python_function"),
        drawn("   [------------------------)", "my block", "user_annotation"),
        drawn("      [---)", VIEW),
    ).analysis()
    python = analysis.host[0]
    assert host(analysis.host) == {"python": 24, "dispatcher": 4}
    assert {part.name: part.ns for part in python.parts if part.ns} == {"framework": 20, "user": 4}
    assert analysis.issues == {"partial_overlap": 1}


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_alike_the_python_function_calls_the_operator(order: int) -> None:
    """Up to torch 2.3 traces have whole microseconds, and the file has Python functions behind operators."""
    both = [
        timed(0, 6_000, "aten::add"),
        timed(0, 6_000, "<built-in method add of type object at 0x7f12>", "python_function"),
    ]
    analysis = analyzer_of(*both[::order], timed(0, 9_000, "train.py(3): f", "python_function")).analysis()
    assert host(analysis.host) == {"dispatcher": 6_000, "python": 3_000}


def test_everything_under_a_compilation_is_compile() -> None:
    analysis = analyzer_of(
        drawn("[-------------------)", "Torch-Compiled Region: 0/0"),
        drawn("  [----------)", "_compile.compile_inner (dynamo_timed)"),
        drawn("    [---)", "aten::empty"),
        drawn("              [--)", "aten::empty"),
    ).analysis()
    assert host(analysis.host) == {"compile": 11, "allocation": 3, "unattributed": 6}


def test_a_lambda_guard_is_guard_time() -> None:
    analysis = analyzer_of(
        drawn("[--------)", "TorchDynamo Cache Lookup"),
        drawn("  [---)", "my.py(3): <lambda>", "python_function"),
    ).analysis()
    assert host(analysis.host) == {"guard": 9}


def test_a_cpu_operator_is_divided_by_what_a_view_takes() -> None:
    """Views take 10 ns, so dispatch takes 50, between 10 and 140."""
    analysis = analyzer_of(
        timed(0, 10, VIEW), timed(10, 10, "aten::t"), timed(20, 200, "aten::gelu"), timed(230, 30, "aten::relu")
    ).analysis()
    assert host(analysis.host) == {"dispatcher": 10 + 10 + 50 + 30, "kernel": 150, "python": 10}
    by_name = {each.category: each for each in analysis.host}
    assert by_name["kernel"].ci95_ns == (200 - 140, 200 - 10 + 30 - 10)
    assert by_name["dispatcher"].ci95_ns == (10 + 10 + 10 + 10, 10 + 10 + 140 + 30)
    assert {each.evidence for name, each in by_name.items() if name in {"kernel", "dispatcher"}} == {"estimate"}
    assert any("estimate" in note for note in analysis.notes)
    (trace,) = validated(to_json(analysis))["traces"]
    written = {row["category"]: row["ci95_ns"] for row in trace["host"]}
    assert (written["kernel"], written["dispatcher"], written["python"]) == ([60, 210], [40, 190], None)
    assert re.search(
        r"kernel \(estimate\) .* 150 ns  60 ns \.\. 210 ns  150 ns aten::gelu$", to_text(analysis), re.MULTILINE
    )


def test_an_operator_that_may_hold_a_kernel_widens_the_interval() -> None:
    """The estimate gives none of the operator's 30 ns to a kernel, but up to 20 may be one."""
    analysis = analyzer_of(timed(0, 10, VIEW), timed(10, 30, "aten::relu")).analysis()
    assert host(analysis.host) == {"dispatcher": 40}
    by_name = {each.category: each for each in analysis.host}
    assert (by_name["kernel"].ci95_ns, by_name["dispatcher"].ci95_ns) == ((0, 20), (20, 40))


def test_an_operator_that_only_calls_others_is_dispatcher_as_a_whole() -> None:
    analysis = analyzer_of(timed(0, 10, VIEW), timed(10, 300, "aten::linear"), timed(50, 100, "aten::addmm")).analysis()
    assert host(analysis.host) == {"dispatcher": 10 + 200 + 50, "kernel": 50}


def test_an_operator_that_launches_is_dispatcher_as_a_whole() -> None:
    analysis = analyzer_of(
        drawn("[)", VIEW),
        drawn(" [---------------)", "aten::linear"),
        drawn("   [----------)", "aten::addmm"),
        call("      [--)", 1),
        kernel("         [-----)", 1),
    ).analysis()
    assert host(analysis.host) == {"dispatcher": 1 + 13, "launch": 3}


def test_without_a_view_nothing_is_estimated() -> None:
    analysis = analyzer_of(drawn("[--------)", "aten::gelu")).analysis()
    assert host(analysis.host) == {"dispatcher": 9}
    assert any("no view operator" in note for note in analysis.notes)


def test_without_a_view_operators_that_only_call_others_show_what_dispatch_takes() -> None:
    """Their own 20 ns are those of two views, so dispatch takes 50, between 10 and 140; one that calls nothing shows nothing."""
    analysis = analyzer_of(
        timed(0, 1, "aten::to"), timed(1, 420, "aten::rand"), timed(11, 410, "aten::uniform_"),
        timed(430, 220, "aten::to"), timed(440, 200, "aten::_to_copy"), timed(450, 180, "aten::copy_"),
    ).analysis()  # fmt: skip
    assert host(analysis.host) == {"dispatcher": 1 + 10 + 50 + 20 + 20 + 50, "kernel": 360 + 130, "python": 9}
    kernel_ns = next(each.ci95_ns for each in analysis.host if each.category == "kernel")
    assert kernel_ns == (410 - 140 + 180 - 140, 410 - 10 + 180 - 10 + 0)
    assert any(
        "2.5 times what an operator of this trace takes that only calls others" in note for note in analysis.notes
    )
    assert analysis.findings[0].id == "kernels_on_host"


def test_a_backward_pass_on_another_thread() -> None:
    node = "autograd::engine::evaluate_function: MulBackward0"
    analysis = analyzer_of(
        drawn("[--)", VIEW),
        drawn("                             [--)", VIEW),
        drawn("  [---------------------)", "## backward ##", "user_annotation"),
        drawn("      [---)", node, thread=AUTOGRAD),
        drawn("             [---)", node, thread=AUTOGRAD),
    ).analysis()
    main, autograd = analysis.threads
    assert (main.tid, autograd.tid) == ("10", "11")
    # 3-6 and 17-24 belong to the annotation, 6-17 to the pass, 24-29 to nothing recorded.
    assert host(main.host) == {"dispatcher": 6, "wait": 11, "python": 3 + 7 + 5}
    assert host(autograd.host) == {"dispatcher": 4 + 3 + 4, "unattributed": 6 + 15}
    waits = next(each for each in main.host if each.category == "wait")
    assert [(frame.frame, frame.ns) for frame in waits.top] == [("(backward pass on another thread)", 11)]


def test_a_users_annotation_makes_no_thread_autograds() -> None:
    [thread] = analyzer_of(
        drawn("[------------------)", "LossBackward", "user_annotation"),
        drawn("[--)", VIEW),
        drawn("                      [--)", VIEW),
    )._timelines
    assert not thread.is_autograd


def test_nothing_tells_what_is_between_events_of_another_profiler() -> None:
    analysis = analyzer_of(drawn("[--)        ", "hipMemcpyAsync", ""), drawn("        [--)", "MatMul", "")).analysis()
    assert host(analysis.host) == {"unattributed": 11}


def test_a_backward_pass_of_an_old_version_is_on_another_thread() -> None:
    old = "Operator"
    analysis = analyzer_of(
        drawn("[------------------------)", "ProfilerStep#2", old),
        drawn("[--)", VIEW, old),
        drawn("    [---------------)", "CudnnConvolutionBackward", old, AUTOGRAD),
        drawn("       [--)", VIEW, old, AUTOGRAD),
        drawn("                     [--)", VIEW, old),
    ).analysis()
    main, autograd = analysis.threads
    assert host(main.host) == {"dispatcher": 6, "wait": 16, "python": 3}
    assert host(autograd.host) == {"dispatcher": 16, "unattributed": 9}
    assert [cost.name for cost in analysis.operators] == ["CudnnConvolutionBackward", VIEW]


def test_another_threads_gap_is_nobodys() -> None:
    analysis = analyzer_of(
        drawn("[------------------)", VIEW),
        drawn("  [--)", VIEW, thread=WORKER),
        drawn("          [--)", VIEW, thread=WORKER),
    ).analysis()
    assert host(analysis.threads[1].host) == {"dispatcher": 6, "unattributed": 13}


def test_a_thread_that_only_waits_for_the_device_is_not_the_busiest() -> None:
    """The output thread of a server waits for each step; what the device waits for is the main thread's Python."""
    analysis = analyzer_of(
        call("[)", 1),
        kernel("[--)", 1),
        drawn("   [--)", VIEW),
        call("                   [)", 2),
        kernel("                    [--)", 2),
        call(" [----------------------)", 9, "cudaEventSynchronize", thread=WORKER),
    ).analysis()
    assert [thread.tid for thread in analysis.threads] == ["10", "12"]
    assert host(analysis.host) == {"python": 2 + 13, "dispatcher": 3, "launch": 2, "unattributed": 4}
    (device,) = analysis.devices
    assert blame(device) == {"python": 13, "dispatcher": 3, "launch": 1}


def test_a_thread_that_launches_and_waits_stays_the_busiest() -> None:
    analysis = analyzer_of(
        call("[)", 1),
        kernel(" [---------)", 1),
        call(" [---------)", 9, "cudaStreamSynchronize"),
        drawn("   [--)", VIEW, thread=WORKER),
    ).analysis()
    assert [thread.tid for thread in analysis.threads] == ["10", "12"]


def test_runtime_calls_alone_do_not_make_python_of_what_lies_between() -> None:
    analysis = analyzer_of(call("[--)", 1), call("      [--)", 2), kernel("   [)", 1)).analysis()
    assert host(analysis.host) == {"launch": 6, "unattributed": 3}


def test_a_step_of_a_number_that_no_counter_reaches_is_an_annotation() -> None:
    analysis = analyzer_of(
        drawn("[---------)", f"ProfilerStep#{'9' * 5_000}", "user_annotation"), drawn("   [--)", VIEW)
    ).analysis()
    assert analysis.steps == ()


def test_steps_cut_through_events() -> None:
    analysis = analyzer_of(
        drawn("[---------)", "ProfilerStep#4", "user_annotation"),
        drawn("          [---------)", "ProfilerStep#5", "user_annotation"),
        drawn("     [---------)", VIEW),
        call("       [--)", 1),
        kernel("        [------)", 1),
    ).analysis()
    assert [step.step for step in analysis.steps] == [4, 5]
    assert [host(step.host) for step in analysis.steps] == [
        {"python": 5, "dispatcher": 2, "launch": 3},
        {"dispatcher": 5, "python": 5},
    ]
    assert [step.devices[0].busy_ns for step in analysis.steps] == [2, 5]
    assert [blame(step.devices[0]) for step in analysis.steps] == [
        {"python": 5, "dispatcher": 2, "launch": 1},
        {"python": 5},
    ]


def test_blame_follows_the_next_kernel_to_its_launch() -> None:
    device = analyzer_of(
        kernel("[---)", 1),
        drawn("   [---------)", VIEW),
        drawn("             [---------)", "aten::mm"),
        call("                [---)", 2),
        kernel("                       [--)", 2),
        call("[)", 1),
    ).analysis()
    (budget,) = device.devices
    assert (budget.span_ns, budget.busy_ns, budget.idle_ns) == (26, 7, 19)
    # 4-13 the view, 13-16 the operator, 16-20 the call, 20-23 launched and not started.
    assert blame(budget) == {"dispatcher": 9 + 3, "launch": 4, "queue": 3}


@pytest.mark.parametrize(
    ("name", "cat", "expected"),
    [
        ("my.py(1): f", "python_function", "python"),
        (VIEW, "cpu_op", "dispatcher"),
        ("TorchDynamo Cache Lookup", "cpu_op", "guard"),
        ("aten::empty", "cpu_op", "allocation"),
        ("cudaMalloc", "cuda_runtime", "allocation"),
        ("cudaEventRecord", "cuda_runtime", "launch"),
        ("cudaStreamSynchronize", "cuda_runtime", "wait"),
        ("hipMemcpyWithStream", "cuda_runtime", "wait"),
        ("cudaStreamWaitEvent", "cuda_runtime", "launch"),
        ("f (dynamo_timed)", "cpu_op", "compile"),
        ("odd", "", "unattributed"),
        ("graph_0_cpp_fused_add", "cpu_op", "dispatcher"),
    ],
)
def test_every_kind_of_blame(name: str, cat: str, expected: str) -> None:
    (device,) = (
        analyzer_of(
            call("[)", 1),
            kernel("[--)", 1),
            timed(3, 7, name, cat),
            call("          [)", 2),
            kernel("           [--)", 2),
        )
        .analysis()
        .devices
    )
    assert blame(device) == dict(sorted({expected: 7, "launch": 1 + (7 if expected == "launch" else 0)}.items())) | (
        {"launch": 8} if expected == "launch" else {}
    )


def test_an_idle_thread_passes_the_blame_on_to_the_busiest() -> None:
    node = "autograd::engine::evaluate_function: MulBackward0"
    (device,) = (
        analyzer_of(
            call("[)", 1),
            kernel("[--)", 1),
            drawn(" [-----------)", "aten::empty"),
            drawn("                  [-------)", node, thread=AUTOGRAD),
            call("                     [-)", 2, thread=AUTOGRAD),
            kernel("                        [--)", 2),
            drawn("                             [-)", VIEW),
        )
        .analysis()
        .devices
    )
    # 3-13 the main thread allocates, 13-18 it runs Python, 18-21 the engine works, 21-23 the call, 23-24 in the queue.
    assert blame(device) == {"allocation": 10, "python": 5, "dispatcher": 3, "launch": 2, "queue": 1}


def test_without_its_launch_idle_time_is_nobodys_fault() -> None:
    analysis = analyzer_of(drawn("[------------------)", VIEW), kernel("[-)", 99), kernel("       [--)", 98)).analysis()
    assert blame(analysis.devices[0]) == {"unattributed": 5}
    assert analysis.issues == {"unlinked_device_event": 2}
    assert analysis.devices[0].launch.unlinked == 2


def test_a_kernel_before_its_launch_is_repaired_and_counted() -> None:
    analysis = analyzer_of(
        call("[)", 1),
        kernel("[--)", 1),
        kernel("      [--)", 2),
        call("         [--)", 2),
        drawn("[-------------)", VIEW),
    ).analysis()
    (device,) = analysis.devices
    assert (device.launch.repaired, device.launch.median_ns, device.launch.max_ns) == (1, 0, 0)
    assert analysis.issues["kernel_before_launch"] == 1
    assert blame(device) == {"dispatcher": 3}


def test_work_too_short_for_the_clock_has_a_launch_of_its_own() -> None:
    (device,) = (
        analyzer_of(
            call("[)", 1),
            kernel("[--)", 1),
            call("    [)", 2),
            timed(7, 0, "Memcpy", "gpu_memcpy", (0, 7), device=0, stream=7, correlation=2),
            drawn("       [----)", VIEW),
            call("            [)", 3),
            kernel("             [)", 3),
        )
        .analysis()
        .devices
    )
    assert blame(device) == {"python": 1, "launch": 1 + 1, "queue": 2, "dispatcher": 5}


def test_kinds_and_their_overlap() -> None:
    (device,) = (
        analyzer_of(
            kernel("[---------)", 1),
            kernel("     [---------)", 2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream=8),
            kernel("                    [--)", 3, "Memcpy HtoD", "gpu_memcpy"),
            kernel("                      [--)", 4, "Memset", "gpu_memset", stream=9),
        )
        .analysis()
        .devices
    )
    kinds = device.kinds
    assert (kinds.compute_ns, kinds.communication_ns, kinds.copy_ns, kinds.overlap_ns) == (10, 10, 5, 5)
    assert (device.busy_ns, device.span_ns, device.events) == (20, 25, 4)


def test_a_graph_launch_has_many_kernels() -> None:
    (device,) = (
        analyzer_of(
            call("[--)", 1, "cudaGraphLaunch"),
            kernel("     [-)", 1),
            kernel("         [-)", 1),
            call("    [)", 2),
            kernel("             [-)", 2),
        )
        .analysis()
        .devices
    )
    launch = device.launch
    assert (launch.count, launch.graph_launches, launch.graph_events) == (2, 1, 2)
    assert (launch.median_ns, launch.p99_ns, launch.max_ns) == (5, 9, 9)
    assert blame(device) == {"queue": 2 + 2}
    assert (launch.queue_depth_mean, launch.queue_depth_max) == (0.8, 1)  # from 5 to 13 of 5 to 15


TWO_STEPS = (
    drawn("[---------)", "ProfilerStep#0", "user_annotation"),
    drawn("          [---------)", "ProfilerStep#1", "user_annotation"),
)


def test_a_launch_belongs_to_the_step_in_which_its_first_kernel_starts() -> None:
    graph = [call("[-)", 1, "cudaGraphLaunch"), *(kernel(f"{' ' * at}[--)", 1) for at in (4, 8, 14))]
    steps = analyzer_of(*TWO_STEPS, *graph).analysis().steps
    launches = [step.devices[0].launch for step in steps]
    assert [(one.count, one.graph_launches, one.max_ns) for one in launches] == [(1, 1, 4), (0, 0, 0)]
    assert [one.graph_events for one in launches] == [2, 1]


def test_the_depth_of_the_queue_is_that_within_the_step() -> None:
    analysis = analyzer_of(*TWO_STEPS, call("  [)", 1), kernel("               [--)", 1)).analysis()
    launches = [each.devices[0].launch for each in analysis.steps] + [analysis.devices[0].launch]
    # From 2 to 15; the device's span begins at 15.
    assert [(one.queue_depth_mean, one.queue_depth_max) for one in launches] == [(0.8, 1), (0.5, 1), (0.0, 0)]


def test_latencies_that_int64_cannot_sum() -> None:
    far = 4 * 10**18
    launches = [timed(number, 1, "cudaLaunchKernel", "cuda_runtime", correlation=number) for number in range(4)]
    kernels = [
        timed(far + number, 1, "gemm", "kernel", (0, 7), device=0, stream=7, correlation=number) for number in range(4)
    ]
    (device,) = analyzer_of(*launches, *kernels).analysis().devices
    assert (device.span_ns, device.launch.max_ns, device.launch.queue_depth_mean) == (4, far, 1.5)


def test_of_two_calls_with_one_correlation_the_first_is_the_launch() -> None:
    trace = trace_of(
        [
            drawn("    [)", "cuLaunchKernel", "cuda_driver", correlation=1),
            drawn("  [----)", "cudaLaunchKernel", "cuda_runtime", correlation=1),
            kernel("[)      ", 9),
            kernel("          [)", 1),
        ]
    )
    launch = Analyzer(trace, CLASSIFIER).analysis().devices[0].launch
    assert (launch.count, launch.max_ns) == (1, 8)


@pytest.mark.parametrize(
    ("processes", "devices", "latencies"),
    [
        (("[TP00] 4711", "[TP01] 4712"), ("[TP00] 0", "[TP01] 1"), [3, 3]),
        (("rank 0: 4711", "rank 1: 4712"), ("rank 0: 0", "rank 1: 0"), [3, 3]),
        # Nothing tells whose a device is.
        (("trainer-a 12", "trainer-b 13"), ("0", "1"), [3, 8]),
        (("0x7f12ab", "0x7f0012"), ("0", "1"), [3, 8]),
    ],
)
def test_ranks_in_one_file_have_correlations_of_their_own(
    processes: tuple[str, str], devices: tuple[str, str], latencies: list[int]
) -> None:
    """As SGLang merges them: processes and devices of each rank get a prefix, correlations stay as they are."""
    entries = []
    for at, (process, device) in enumerate(zip(processes, devices, strict=True)):
        entries.append(timed(5 * at, 1, "cudaLaunchKernel", "cuda_runtime", (process, 10), correlation=1))
        entries.append(timed(5 * at + 3, 2, "gemm", "kernel", (device, 7), device=at, stream=7, correlation=1))
    launches = [each.launch for each in analyzer_of(*entries).analysis().devices]
    assert [(launch.count, launch.max_ns, launch.unlinked) for launch in launches] == [(1, ns, 0) for ns in latencies]


def test_the_operator_around_a_launch() -> None:
    trace = trace_of(
        [
            drawn("[----------------)", "aten::linear"),
            drawn("  [-----------)", "aten::addmm"),
            drawn("    [-------)", "cudaLaunchKernelExC", "cuda_runtime", correlation=1),
            drawn("      [---)", "cuLaunchKernelEx", "cuda_driver", correlation=2),
            call("                   [)", 3),
            drawn("  [------)", "aten::mm", thread=WORKER),
            *(kernel("                        [)", number) for number in (1, 2, 3, 4)),
        ]
    )
    analyzer, events = Analyzer(trace, CLASSIFIER), trace.events
    found = launching_operators(analyzer.host, analyzer.linked.launch)
    assert [events["name"][row] if row >= 0 else None for row in found] == ["aten::addmm", "aten::addmm", None, None]


def test_old_traces_link_by_external_id() -> None:
    entries = [
        drawn("[)", "hipLaunchKernel", "cuda_runtime", External__id=5),
        drawn("   [)", "gemm", "kernel", (2, 0), External__id=5),
    ]
    launch = analyzer_of(*entries).analysis().devices[0].launch
    assert (launch.count, launch.unlinked, launch.max_ns) == (1, 0, 3)


def test_host_events_with_a_stream_are_no_device_work() -> None:
    analysis = analyzer_of(
        drawn("[--)", "triton_poi_fused_0", stream=7, device=0),
        drawn("   [--)", "Stream Sync", "cuda_sync", (0, 7), stream=7, device=0),
        drawn("[--)", "copy", "gpu_user_annotation", (0, 7), stream=7, device=0),
    ).analysis()
    assert analysis.devices == ()
    assert host(analysis.host) == {"launch": 3}


@pytest.mark.parametrize(
    ("cat", "said"), [("python_function", "no nn.Module is called"), ("user_annotation", "no module is named")]
)
def test_stacks_without_modules_are_not_asked_for_stacks(cat: str, said: str) -> None:
    analysis = analyzer_of(drawn("[-----)", "train.py(3): f", cat), drawn(" [--)", "aten::mm")).analysis()
    (note,) = [note for note in analysis.notes if "budget per module" in note]
    assert note.startswith(said)


@pytest.mark.parametrize("name", ["record_param_comms", "nccl:all_reduce", "aten::unflatten_dense_tensors"])
def test_operators_that_only_call_hold_no_kernel(name: str) -> None:
    analysis = analyzer_of(drawn("[)", "aten::view"), timed(10, 90, name)).analysis()
    assert host(analysis.host)["dispatcher"] == 1 + 90


def test_several_devices() -> None:
    analysis = analyzer_of(kernel("[--)", 1, device=3), kernel("   [----)", 2, device=1)).analysis()
    assert [(each.device, each.busy_ns) for each in analysis.devices] == [("1", 5), ("3", 3)]
    assert analysis.threads == ()


def test_an_empty_trace() -> None:
    analysis = analyzer_of().analysis()
    assert (analysis.window.wall_ns, analysis.threads, analysis.devices) == (0, (), ())
    assert analysis.host == ()


def test_events_without_length() -> None:
    analysis = analyzer_of(timed(0, 0, VIEW), timed(5, 0, VIEW), timed(5, 3, VIEW)).analysis()
    assert host(analysis.host) == {"dispatcher": 3, "unattributed": 5}


def test_costs_by_name() -> None:
    analysis = analyzer_of(
        drawn("[----------)", "aten::linear"), drawn("  [----)", "aten::mm"), drawn("            [----)", "aten::mm"),
        kernel("[--)", 1), kernel("   [-)", 2),
    ).analysis()  # fmt: skip
    assert [(each.name, each.count, each.self_ns, each.total_ns) for each in analysis.operators] == [
        ("aten::mm", 2, 10, 10),
        ("aten::linear", 1, 6, 11),
    ]
    assert [(each.name, each.category, each.count, each.self_ns) for each in analysis.kernels] == [
        ("gemm", "compute", 2, 5)
    ]


def test_copies_that_rocm_records_as_kernels_are_copies() -> None:
    (device,) = analyzer_of(
        kernel("[---)", 1, "__amd_rocclr_copyBufferAligned.kd"),
        kernel("    [-)", 2, "__amd_rocclr_fillBufferAligned"),
        kernel("      [)", 3, "MEMORY_COPY_DEVICE_TO_HOST"),
        kernel("       [--)", 4, "copyBuffer_of_mine"),
    ).analysis().devices  # fmt: skip
    assert device.kinds == Kinds(compute_ns=3, copy_ns=7)


def test_collectives_are_numbered_within_their_group() -> None:
    def collective(start: int, name: str, group: str) -> dict:
        arguments = {"Collective name": name, "Process Group Name": group, "device": 0, "stream": 9}
        return {**timed(start, 2, "ncclDevKernel_Generic", "kernel", (0, 9)), "args": arguments}

    found = analyzer_of(
        collective(0, "allreduce", "0"), collective(9, "allreduce", "0"), collective(5, "allreduce", "1")
    ).analysis()
    assert [(each.name, each.group, each.index, each.start_ns) for each in found.collectives] == [
        ("allreduce", "0", 0, 0),
        ("allreduce", "1", 0, 5),
        ("allreduce", "0", 1, 9),
    ]


def test_health() -> None:
    analysis = analyzer_of(
        *(
            timed(start, dur, f"ProfilerStep#{at}", "user_annotation")
            for at, (start, dur) in enumerate([(0, 50), (50, 10), (60, 12)])
        ),
        timed(2, 3, "Buffer Flush", "overhead", (-1, 0)),
        timed(5, 3, "what", "mtia_ccp_events", (9, 1)),
        timed(6, 1, "CUDA Event", "cuda_event", (0, 7), device=0, stream=7),
        timed(30, 3, "fusion.1", "", (8, 1)),
        call("[)", 1),
        kernel("  [---)", 1),
        kernel("    [---)", 3),
        call("                    [--)", 2),
        with_stack=1,
    ).analysis()
    assert analysis.issues == {
        "unlinked_device_event": 1,
        "launch_without_device_event": 1,
        "overlap_in_stream": 1,
        "profiler_overhead": 1,
        "no_category": 1,
        "other_category": 1,
    }
    notes = " | ".join(analysis.notes)
    assert "step 0 takes 4.5x the median of the others" in notes
    assert "with_stack" in notes
    assert "synchronize the device" in notes


@pytest.mark.parametrize(
    ("more", "said"),
    [
        # 1 to 60 and 61 to 80 ms of the step, 80 to 99 ms between events; a wait that was recorded is none.
        ((), "for 97.00 ms in gaps of over 10 ms"),
        ((timed(2_000_000, 58_000_000, "cudaDeviceSynchronize", "cuda_runtime"),), "for 38.00 ms in gaps"),
        (tuple(timed(ms * 1_000_000, 1_000, VIEW) for ms in range(2, 100, 9)), ""),
        ((timed(0, 100_000_000, "train.py(3): f", "python_function"),), ""),
    ],
)
def test_long_gaps_without_an_event_may_be_sleep(more: tuple[dict[str, Any], ...], said: str) -> None:
    analysis = analyzer_of(
        timed(0, 80_000_000, "ProfilerStep#0", "user_annotation"),
        *(timed(ms * 1_000_000, 1_000_000, VIEW) for ms in (0, 60, 99)),
        *more,
    ).analysis()
    notes = [note for note in analysis.notes if "slept" in note]
    assert len(notes) == bool(said)
    assert all(said in note for note in notes)


@pytest.mark.parametrize(
    ("entries", "metadata", "why"),
    [
        ((), {}, ""),
        ((), {"deviceProperties": [{"id": 0}]}, "the file names one: if the program uses it, "),
        ((call("   [)", 1),), {"deviceProperties": [{"id": 0}]}, "its driver was called: "),
        # The profiler itself synchronizes a device that the program does not use.
        ((drawn("   [)", "cudaDeviceSynchronize", "cuda_runtime"),), {"deviceProperties": [{"id": 0}]}, ""),
        ((call("   [)", 1), kernel("    [)", 1)), {"deviceProperties": [{"id": 0}]}, ""),
    ],
)
def test_a_device_whose_work_is_not_in_the_trace(
    entries: tuple[dict[str, Any], ...], metadata: dict[str, Any], why: str
) -> None:
    notes = analyzer_of(drawn("[--------)", "aten::mm"), *entries, **metadata).analysis().notes
    assert [note for note in notes if "device" in note] == (
        [f"no work of a device was recorded, though {why}operators that wait for it look like ones that compute"]
        if why
        else []
    )


HOST_NAMES = [
    VIEW,
    "aten::mm",
    "aten::empty",
    "f (dynamo_timed)",
    "autograd::engine::evaluate_function: X",
    "TorchDynamo Cache Lookup",
]
SPANS = st.tuples(st.integers(0, 60), st.integers(0, 25))
HOST_EVENTS = st.builds(
    lambda span, name, thread: timed(*span, name, "cpu_op", thread),
    SPANS,
    st.sampled_from(HOST_NAMES),
    st.sampled_from([MAIN, AUTOGRAD, WORKER]),
)
ANNOTATIONS = st.builds(
    lambda span, number: timed(*span, f"ProfilerStep#{number}" if number else "note", "user_annotation"),
    SPANS,
    st.integers(0, 3),
)
CALLS = st.builds(
    lambda span, name, thread, correlation: timed(*span, name, "cuda_runtime", thread, correlation=correlation),
    SPANS,
    st.sampled_from(["cudaLaunchKernel", "cudaGraphLaunch", "cudaStreamSynchronize"]),
    st.sampled_from([MAIN, AUTOGRAD]),
    st.integers(0, 6),
)
KERNELS = st.builds(
    lambda span, name, device, correlation: timed(
        *span, name, "kernel", (device, 7), device=device, stream=7, correlation=correlation
    ),
    SPANS,
    st.sampled_from(["gemm", "ncclDevKernel_AllReduce"]),
    st.integers(0, 1),
    st.integers(-1, 8),
)
TRACES = st.lists(st.one_of(HOST_EVENTS, ANNOTATIONS, CALLS, KERNELS), max_size=14)


def by_hand(entries: list[dict], device: int) -> tuple[int, int]:
    """Busy and span of a device, instant by instant."""
    spans = [
        (float(e["ts"].text) * 1000, float(e["dur"].text) * 1000)
        for e in entries
        if e["cat"] == "kernel" and e["pid"] == device
    ]
    spans = [(round(start), round(dur)) for start, dur in spans]
    busy = {instant for start, dur in spans for instant in range(start, start + dur)}
    return len(busy), max(start + dur for start, dur in spans) - min(start for start, _ in spans)


def test_names_of_threads_that_are_no_text_are_kept(tmp_path: Path) -> None:
    odd = ["\udcb4", "\ud800"]
    (tmp_path / "t.json").write_text(document([timed(0, 10, "aten::add", "cpu_op", (1, tid)) for tid in odd]))
    analyzer = Analyzer(read_trace(tmp_path / "t.json"), CLASSIFIER)
    assert sorted(pieces_of(analyzer).host["tid"].unique()) == sorted(odd)


@settings(max_examples=100)
@given(entries=TRACES)
def test_everything_closes(entries: list[dict]) -> None:
    analyzer = analyzer_of(*entries)
    analysis = analyzer.analysis()  # the constructors check every sum
    pieces = pieces_of(analyzer)
    for device in analysis.devices:
        assert (device.busy_ns, device.span_ns) == by_hand(entries, int(device.device))
        mine = pieces.idle[pieces.idle["device"] == int(device.device)]
        assert mine.groupby("blame")["dur_ns"].sum().to_dict() == blame(device)
    for thread in analysis.threads:
        mine = pieces.host[pieces.host["tid"] == thread.tid]
        assert mine["dur_ns"].sum() == analysis.window.wall_ns
        assert mine.groupby("category")["dur_ns"].sum().to_dict() == host(thread.host)
    check_bounds_of_findings(analysis)


def check_bounds_of_findings(analysis: TraceAnalysis) -> None:
    """They are within what there is, the largest first."""
    idle = {device.device: device.idle_ns for device in analysis.devices}
    for each in analysis.findings:
        assert 0 < each.bound_ns <= analysis.window.wall_ns
        if each.id in ("graphs_could_close_idle", "host_bound"):
            assert each.bound_ns <= idle[each.device]
    ranked = [each.bound_ns for each in analysis.findings]
    assert ranked == sorted(ranked, reverse=True)


def figures(analysis: Any) -> list[Any]:
    threads = [(thread.tid, host(thread.host)) for thread in analysis.threads]
    return [
        threads,
        [(each, each.idle_blame) for each in analysis.devices],
        [(s.step, host(s.host)) for s in analysis.steps],
    ]


@settings(max_examples=60)
@given(entries=TRACES, shift_us=st.integers(0, 10**15))
def test_neither_a_shift_of_the_clock_nor_compiled_loops_change_anything(entries: list[dict], shift_us: int) -> None:
    moved = [
        {
            **each,
            "ts": type(each["ts"])(f"{int(each['ts'].text.split('.')[0]) + shift_us}.{each['ts'].text.split('.')[1]}"),
        }
        for each in entries
    ]
    plain = figures(analyzer_of(*entries).analysis())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "LOADED_FROM", 0)
        patch.setattr(kernels, "COMPILED_FROM", 0)
        assert figures(analyzer_of(*moved).analysis()) == plain


@example(spans=[(0, 3), (3, 2)])
@given(spans=st.lists(SPANS, max_size=12))
def test_union(spans: list[tuple[int, int]]) -> None:
    table = np.array(spans, dtype=np.int64).reshape(-1, 2)
    found = union(table[:, 0], table[:, 1])
    instants = {instant for start, dur in spans for instant in range(start, start + dur)}
    covered = {i for start, end in zip(found.start_ns, found.end_ns, strict=True) for i in range(start, end)}
    assert covered == instants
    assert found.total_ns == len(instants)
    assert (found.start_ns[1:] > found.end_ns[:-1]).all()
    assert [spans[at][0] for at in found.first] == found.start_ns.tolist()
    for window in ((0, 100), (10, 20), (33, 34)):
        assert found.within(window) == len([i for i in instants if window[0] <= i < window[1]])


@given(pair=st.tuples(*[st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), max_size=4)] * 2))
def test_what_unions_share_and_what_one_has_alone(pair: tuple[list[tuple[int, int]], ...]) -> None:
    one, other = (union(*np.array(spans, dtype=np.int64).reshape(-1, 2).T) for spans in pair)
    mine, theirs = ({at for start, dur in spans for at in range(start, start + dur)} for spans in pair)
    for found, expected in ((both(one, other), mine & theirs), (without(one, other), mine - theirs)):
        made = union(*np.array([(at, 1) for at in sorted(expected)], dtype=np.int64).reshape(-1, 2).T)
        assert (found.start_ns.tolist(), found.end_ns.tolist()) == (made.start_ns.tolist(), made.end_ns.tolist())
    assert one.meets(other) == other.meets(one) == bool(mine & theirs)
    times = np.arange(-1, 18)
    assert one.covered(times).tolist() == one.holds(times).tolist() == [at in mine for at in times.tolist()]


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    spans=st.lists(st.tuples(st.integers(0, 70), st.integers(0, 20)), max_size=6),
)
def test_cut(lengths: list[int], spans: list[tuple[int, int]]) -> None:
    edges = np.concatenate(([0], np.cumsum(lengths)))
    spans = [(min(start, edges[-1]), min(start + dur, edges[-1])) for start, dur in spans]
    table = np.array(spans, dtype=np.int64).reshape(-1, 2)
    found = cut(table[:, 0], table[:, 1], edges[:-1], edges[1:])
    expected = [
        (interval, piece, max(start, edges[piece]), min(end, edges[piece + 1]) - max(start, edges[piece]))
        for interval, (start, end) in enumerate(spans)
        for piece in range(len(lengths))
        if min(end, edges[piece + 1]) > max(start, edges[piece])
    ]
    assert list(zip(found.interval, found.piece, found.start_ns, found.dur_ns, strict=True)) == expected


@given(ascending=st.sets(st.integers(0, 30)), wanted=st.lists(st.integers(-1, 31)))
def test_is_among(ascending: set[int], wanted: list[int]) -> None:
    arrays = [np.array(each, dtype=np.int64) for each in (sorted(ascending), wanted)]
    assert is_among(*arrays).tolist() == [value in wanted for value in sorted(ascending)]


@given(starts=st.sets(st.integers(0, 30), min_size=1), edges=st.sets(st.integers(0, 40)))
def test_cut_at(starts: set[int], edges: set[int]) -> None:
    found = cut_at(*(np.array(sorted(each), dtype=np.int64) for each in (starts, edges)))
    expected = sorted(starts | {edge for edge in edges if edge > min(starts)})
    assert found[0].tolist() == expected
    assert found[1].tolist() == [sum(start <= time for start in starts) - 1 for time in expected]


@given(numbers=st.lists(st.integers(-1, 125)), count=st.integers(126, 300))
@example(numbers=[127, -1, 127, 0], count=128)
def test_of_each(numbers: list[int], count: int) -> None:
    found = of_each(np.array(numbers, dtype=np.int32), count)
    assert [places.tolist() for places in found] == [
        [place for place, number in enumerate(numbers) if number == wanted] for wanted in range(count)
    ]


def check_sums_of_the_document(analysis: TraceAnalysis) -> None:
    (trace,) = validated(to_json(analysis))["traces"]
    for budget in (trace["host"], *(each["host"] for each in trace["threads"])):
        assert sum(each["ns"] for each in budget) == (trace["window"]["wall_ns"] if budget else 0)
    for device in trace["device"]:
        assert sum(device["idle_blame"].values()) == device["idle_ns"] == device["span_ns"] - device["busy_ns"]
    for step in trace["steps"]:
        assert sum(each["ns"] for each in step["host"]) == (step["wall_ns"] if step["host"] else 0)


AROUND_ANNOTATIONS = {"All2All_Pooled_Wait", "All2All_Pooled_WaitBackward", "PythonDispatchMode", "dynamo"}


@pytest.mark.parametrize("path", public_traces())
def test_public_traces_equal_the_reference(path: Any) -> None:
    trace = read_trace(path)
    analysis = Analyzer(trace, CLASSIFIER).analysis()
    closes(analysis)
    check_sums_of_the_document(analysis)
    expected = reference(path)
    if expected.get("gpu_n"):
        (device,) = analysis.devices
        figures_us = [device.busy_ns, device.span_ns, device.idle_ns]
        assert device.events == expected["gpu_n"]
        assert figures_us == [round(expected[key] * 1000) for key in ("gpu_busy_us", "gpu_span_us", "gpu_idle_us")]
        assert device.launch.count == 0 or 0 <= device.launch.median_ns <= device.launch.p99_ns
    else:
        assert analysis.devices == ()
    assert analysis.issues.get("partial_overlap", 0) == expected["partial_overlaps"]
    if "a100_compile" in path.name:
        assert analysis.issues["unlinked_device_event"] == 872
    runtime = where(trace.columns["cat"], "mtia_runtime".__eq__)
    if runtime.any():
        # The reference knows nothing of MTIA's runtime, whose calls are children of operators here.
        kept = replace(trace, columns=columns_of(trace.events[~runtime]))
        analysis = Analyzer(kept, CLASSIFIER).analysis()
    costs = {each.name: each for each in analysis.operators}
    top = expected.get("top_op_self", {})
    assert {name: costs[name].count for name in top} == {name: count for name, (count, _) in top.items()}
    differing = {name for name, (_, self_us) in top.items() if costs[name].self_ns != round(self_us * 1000)}
    # An annotation inside an operator is no part of the operator's children here, and is one in the reference. Of an operator
    # and the Python function that calls it in the same whole microseconds the reference gives the time to the function.
    assert differing <= AROUND_ANNOTATIONS | ({"aten::mm"} if path.name == "tl_gemm_old_stack.json" else set())


@pytest.mark.parametrize("forward_ns", [2, 0])
def test_a_thread_that_trains_on_the_cpu_is_not_autograds(forward_ns: int) -> None:
    """Its backward passes take most of it; or all of it, and no other thread works."""
    mine = [timed(0, forward_ns, "aten::mm")] if forward_ns else []
    mine += [timed(3, 6, "autograd::engine::evaluate_function: MmBackward0")]
    gloo = timed(10, 30, "gloo:all_reduce", "user_annotation", WORKER)
    threads = analyzer_of(*mine, gloo).analysis().threads
    assert [(thread.pid, thread.tid) for thread in threads] == [tuple(map(str, MAIN)), tuple(map(str, WORKER))]


def test_a_clock_too_coarse_for_views_leaves_operators_undivided() -> None:
    views = [timed(at, dur, "aten::view") for at, dur in ((0, 0), (5, 0), (10, 1))]
    analysis = analyzer_of(*views, timed(20, 50, "aten::mm")).analysis()
    spent = {category.category: (category.ns, category.evidence) for category in analysis.host if category.ns}
    assert spent["dispatcher"] == (51, "trace")
    assert "kernel" not in spent
    assert any("no view operator shows what dispatch costs here" in note for note in analysis.notes)


def test_what_the_driver_does_is_not_the_profilers() -> None:
    analysis = analyzer_of(
        call("[----)", 1),
        kernel("      [)", 1),
        drawn(" [)", "Lazy Function Loading", "overhead", (-1, 0)),
        drawn("  [)", "Activity Buffer Request", "overhead", (-1, 0)),
    ).analysis()
    assert analysis.issues == {"profiler_overhead": 1, "driver_overhead": 1}
    assert "the driver loaded or compiled code, or waited for room in its queue (1)" in to_text(analysis)


def test_a_driver_call_inside_a_launch_is_not_a_lost_launch() -> None:
    nested = [
        drawn("    [)", "cuLaunchKernel", "cuda_driver", correlation=1),
        drawn("  [----)", "cudaLaunchKernel", "cuda_runtime", correlation=1),
    ]
    answered = analyzer_of(*nested, kernel("          [)", 1)).analysis()
    assert (answered.issues, [note for note in answered.notes if "synchronize" in note]) == ({}, [])
    lost = analyzer_of(*nested, kernel("          [)", 2), call("        [)", 2)).analysis()
    assert lost.issues == {"launch_without_device_event": 2}
