"""Launch figures of drawn traces, to the nanosecond."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from hypothesis import given, settings

from overhead_lens.export.query import run_query
from overhead_lens.report.forms import to_html, to_json, to_text
from overhead_lens.report.outlines.recorded.launches import rates
from overhead_lens.traces.launch_figures.analysis import MOST_FLOOR_NS, per_token
from overhead_lens.traces.launch_figures.model import DeviceLaunches, InputBatch, LaunchFigures
from overhead_lens.traces.pieces import analyze_over_time
from tests.documents import validated
from tests.drawn.timelines import CLASSIFIER, analyzer_of, call, drawn, kernel, timed, trace_of
from tests.traces.test_trace_analysis import TRACES


def figures(*entries: dict) -> DeviceLaunches:
    """Those of the one device."""
    (device,) = analyzer_of(*entries).analysis().launch_figures
    return device


QUEUED = (
    call("[-)", 1),
    call("   [)", 2),
    call("    [)", 3, "cudaMemcpyAsync"),
    call("              [)", 4, "cudaGraphLaunch"),
    kernel("   [------)", 1),
    kernel("           [)", 2),
    kernel("            [)", 3, "Memcpy DtoH", "gpu_memcpy"),
    kernel("                  [)", 4, "a"),
    kernel("                    [)", 4, "b"),
    kernel("                      [-)", 9, "c"),
)


def test_the_time_from_call_to_kernel_and_its_parts() -> None:
    device = figures(*QUEUED)
    # From 0 to 3, from 3 to 11 (busy from 3 to 10), and of the graph its first kernel, from 14 to 18; no copy.
    assert (device.least_ns, device.least_unknown, device.repaired) == (3, "", 0)
    assert device.whole == LaunchFigures(
        kernels=5, unlinked=1, kernel_ns=7 + 1 + 1 + 1 + 2,
        launches=3, graph_launches=1, graph_kernels=2,
        tklqt_ns=3 + 8 + 4, floor_ns=3 * 3, queued_ns=8 - 3, above_ns=1, bound="neither",
    )  # fmt: skip


def test_a_copy_that_amd_records_among_the_kernels_is_none() -> None:
    copy = kernel("            [)", 3, "__amd_rocclr_copyBuffer")
    assert figures(*QUEUED[:6], copy, *QUEUED[7:]) == figures(*QUEUED)


def test_the_order_of_the_events_does_not_matter() -> None:
    assert figures(*QUEUED[::-1]) == figures(*QUEUED)


def test_a_kernel_belongs_to_the_step_of_its_call() -> None:
    device = figures(
        drawn("[--------)", "ProfilerStep#3", "user_annotation"),
        drawn("          [----------------)", "ProfilerStep#4", "user_annotation"),
        drawn("                              [)", "ProfilerStep#5", "user_annotation"),
        *QUEUED,
    )
    steps = {step.step: step.figures for step in device.steps}
    assert [(step, told.kernels, told.unlinked, told.tklqt_ns) for step, told in steps.items()] == [
        (3, 2, 0, 11), (4, 3, 1, 4), (5, 0, 0, 0),
    ]  # fmt: skip
    assert (steps[4].floor_ns, steps[4].above_ns, steps[4].graph_launches, steps[4].graph_kernels) == (3, 1, 1, 2)
    assert (device.kernels_per_step, device.kernels_per_token) == (2, None)
    assert steps[5].bound is None


@pytest.mark.parametrize(
    ("work", "bound"),
    [
        ("  [-----------------)", "device"),  # 18 of 20
        ("  [----------------)", "host"),  # 17 of 20: the host launches, then does nothing else
    ],
)
def test_what_bounds_a_step(work: str, bound: str) -> None:
    step = drawn("[-------------------)", "ProfilerStep#1", "user_annotation")
    python = drawn("[-------------------)", "my.py(1): f", "python_function")
    (told,) = figures(step, python, call("[-)", 1), kernel(work, 1)).steps
    assert told.figures.bound == bound


def test_who_waits_is_bound_by_neither() -> None:
    step = drawn("[-------------------)", "ProfilerStep#1", "user_annotation")
    waits = call("   [----------------)", 9, "cudaDeviceSynchronize")
    (told,) = figures(step, call("[)", 1), kernel("   [)", 1), waits).steps
    assert told.figures.bound == "neither"


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([kernel("[--)", 1)], "no kernel has its launching call in the trace"),
        ([call("     [)", 1), kernel("[--)", 1), call("       [)", 2), kernel("           [)", 2)], "1 kernels start before their call"),
        (
            [timed(0, 1, "cudaLaunchKernel", "cuda_runtime", correlation=1),
             timed(MOST_FLOOR_NS + 1, 5, "k", "kernel", (0, 7), device=0, stream=7, correlation=1)],
            "none started within 100 µs of its call",
        ),
    ],
)  # fmt: skip
def test_no_floor_is_seen(entries: list[dict], why: str) -> None:
    device = figures(*entries)
    assert device.least_ns is None
    assert why in device.least_unknown
    assert device.whole.floor_ns == 0


def test_a_floor_of_the_longest_that_counts() -> None:
    device = figures(
        timed(0, 1, "cudaLaunchKernel", "cuda_runtime", correlation=1),
        timed(MOST_FLOOR_NS, 5, "k", "kernel", (0, 7), device=0, stream=7, correlation=1),
    )
    assert (device.least_ns, device.whole.floor_ns, device.whole.above_ns) == (MOST_FLOOR_NS, MOST_FLOOR_NS, 0)


def test_a_sum_that_int64_does_not_hold() -> None:
    far = 4 * 10**18
    launches = [timed(at, 1, "cudaLaunchKernel", "cuda_runtime", correlation=at) for at in range(4)]
    work = [timed(far + at, 1, "k", "kernel", (0, 7), device=0, stream=7, correlation=at) for at in range(4)]
    assert figures(*launches, *work).whole.tklqt_ns == 4 * far


def test_without_a_device_there_are_none() -> None:
    assert analyzer_of(drawn("[---)", "aten::mm")).analysis().launch_figures == ()
    assert analyzer_of().analysis().launch_figures == ()


VLLM = "execute_context_0(0)_generation_4(4)"


@pytest.mark.parametrize(
    ("name", "per_token"),
    [
        ("step[DECODE bs=32]", 1.5),
        (VLLM, 1.5),
        ("execute_32_context_0(sq0sk0)_generation_32(sq32sk32785)", 1.5),
        ("execute_context_1(512)_generation_4(4)", None),  # prefill as well
        ("execute_context_0(0)_generation_0(0)", None),
        ("execute_context_0(0)_generation_8(32)", None),  # three drafts each
        ("execute_32_context_0(sq0sk0)_generation_8(sq32sk32785)", None),
        ("execute_context_0(0)_generation_3(32)", None),
        ("step[EXTEND bs=1]", None),
        ("my decode step", None),
    ],
)
def test_steps_that_are_tokens(name: str, per_token: float | None) -> None:
    device = figures(
        drawn("[----)", name, "user_annotation"),
        drawn("             [----)", name, "user_annotation"),
        *QUEUED,
    )
    # Of the three kernels with a call in these two, two are of one graph; and one has no call and begins after both.
    assert device.kernels_per_token == (per_token and 4 / 2)
    assert device.decode_steps == (2 if per_token else 0)


def test_tokens_that_the_user_gives() -> None:
    step = drawn("[-------------------------)", "ProfilerStep#1", "user_annotation")
    device = figures(step, *QUEUED)
    assert per_token(device, 2).kernels_per_token == 2.5
    # What the trace says stands; without steps nothing can be said.
    assert per_token(replace(device, kernels_per_token=7.0), 2).kernels_per_token == 7.0
    assert per_token(figures(*QUEUED), 2).kernels_per_token is None


def dims(*shapes: Any) -> dict[str, Any]:
    return {"Input__Dims": list(shapes)}


@pytest.mark.parametrize(
    ("entries", "batch"),
    [
        ([], None),
        ([drawn("[)", "aten::mm", **dims([8, 2], [2, 2]))], InputBatch(None, "no embedding, convolution or linear layer in the trace")),
        ([drawn("[)", "aten::linear")], InputBatch(None, "recorded without shapes (record_shapes=True)")),
        ([drawn("   [)", "aten::linear", **dims([9, 2])), drawn("[)", "aten::linear", **dims([8, 3, 2]))], InputBatch(8, "aten::linear of [8, 3, 2]")),
        ([drawn("[)", "aten::embedding", **dims([1000, 2], [16, 5]))], InputBatch(16, "aten::embedding of [16, 5]")),
        ([drawn("[)", "aten::embedding", **dims([1000, 2], [80])), drawn(" [)", "aten::linear", **dims([80, 2]))],
         InputBatch(None, "the input of aten::embedding has no batch dimension")),
        ([drawn("[)", "aten::conv2d", **dims([4, 3, 8, 8]))], InputBatch(4, "aten::conv2d of [4, 3, 8, 8]")),
        ([drawn("[)", "aten::conv2d", **dims([3, 224, 224]))], InputBatch(None, "the input of aten::conv2d has no batch dimension")),
        ([drawn("[)", "aten::conv1d", **dims([80, 3000]))], InputBatch(None, "the input of aten::conv1d has no batch dimension")),
        ([drawn("[)", "aten::conv1d", **dims([2, 80, 3000]))], InputBatch(2, "aten::conv1d of [2, 80, 3000]")),
        ([drawn("[)", "aten::linear", **dims([0, 8]))], InputBatch(None, "the input of aten::linear has no batch dimension")),
        ([drawn("[)", "aten::linear", Input__Dims="no list")], InputBatch(None, "the input of aten::linear has no batch dimension")),
        ([drawn("[)", "aten::linear", **dims([["8"], 2]))], InputBatch(None, "the input of aten::linear has no batch dimension")),
    ],
)  # fmt: skip
def test_the_batch_size_that_shapes_tell(entries: list[dict], batch: InputBatch | None) -> None:
    assert analyzer_of(*entries).analysis().batch == batch


def test_they_are_shown() -> None:
    step = drawn("[-------------------------)", "ProfilerStep#1", "user_annotation")
    analysis = analyzer_of(step, *QUEUED).analysis()
    (trace,) = validated(to_json(analysis))["traces"]
    (device,) = trace["launch_figures"]
    assert (device["device"], device["least_ns"], device["kernels_per_step"]) == ("0", 3, 5)
    assert (device["whole"]["tklqt_ns"], device["steps"][0]["step"]) == (15, 1)
    text = to_text(analysis, whole=True)
    assert "device 0: 15 ns over 3 launches: 60% floor (3 ns each), 33% behind a busy device, 7% else" in text
    assert "5 kernels per step; steps: 1 neither" in text
    assert "15 ns over 3 launches" in to_html(analysis)


def test_half_a_kernel_is_told_as_such() -> None:
    device = replace(figures(*QUEUED), kernels_per_step=2.5)
    assert rates(device) == "2.5 kernels per step; the whole is bound by neither host nor device"


def test_the_table_of_a_query() -> None:
    step = drawn("[-------------------------)", "ProfilerStep#1", "user_annotation")
    traces = [analyze_over_time(trace_of(entries), CLASSIFIER) for entries in ([step, *QUEUED], [])]
    asked = "select trace, device, step, least_ns, kernels, tklqt_ns, queued_ns, bound from launch_figures order by step nulls first"
    assert run_query(asked, traces).rows == (
        (0, "0", None, 3, 5, 15, 5, "neither"),
        (0, "0", 1, 3, 5, 15, 5, "neither"),
    )


def ns(entry: dict) -> tuple[int, int]:
    return round(float(entry["ts"].text) * 1000), round(float(entry["dur"].text) * 1000)


def by_hand(entries: list[dict], number: int) -> tuple[int | None, list[tuple[int, int, int, int]]]:
    """The floor, and per kernel when it was asked for, its time to start (-1 if it is no term), busy time of it, and 1."""
    calls = [entry for entry in entries if entry["cat"] == "cuda_runtime"]
    work = [entry for entry in entries if entry["cat"] == "kernel" and entry["pid"] == number]
    busy = {now for entry in work for now in range(ns(entry)[0], sum(ns(entry)))}
    seen, told, negative = set(), [], False
    for entry in sorted(work, key=lambda entry: ns(entry)[0]):
        correlation = entry["args"]["correlation"]
        able = [one for one in calls if one["args"]["correlation"] == correlation >= 0]
        if not able:
            told.append((ns(entry)[0], -1, 0, 1))
            continue
        first = min(able, key=lambda one: ns(one)[0])
        called = ns(first)[0]
        if "GraphLaunch" in first["name"] and id(first) in seen:
            told.append((called, -1, 0, 1))
            continue
        seen.add(id(first))
        negative |= ns(entry)[0] < called
        to_start = max(0, ns(entry)[0] - called)
        told.append((called, to_start, len(busy & set(range(called, called + to_start))), 1))
    terms = [one[1] for one in told if one[1] >= 0]
    return (min(terms) if terms and not negative else None), told


@settings(max_examples=100)
@given(entries=TRACES)
def test_by_hand(entries: list[dict]) -> None:
    analysis = analyzer_of(timed(0, 1, "note", "user_annotation"), *entries).analysis()
    for device in analysis.launch_figures:
        floor, told = by_hand(entries, int(device.device))
        assert device.least_ns == floor
        windows = [(one.window.bounds, step.figures) for one, step in zip(analysis.steps, device.steps, strict=True)]
        for (start, end), found in [((-1, 10**6), device.whole), *windows]:
            inside = [one for one in told if start <= one[0] < end]
            terms = [one for one in inside if one[1] >= 0]
            assert found.kernels == len(inside)
            assert found.launches == len(terms)
            assert found.tklqt_ns == sum(one[1] for one in terms)
            assert found.floor_ns == (floor or 0) * len(terms)
            assert found.queued_ns == sum(min(one[2], one[1] - (floor or 0)) for one in terms)
        if device.steps:
            assert device.kernels_per_step == median(step.figures.kernels for step in device.steps)
