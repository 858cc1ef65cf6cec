"""Critical paths of drawn traces: each part to the nanosecond, what a step takes without it, and what is assumed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from overhead_lens.report.outline import Notes, Table
from overhead_lens.report.outlines.recorded.critical_path import path_sections
from overhead_lens.traces.critical_path.model import CriticalPath, Share, Slack, WindowPath
from tests.drawn.timelines import AUTOGRAD, WORKER, analyzer_of, call, drawn, kernel, timed

SYNCHRONIZE = "cudaStreamSynchronize"
STEP = "ProfilerStep#1"


def critical_path(*entries: dict) -> CriticalPath:
    return analyzer_of(*entries).paths.analysis()


def window(*entries: dict) -> WindowPath:
    (found,) = critical_path(*entries).windows
    return found


def on_path(path: WindowPath) -> dict[str, int]:
    return {share.name: share.ns for share in path.kinds if share.ns}


def if_free(shares: tuple[Share, ...]) -> dict[str, int | None]:
    return {share.name: share.if_free_ns for share in shares}


def parts(*entries: dict) -> list[tuple[Any, ...]]:
    columns = ("lane", "kind", "start_ns", "dur_ns", "reached_by")
    tables = analyzer_of(*entries).paths.tables()
    return [row for table in tables for row in zip(*(table[name].tolist() for name in columns), strict=True)]


def sync_event(start: int, dur: int, name: str, correlation: int, **args: Any) -> dict:
    """A synchronization event of CUPTI."""
    return timed(start, dur, name, "cuda_sync", (0, 7), cuda_sync_kind=name, correlation=correlation, device=0, **args)


BLOCKED = (
    drawn("[-----------------------------)", "train.py(1): step", "python_function"),
    call("  [-)", 1),
    kernel("     [--------------)", 1),
    call("      [----------------)", 2, SYNCHRONIZE),
)


def test_the_host_waits_for_the_device() -> None:
    assert parts(*BLOCKED) == [
        ("thread 10", "python", 0, 2, "program_order"),
        ("thread 10", "launch", 2, 2, "program_order"),
        ("device 0 stream 7", "launch_latency", 4, 1, "launch"),
        ("device 0 stream 7", "compute", 5, 15, "device_event"),
        ("thread 10", "wait", 20, 3, "assumed_synchronization"),
        ("thread 10", "python", 23, 7, "program_order"),
    ]


@pytest.mark.parametrize(
    ("called", "cat", "assumed"),
    [
        ("urQueueFinish", "xpu_runtime", {"assumed_synchronization": 1}),
        ("urEventWait", "xpu_runtime", {"assumed_synchronization": 1}),
        ("zeCommandListHostSynchronize", "xpu_driver", {"assumed_synchronization": 1}),
        ("synchronizeStream", "mtia_runtime", {"assumed_synchronization": 1}),
        ("synchronize", "mtia_runtime", {}),
    ],
)
def test_calls_of_xpu_and_mtia_that_block(called: str, cat: str, assumed: dict[str, int]) -> None:
    path = window(*BLOCKED[:-1], drawn("      [----------------)", called, cat, correlation=2))
    assert (on_path(path).get("compute"), on_path(path)["wait"]) == (15, 3)
    assert if_free(path.kinds)["compute"] == 30 - 15 + 1
    assert path.assumed == assumed


def test_what_would_be_free_is_evaluated_again() -> None:
    path = window(*BLOCKED)
    assert (path.wall_ns, path.length_ns, path.unexplained_ns) == (30, 30, 0)
    assert if_free(path.kinds) == {
        "python": 30 - 9,
        "launch": 30 - 2,
        "wait": 30 - 3,
        # Without the kernel the host goes on at once: two of Python before it has called, which no longer hide behind it.
        "compute": 30 - 15 + 1,
        "launch_latency": 30 - 1,
    }
    assert if_free(path.kernels) == {"gemm": 16}


def test_a_host_that_is_slower_than_the_device() -> None:
    path = window(
        drawn("[-------------)", "aten::mm"),
        call("    [--)", 1),
        kernel("       [)", 1),
    )
    assert on_path(path) == {"dispatcher": 14 - 3, "launch": 3}
    assert if_free(path.kinds) == {"dispatcher": 3 + 1, "launch": 11, "compute": 14}
    # It may end with the operator, seven later.
    assert path.slack == (Slack("gemm", "0", 1, 0, 6, 6),)


def test_an_operator_is_its_own_time_the_calls_in_it_and_what_these_launched() -> None:
    path = window(
        drawn("[---------)", "aten::linear"),
        drawn("  [------)", "aten::mm"),
        call("    [--)", 1),
        kernel("       [----------)", 1),
    )
    assert [(share.name, share.ns, share.total_ns) for share in path.operators] == [
        ("aten::mm", 2 + 3 + 11, 2 + 3 + 2 + 11),
        ("aten::linear", 2, 2 + 1),
    ]
    # The operator's last and what surrounds it are left: 2 + 1 of linear, in the order of the thread.
    assert if_free(path.operators) == {"aten::mm": 3, "aten::linear": 16}


def test_a_graph_launch_stands_for_all_of_its_events_by_its_correlation() -> None:
    entries = (
        call("[---)", 1, "someVendorReplay"),
        kernel("  [---)", 1, "first"),
        kernel("      [---)", 1, "second"),
        kernel("           [---)", 1, "third"),
    )
    found = critical_path(*entries)
    assert found.edges["launch"] == 3
    assert parts(*entries) == [
        ("thread 10", "launch", 0, 2, "program_order"),
        ("device 0 stream 7", "compute", 2, 4, "launch"),
        ("device 0 stream 7", "compute", 6, 4, "device_event"),
        ("device 0 stream 7", "device_gap", 10, 1, "stream_order"),
        ("device 0 stream 7", "compute", 11, 4, "device_event"),
    ]


def test_one_graph_on_two_streams_goes_on_where_the_other_stream_ended() -> None:
    found = critical_path(
        call("[-)", 1, "cudaGraphLaunch"),
        kernel("  [-------)", 1, "first"),
        kernel("           [--)", 1, "second", stream=9),
    )
    assert found.edges["assumed_stream_wait"] == 1
    (path,) = found.windows
    assert on_path(path) == {"launch": 2, "compute": 8 + 3, "queue": 1}
    assert path.assumed == {"assumed_stream_wait": 1}


def test_synchronization_events_tell_which_stream_waited_for_which() -> None:
    entries = (
        call("[)", 1),
        call(" [)", 2),
        call("  [)", 3, "cudaEventRecord"),
        # Launched after the record: nobody waits for it.
        call("   [)", 4),
        call("    [)", 5, "cudaStreamWaitEvent"),
        call("     [)", 6),
        kernel("  [----)", 1, "early"),
        kernel("       [----)", 2, "recorded"),
        kernel("            [------------)", 4, "later"),
        kernel("              [-------------)", 6, "waiting", stream=9),
        sync_event(4, 1, "Stream Wait Event", 5, stream=9, wait_on_stream=7, wait_on_cuda_event_record_corr_id=3),
    )
    found = critical_path(*entries)
    assert found.edges["stream_wait"] == 1
    assert "assumed_stream_wait" not in found.edges
    assert found.assumptions == ()
    assert parts(*entries)[-2:] == [
        ("device 0 stream 9", "queue", 12, 2, "stream_wait"),
        ("device 0 stream 9", "compute", 14, 14, "device_event"),
    ]


def test_waits_within_a_graph_are_assumed_beside_recorded_ones() -> None:
    found = critical_path(
        drawn("[------)", "f.py(1): f", "python_function"),
        call("[)", 1),
        call(" [)", 2, "cudaEventRecord"),
        call("  [)", 3, "cudaStreamWaitEvent"),
        call("   [)", 4),
        call("     [-)", 5, "cudaGraphLaunch"),
        kernel(" [-)", 1, "a"),
        kernel("    [-)", 4, "b", stream=9),
        kernel("       [-------)", 5, "first"),
        kernel("                [--)", 5, "second", stream=9),
        sync_event(2, 1, "Stream Wait Event", 3, stream=9, wait_on_stream=7, wait_on_cuda_event_record_corr_id=2),
    )
    assert (found.edges["stream_wait"], found.edges.get("assumed_stream_wait")) == (1, 1)
    (path,) = found.windows
    assert (on_path(path)["compute"], on_path(path)["queue"]) == (8 + 3, 1)


def test_a_stream_is_assumed_to_have_waited_only_where_a_wait_was_called() -> None:
    entries = [
        call("[)", 1),
        kernel(" [---------)", 1, "first"),
        call("   [)", 2),
        kernel("             [----)", 2, "second", stream=9),
        call("                    [)", 7, "cudaStreamWaitEvent"),
    ]
    late = critical_path(*entries)
    assert "assumed_stream_wait" not in late.edges
    # The call that launched, and nothing until the start.
    assert on_path(late.windows[0]) == {"launch": 2, "queue": 9, "compute": 5, "unexplained": 5}
    before = critical_path(*entries, drawn(" [)", "cudaStreamWaitEvent", "cuda_runtime", WORKER, correlation=8))
    assert on_path(before.windows[0]) == {"launch": 1, "compute": 10 + 5, "queue": 2, "unexplained": 3}
    assert before.edges["assumed_stream_wait"] == 1
    assert [line for line in before.assumptions if "on another stream" in line] == [
        "1 device events that start late are taken to have waited for what ended last before them on another stream"
    ]


def test_what_ended_before_the_stream_was_free_tells_nothing() -> None:
    assert (
        "assumed_stream_wait"
        not in critical_path(
            call("[)", 1),
            call(" [)", 2),
            call("  [)", 3),
            kernel(" [--)", 1, stream=9),
            kernel("   [-------)", 2),
            kernel("             [--)", 3),
        ).edges
    )


@pytest.mark.parametrize(
    ("told", "kind", "waited"),
    [
        ((), "assumed_synchronization", 9),
        ((sync_event(7, 16, "Stream Sync", 3, stream=7),), "synchronization", 12),
        ((sync_event(7, 16, "Stream Sync", 3, stream=9),), "synchronization", 9),
    ],
)
def test_a_stream_synchronization_waits_for_the_stream_of_its_event(told: tuple, kind: str, waited: int) -> None:
    found = critical_path(
        call("[)", 1),
        call(" [)", 2),
        kernel("  [-----------------)", 1),
        kernel("   [--------------)", 2, stream=9),
        call("       [---------------)", 3, SYNCHRONIZE),
        *told,
    )
    assert found.edges[kind] == 1
    wait_ns = sum(share.total_ns for share in found.windows[0].kinds if share.name == "wait")
    # The call returns at 23, the streams are done at 20 and at 18.
    assert wait_ns == {9: 23 - 18, 12: 23 - 20}[waited]


def test_an_event_synchronization_waits_for_what_was_recorded() -> None:
    entries = (
        call("[)", 1),
        call(" [)", 2, "cudaEventRecord"),
        call("  [)", 3),
        kernel("   [----)", 1, "recorded"),
        kernel("        [--)", 3, "later"),
        call("    [-----------)", 4, "cudaEventSynchronize"),
    )
    told = sync_event(4, 12, "Event Sync", 4, stream=7, wait_on_stream=7, wait_on_cuda_event_record_corr_id=2)
    assert [share.total_ns for share in window(*entries).kinds if share.name == "wait"] == [16 - 11]
    assert [share.total_ns for share in window(*entries, told).kinds if share.name == "wait"] == [16 - 8]


def test_an_event_that_was_recorded_before_the_trace_began_is_assumed() -> None:
    found = critical_path(
        call("[)", 1),
        call("  [)", 3),
        kernel("   [----)", 1),
        kernel("        [--)", 3),
        call("    [-----------)", 4, "cudaEventSynchronize"),
        sync_event(4, 12, "Event Sync", 4, stream=-1, wait_on_stream=-1, wait_on_cuda_event_record_corr_id=-1),
    )
    assert [share.total_ns for share in found.windows[0].kinds if share.name == "wait"] == [16 - 11]
    assert found.edges["assumed_synchronization"] == 1


def test_a_device_that_is_done_early_leaves_the_call_its_own_time() -> None:
    path = window(
        call("[)", 1),
        kernel(" [-)", 1),
        call("      [---)", 2, "cudaDeviceSynchronize"),
        drawn("[---------)", "f.py(1): f", "python_function"),
    )
    assert on_path(path) == {"launch": 1, "python": 5, "wait": 4}
    # But it cannot return before the device is done.
    assert if_free(path.kinds)["python"] == 1 + 2 + 4


def test_a_device_synchronization_waits_for_every_stream() -> None:
    path = window(
        timed(0, 40, "train.py(1): step", "python_function"),
        timed(0, 1, "cudaLaunchKernel", "cuda_runtime", correlation=1),
        timed(1, 1, "cudaLaunchKernel", "cuda_runtime", correlation=2),
        timed(1, 19, "gemm", "kernel", (0, 7), device=0, stream=7, correlation=1),
        timed(2, 16, "ncclDevKernel_AllReduce", "kernel", (0, 9), device=0, stream=9, correlation=2),
        timed(2, 19, "cudaDeviceSynchronize", "cuda_runtime", correlation=3),
    )
    assert on_path(path) == {"launch": 1, "compute": 19, "wait": 1, "python": 19}
    # Without the gemm the other stream lets the call go on, at 18.
    assert if_free(path.kinds)["compute"] == 18 + 1 + 19
    # The call waits until 20 in any case.
    assert [each for each in path.slack if each.count] == [Slack("ncclDevKernel_AllReduce", "0", 1, 0, 2, 2)]


def test_what_was_waited_for_is_not_waited_for_again() -> None:
    found = critical_path(
        timed(0, 30, "train.py(1): step", "python_function"),
        call("[)", 1),
        call(" [)", 2),
        kernel("  [---)", 1),
        kernel("  [--)", 2, stream=9),
        call("   [-----)", 3, "cudaDeviceSynchronize"),
        call("          [)", 4),
        kernel("           [--)", 4),
        call("            [----)", 5, "cudaDeviceSynchronize"),
        call("                   [)", 6, "cudaDeviceSynchronize"),
    )
    # Both streams, and what was launched since.
    assert found.edges["synchronization"] == 2 + 1


def test_a_blocking_copy_waits_for_its_stream_and_for_itself() -> None:
    entries = (
        call("[)", 1),
        kernel(" [----------)", 1),
        call("   [---------------)", 2, "cudaMemcpyAsync"),
        kernel("             [--)", 2, "Memcpy DtoH (Device -> Pageable)", "gpu_memcpy"),
    )
    assert parts(*entries) == [
        ("thread 10", "launch", 0, 1, "program_order"),
        ("device 0 stream 7", "compute", 1, 11, "launch"),
        ("thread 10", "wait", 12, 1, "synchronization"),
        ("device 0 stream 7", "copy", 13, 3, "launch"),
        ("thread 10", "wait", 16, 3, "synchronization"),
    ]


@pytest.mark.parametrize(
    ("copied", "waits", "kernel_ns", "assumed"),
    [
        ("Memcpy DtoH (Device -> Pageable)", (), 20, {"assumed_synchronization": 1}),
        ("Memcpy HtoD (Pageable -> Device)", (), 0, {}),
        (
            "Memcpy HtoD (Pageable -> Device)",
            (sync_event(1, 1, "Stream Wait Event", 2, stream=9, wait_on_stream=7),),
            20,
            {},
        ),
    ],
)
def test_a_blocking_copy_waits_for_what_its_stream_waited_for(
    copied: str, waits: tuple[dict, ...], kernel_ns: int, assumed: dict[str, int]
) -> None:
    path = window(
        drawn("[-----------------------------)", "train.py(1): step", "python_function"),
        call("[)", 1),
        kernel(" [-------------------)", 1),
        call(" [)", 2, "cudaStreamWaitEvent"),
        call("  [----------------------)", 3, "cudaMemcpyAsync"),
        kernel("                     [--)", 3, copied, "gpu_memcpy", stream=9),
        *waits,
    )
    assert (on_path(path).get("compute", 0), on_path(path)["copy"]) == (kernel_ns, 3)
    # Without the kernel two calls, the copy, the rest of its call, and Python are left.
    assert if_free(path.kinds)["compute"] == (2 + 3 + 1 + 5 if kernel_ns else 30)
    assert path.assumed == assumed


@pytest.mark.parametrize(
    ("called", "copied"),
    [
        ("cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)"),
        ("cudaMemcpyAsync", "Memcpy HtoD (Pinned -> Device)"),
        ("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pinned)"),
        ("cuMemcpyDtoDAsync_v2", "Memcpy DtoD (Device -> Device)"),
    ],
)
def test_nothing_waits_for_an_asynchronous_copy_between_device_and_pinned_memory(called: str, copied: str) -> None:
    path = window(
        timed(0, 20, "f.py(1): f", "python_function"),
        call("  [-------)", 1, called),
        kernel("    [--)", 1, copied, "gpu_memcpy"),
    )
    assert on_path(path) == {"python": 12, "launch": 8}
    assert if_free(path.kinds)["copy"] == 20
    assert path.slack == (Slack(copied, "0", 1, 0, 20 - 7, 20 - 7),)


def test_a_copy_within_host_memory_blocks_its_call() -> None:
    path = window(
        timed(0, 20, "f.py(1): f", "python_function"),
        call("  [-------)", 1, "cudaMemcpyAsync"),
        kernel("    [--)", 1, "Memcpy HtoH (Pinned -> Pinned)", "gpu_memcpy"),
    )
    assert on_path(path) == {"python": 12, "launch": 5, "copy": 3}


def test_the_caller_waits_for_the_backward_pass() -> None:
    backward = "autograd::engine::evaluate_function: AddBackward0"
    entries = (
        drawn("[--)", "aten::add"),
        drawn("     [-----)", backward, thread=AUTOGRAD),
        drawn("              [---)", "aten::sub"),
        drawn("           [-)", backward, thread=AUTOGRAD),
    )
    assert parts(*entries) == [
        ("thread 10", "dispatcher", 0, 3, "program_order"),
        ("thread 10", "python", 3, 2, "program_order"),
        ("thread 11", "dispatcher", 5, 8, "backward"),
        ("thread 10", "python", 13, 1, "backward"),
        ("thread 10", "dispatcher", 14, 4, "program_order"),
    ]


def test_what_remains_of_a_wait_for_the_device_counts_on_an_autograd_thread() -> None:
    path = window(
        drawn("[--)", "aten::add"),
        drawn("     [--------------)", "autograd::engine::evaluate_function: AddBackward0", thread=AUTOGRAD),
        call("      [)", 1, thread=AUTOGRAD),
        kernel("       [------)", 1),
        call("        [---------)", 2, SYNCHRONIZE, AUTOGRAD),
        drawn("                      [--)", "aten::sub"),
    )
    assert on_path(path) == {"python": 2 + 2, "dispatcher": 3 + 1 + 2 + 3, "launch": 1, "compute": 7, "wait": 4}
    assert path.unexplained_ns == 0


def test_work_of_another_thread_counts_where_it_launches() -> None:
    entries = (
        drawn("[------------------)", "aten::add"),
        drawn("[-------------------------)", "loop.py(1): run", "python_function", thread=WORKER),
        call("  [)", 1, thread=WORKER),
        kernel("   [------------------)", 1),
    )
    path = window(*entries)
    assert path.wall_ns == 26
    # The other thread's own end is nobody's: the path ends with the device, and nothing says what the rest was for.
    assert on_path(path) == {"python": 2, "launch": 1, "compute": 19, "unexplained": 4}


def test_each_step_has_its_path() -> None:
    entries = (
        drawn("[--------------)", STEP, "user_annotation"),
        drawn("               [--------------)", "ProfilerStep#2", "user_annotation"),
        drawn("[-----------------------------)", "f.py(1): f", "python_function"),
        call("  [)", 1),
        kernel("   [--------------------)", 1),
        call("    [-------------------)", 2, "cudaDeviceSynchronize"),
    )
    first, second = critical_path(*entries).windows
    assert (first.step, first.start_ns, first.wall_ns, on_path(first)) == (
        1,
        0,
        15,
        {"python": 2, "launch": 1, "compute": 12},
    )
    # The kernel began in the step before: eight of it lie in this one, and what follows.
    assert (second.step, second.start_ns, second.wall_ns) == (2, 15, 15)
    assert on_path(second) == {"python": 6, "compute": 9}
    assert if_free(second.kinds) == {"python": 9, "compute": 6}


def test_a_kernel_that_lasts_over_all_of_a_step() -> None:
    entries = (
        drawn("     [------)", STEP, "user_annotation"),
        call("[)", 1),
        kernel(" [-----------------)", 1),
        call("  [-----------------)", 2, "cudaDeviceSynchronize"),
    )
    path = window(*entries)
    assert (path.wall_ns, on_path(path), if_free(path.kernels)) == (7, {"compute": 7}, {"gemm": 0})


def test_a_kernel_that_lasts_over_all_of_a_step_beside_its_path() -> None:
    path = window(
        timed(0, 29, "train.py(1): main", "python_function"),
        timed(5, 7, STEP, "user_annotation"),
        call("[)", 1),
        timed(1, 17, "ncclDevKernel_AllReduce", "kernel", (0, 7), device=0, stream=7, correlation=1),
    )
    assert path.kinds == (Share("python", 7, 7, 7), Share("communication", 0, 7, 7))
    assert path.kernels == (Share("ncclDevKernel_AllReduce", 0, 7, 7),)


def test_kernels_of_two_streams_that_last_over_all_of_a_step() -> None:
    path = window(
        drawn("     [------)", STEP, "user_annotation"),
        call("[)", 1),
        kernel(" [-----------------)", 1),
        call(" [)", 2),
        kernel("  [-----------------)", 2, "ncclDevKernel_AllReduce", stream=9),
        call("   [----------------)", 3, "cudaDeviceSynchronize"),
    )
    # Without the one the other still takes as long.
    assert path.kinds == (Share("compute", 7, 7, 7), Share("communication", 0, 7, 7))


@pytest.mark.parametrize("far", [0, 2, 4096])
def test_work_of_another_thread_beside_the_path_counts_in_each_step_that_it_crosses(
    far: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overhead_lens.traces.critical_path.analysis._FAR", far)
    first, second = critical_path(
        drawn("[-----------------------------)", "aten::mul"),
        drawn("  [-----)", STEP, "user_annotation"),
        drawn("          [-----)", "ProfilerStep#2", "user_annotation"),
        drawn("     [-----------------)", "aten::empty", thread=WORKER),
    ).windows
    assert first.kinds == (Share("dispatcher", 6, 6, 0), Share("allocation", 0, 3, 6))
    assert second.kinds == (Share("dispatcher", 6, 6, 0), Share("allocation", 0, 6, 6))


def test_slack_counts_what_is_on_the_path_of_other_steps() -> None:
    found = critical_path(
        timed(0, 40, "train.py(1): main", "python_function"),
        timed(0, 20, STEP, "user_annotation"),
        timed(20, 20, "ProfilerStep#2", "user_annotation"),
        timed(0, 1, "cudaLaunchKernel", "cuda_runtime", correlation=1),
        timed(1, 14, "gemm", "kernel", (0, 7), device=0, stream=7, correlation=1),
        timed(1, 15, "cudaDeviceSynchronize", "cuda_runtime", correlation=2),
        timed(20, 1, "cudaLaunchKernel", "cuda_runtime", correlation=3),
        timed(21, 4, "gemm", "kernel", (0, 7), device=0, stream=7, correlation=3),
    )
    # It may end with the second step, 15 later.
    slacks = [slack for path in found.windows for slack in path.slack]
    assert slacks == [Slack("gemm", "0", 0, 1, 0, 0), Slack("gemm", "0", 1, 0, 15, 15)]
    (rows,) = (
        [[cell.text for cell in row.cells] for row in block.rows]
        for section in path_sections(found)
        for block in section.blocks
        if isinstance(block, Table) and "without making the path longer" in block.caption
    )
    assert rows == [["15 ns", "15 ns", "1", "1", "0", "gemm"]]


def test_what_is_left_without_the_costliest_stands_beside_what_that_saves() -> None:
    first, *_ = path_sections(critical_path(*BLOCKED))
    lines = [line for block in first.blocks if isinstance(block, Notes) for line in block.lines]
    assert lines == ["time left if free, kernels: gemm 16 ns (-46.7%)"]


def test_steps_that_overlap_have_one_path() -> None:
    found = critical_path(
        drawn("[--------)", STEP, "user_annotation"),
        drawn("     [---------)", "ProfilerStep#2", "user_annotation"),
        drawn("[-------------)", "f.py(1): f", "python_function"),
    )
    assert [each.step for each in found.windows] == [1]
    assert found.assumptions == ("1 steps overlap an earlier one or take no time: they have no critical path here",)


def test_clocks_that_disagree_are_broken_between_host_and_device() -> None:
    found = critical_path(
        kernel(" [---)", 1),
        call("   [--)", 1),
        kernel("         [-----)", 2),
        call("       [)", 2),
        call("        [---)", 3, "cudaDeviceSynchronize"),
        drawn("[---------------)", "f.py(1): f", "python_function"),
    )
    assert found.broken == {"launch": 1, "synchronization": 1}
    assert found.edges["stream_order"] == 1
    assert "1 dependencies (launch) contradict the clocks, which disagree, and were left out" in found.assumptions
    assert found.windows[0].length_ns == 16


def test_events_of_one_stream_that_overlap() -> None:
    path = window(
        call("[)", 1),
        call(" [)", 2),
        kernel(" [-----)", 1, "a"),
        kernel("    [------)", 2, "b"),
    )
    assert [(share.name, share.ns) for share in path.kernels] == [("b", 7), ("a", 3)]
    assert on_path(path) == {"launch": 1, "compute": 10}


def test_modules_of_the_host_and_of_what_it_launched() -> None:
    path = window(
        drawn("[--------------)", "nn.Module: Model_0", "python_function"),
        drawn("  [------)", "nn.Module: Linear_0", "python_function"),
        call("    [)", 1),
        kernel("     [-----------)", 1),
    )
    assert [(share.name, share.ns, share.total_ns) for share in path.modules] == [
        ("nn.Module: Linear_0", 2 + 1 + 12, 2 + 1 + 4 + 12),
        ("nn.Module: Model_0", 2, 2 + 6),
    ]


def test_modules_are_those_of_all_steps_together() -> None:
    entries = [timed(0, 400, "train.py(1): main", "python_function")]
    for step, lasting in ((1, [10] * 10 + [9]), (2, [10] * 9 + [9, 30])):
        now = 200 * (step - 1)
        entries.append(timed(now, 200, f"ProfilerStep#{step}", "user_annotation"))
        for number, ns in enumerate(lasting):
            entries.append(timed(now, ns, f"nn.Module: M{number}_0", "python_function"))
            now += ns
    sums: Counter[str] = Counter()
    for path in critical_path(*entries).windows:
        sums.update({share.name: share.ns for share in path.modules})
    # The ten with most time in both steps, each with the time of both.
    assert sums == {"nn.Module: M10_0": 9 + 30, **{f"nn.Module: M{number}_0": 10 + 10 for number in range(9)}}


def test_a_trace_without_host_events_is_its_busiest_stream() -> None:
    path = window(
        kernel("[----)", 1, "a"),
        kernel("       [--)", 2, "b"),
        kernel("  [-----)", 3, "c", stream=9),
    )
    assert (path.wall_ns, on_path(path)) == (10, {"compute": 5 + 3, "unexplained": 2})


def test_nothing_recorded_has_no_path() -> None:
    assert critical_path() == CriticalPath((), {}, {}, ())
    assert critical_path(drawn("[)", "ProfilerStep#1", "user_annotation")).windows[0].kinds == (
        Share("python", 1, 1, 0),
    )
    instant = timed(0, 0, "aten::add")
    assert critical_path(instant) == CriticalPath((), {}, {}, ())


def test_a_trace_without_length_has_no_path() -> None:
    call = timed(3, 0, SYNCHRONIZE, "cuda_runtime", correlation=1)
    work = timed(3, 0, "gemm", "kernel", (0, 7), device=0, stream=7, correlation=2)
    other = timed(3, 0, "autograd::engine::evaluate_function: A", thread=AUTOGRAD)
    assert critical_path(call, work, other).windows == ()


def test_it_is_only_made_when_it_is_asked_for() -> None:
    assert analyzer_of(*BLOCKED).analysis().critical_path is None


def test_latencies_are_those_of_launches_that_had_nothing_to_wait_for() -> None:
    entries = (
        drawn("[----------------------------)", "f.py(1): f", "python_function"),
        call("[)", 1),
        call(" [)", 2),
        kernel("   [---------)", 1, "first"),
        kernel("             [-----)", 2, "second"),
        call("  [----------------------)", 3, "cudaDeviceSynchronize"),
    )
    path = window(*entries)
    # Two from the first launch; the second waited for its stream, which tells nothing of latencies.
    assert on_path(path) == {"launch": 1, "launch_latency": 2, "compute": 16, "wait": 6, "python": 4}
    # Without kernels: the second launch, two until its kernel, and what comes after the synchronization.
    assert if_free(path.kinds)["compute"] == 2 + 2 + 6 + 4


def test_what_had_ended_stands_for_what_ended_too_late_by_the_clock() -> None:
    entries = (
        drawn("[--------------)", "f.py(1): f", "python_function"),
        call("[)", 1),
        call(" [)", 2),
        kernel("  [-----)", 1, "first"),
        kernel("        [-----)", 2, "second"),
        call("   [--------)", 3, "cudaDeviceSynchronize"),
    )
    found = critical_path(*entries)
    assert (found.broken, found.edges["assumed_synchronization"]) == ({"synchronization": 1}, 1)
    (path,) = found.windows
    # The call returns at 12; the first kernel is done at 8, the second at 14.
    assert [share.total_ns for share in path.kinds if share.name == "wait"] == [4]
    assert on_path(path) == {"launch": 1, "launch_latency": 1, "compute": 6, "wait": 4, "python": 3}


def test_a_copy_that_begins_as_soon_as_usual_waited_for_no_other_stream() -> None:
    entries = [timed(0, 2000, "train.py(1): step", "python_function")]
    for at in range(20):
        entries += [
            timed(20 * at, 2, "cudaLaunchKernel", "cuda_runtime", correlation=at + 1),
            timed(20 * at + 10, 4, "gemm", "kernel", (0, 7), device=0, stream=7, correlation=at + 1),
        ]
    entries += [
        timed(500, 2, "cudaLaunchKernel", "cuda_runtime", correlation=100),
        timed(510, 497, "prefetch", "kernel", (0, 9), device=0, stream=9, correlation=100),
        timed(1000, 16, "cudaMemcpyAsync", "cuda_runtime", correlation=101),
        timed(1010, 2, "Memcpy DtoH (Device -> Pageable)", "gpu_memcpy", (0, 7), device=0, stream=7, correlation=101),
    ]
    path = window(*entries)
    assert on_path(path).get("compute", 0) == 0
    assert path.assumed == {}
