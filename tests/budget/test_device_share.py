"""The device's side of a profiled call, from hand-drawn recordings."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from overhead_lens.budget.device import bare_share, device_share
from overhead_lens.budget.trace import profiler_pauses
from overhead_lens.documents.breakdown import breakdown_document
from overhead_lens.errors import InvariantError
from overhead_lens.report.forms import print_text, to_text
from overhead_lens.subject import Subject
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.analyzer import Analyzer
from tests.documents import validated
from tests.drawn.builders import breakdown
from tests.drawn.timelines import CLASSIFIER, call, drawn, kernel, timed, trace_of

# Two calls in 40 ns under the profiler: the device is busy for 4 + 8 of them.
RECORDING = [
    timed(0, 40, "measured_loop", "user_annotation"),
    drawn("  [---------)", "aten::mm"),
    call("    [---)", 1),
    kernel("            [---)", 1),
    drawn("                       [)", "aten::view"),
    call("                        [--)", 2),
    kernel("                             [-------)", 2),
    drawn("                                    [---)", "cudaDeviceSynchronize", "cuda_runtime"),
    timed(41, 5, "after the loop", "kernel", (0, 7), device=0, stream=7),
]


def share(wall_ns: int, recording=RECORDING, calls: int = 2):
    return device_share(trace_of(recording).events, calls, wall_ns, "cuda", CLASSIFIER)


def test_busy_is_the_traces_and_idle_the_rest_of_the_bare_wall() -> None:
    device, warnings = share(18)
    assert device is not None
    assert (device.busy_ns, device.idle_ns, device.compute_ns, warnings) == (6, 12, 6, ())
    # Of 28 idle ns in the trace 4 are queueing, 7 launches, 4 the operator, 3 synchronizing, 1 the view, 9 Python:
    # scaled to 12.
    in_trace = {"python": 10, "dispatcher": 3 + 1, "launch": 4 + 3, "wait": 3, "queue": 4 + 2}
    scaled = {name: ns * 12 / 28 for name, ns in in_trace.items()}
    assert sum(in_trace.values()) in (28, 30)
    assert sum(device.idle_blame.values()) == 12
    for name, ns in scaled.items():
        assert abs(device.idle_blame[name] - ns) < 1.5
    assert (device.events_per_call, device.launches_per_call) == (1, 1)
    assert (device.launch_median_ns, device.launch_p99_ns) == (5, 8)
    assert [(each.name, each.per_call, each.ns) for each in device.top] == [("gemm", 1, 6)]


def test_idle_time_in_pauses_of_the_profiler_is_not_the_calls() -> None:
    recorded, _ = share(40, calls=1)
    # The operator from 2 to 4, its launch from 4 on; the third pause is in busy time, the last after the loop.
    pauses = [
        timed(start, dur, name, "overhead", (-1, 0))
        for start, dur, name in (
            (3, 4, torch_names.PROFILER_PAUSE),
            (20, 1, "Buffer Flush"),
            (31, 2, torch_names.PROFILER_PAUSE),
            (41, 3, torch_names.PROFILER_PAUSE),
        )
    ]
    device, _ = share(36, [*RECORDING, *pauses], calls=1)
    assert recorded is not None and device is not None
    less = {"dispatcher": 1, "launch": 3}
    assert device.idle_blame == {name: ns - less.get(name, 0) for name, ns in recorded.idle_blame.items()}
    assert (device.busy_ns, device.compute_ns) == (12, 12)


def test_a_device_that_is_busier_than_the_bare_call_has_no_idle_time() -> None:
    device, (warning,) = share(5)
    assert device is not None
    assert (device.busy_ns, device.idle_ns, sum(device.idle_blame.values())) == (5, 0, 0)
    assert [(each.name, each.per_call, each.ns) for each in device.top] == [("gemm", 1, 5)]
    assert "longer than the bare call" in warning


def test_work_that_goes_on_into_the_next_window_counts_once() -> None:
    recording = [
        timed(0, 40, "steps", "user_annotation"),
        call("  [--)", 1),
        kernel("          [------------------)", 1),
    ]
    trace = trace_of(recording)
    (device,) = Analyzer(trace, CLASSIFIER).devices
    found, _ = bare_share(device, "cuda", [(0, 20), (20, 40)], 2, 20, profiler_pauses(trace.columns))
    assert (found.events_per_call, found.launches_per_call) == (0.5, 0.5)
    assert [each.per_call for each in found.top] == [0.5]


def test_without_device_work_there_is_no_share() -> None:
    assert share(5, RECORDING[:2]) == (None, ())


def test_of_two_devices_the_busiest() -> None:
    device, (warning,) = share(100, [*RECORDING, kernel("[------------------)", 9, device=1)])
    assert device is not None
    assert (device.device, device.busy_ns) == ("1", 10)
    assert "2 devices were used" in warning


@given(wall_ns=st.integers(0, 10_000), calls=st.integers(1, 50))
def test_it_always_closes(wall_ns: int, calls: int) -> None:
    device, _ = share(wall_ns, calls=calls)
    assert device is not None
    assert device.busy_ns + device.idle_ns == wall_ns
    assert sum(device.idle_blame.values()) == device.idle_ns
    assert device.compute_ns <= device.busy_ns


def test_the_budget_shows_it() -> None:
    device, _ = share(1_000)
    shown = replace(
        breakdown(python=600, launch=400), device=device, subject=Subject("scenario", "drawn", "drawn", device="cuda")
    )
    document = validated(breakdown_document(shown).to_json())
    assert (document["device"]["busy_ns"], document["device"]["idle_ns"]) == (6, 994)
    assert document["device"]["kinds"] == {"compute_ns": 6, "communication_ns": 0, "copy_ns": 0, "overlap_ns": 0}
    text = StringIO()
    print_text(Console(file=text, width=100), shown)
    assert "Device 0 (cuda), of the same wall time: busy + idle = wall" in text.getvalue()
    heads, row = [line.split() for line in text.getvalue().splitlines() if "gemm" in line or "times" in line]
    assert heads == ["per", "call", "share", "times", "kind", "kernel", "or", "copy"]
    assert row == ["6", "ns", "0.6%", "1", "compute", "gemm"]


def test_without_launches_there_is_no_latency() -> None:
    device, _ = share(1_000)
    assert device is not None
    lines = to_text(replace(breakdown(python=1_000), device=replace(device, launches_per_call=0.0))).splitlines()
    (idle,) = [line for line in lines if line.startswith("idle, due to")]
    assert idle.endswith(" 0 launches")


def test_a_share_that_does_not_close_is_refused() -> None:
    device, _ = share(1_000)
    with pytest.raises(InvariantError, match="busy and idle"):
        replace(breakdown(python=999), device=device)
