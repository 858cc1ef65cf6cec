"""Findings in a sentence: what is said of the event that leads, and where it is."""

from __future__ import annotations

import pytest

from overhead_lens.traces.findings.model import Evidence, Finding
from overhead_lens.traces.findings.sentences import sentence, short_name
from overhead_lens.traces.host_budget import BACKWARD, ENGINE, OUTSIDE
from tests.drawn.timelines import analyzer_of, timed

WAITS = "copies from the device hold the host for 6 ns (60%)"
PYTHON = "the host works in Python for 6 ns (60%)"


def said(identifier: str, *evidence: Evidence, module: str = "", line: str = "") -> str:
    return sentence(
        Finding(identifier, "wait", "", "it", 6, evidence, line, "do it", share=0.6, module=module),
    )


@pytest.mark.parametrize(
    ("evidence", "ends"),
    [
        (Evidence("Memcpy DtoH", 1, 4), ", mostly Memcpy DtoH 4 ns"),
        (Evidence("Memcpy DtoH", 2, 3), ", led by 2 x Memcpy DtoH 3 ns"),
        (Evidence("Memcpy DtoH", 1, 6), ", mostly Memcpy DtoH 6 ns"),
        (Evidence("Memcpy DtoH", 2, 7), ", out of 7 ns of 2 x Memcpy DtoH"),
        (Evidence("Memcpy DtoH", 1, 7), ", out of 7 ns of Memcpy DtoH"),
    ],
)
def test_no_part_is_larger_than_the_whole(evidence: Evidence, ends: str) -> None:
    assert said("blocking_copies", evidence) == WAITS + ends


@pytest.mark.parametrize(
    ("led", "ends"),
    [
        (Evidence("aten::mm", 1, 4, "Linear_0", "a/train.py(9): step"), "aten::mm 4 ns in Linear_0 (train.py:9)"),
        (Evidence("aten::mm", 3, 4, "Linear_0", "train.py(9): f"), "4 ns, the longest in Linear_0 (train.py:9)"),
        (Evidence("aten::mm", 3, 4, "Linear_0"), "3 x aten::mm 4 ns, the longest in Linear_0"),
        (Evidence("aten::mm", 3, 4, "", "train.py(9): f"), "3 x aten::mm 4 ns, the longest at train.py:9"),
        (Evidence("train.py(9): step", 3, 4, "", "train.py(9): step"), "mostly 3 x step (train.py:9) 4 ns"),
        (Evidence("aten::mm", 3, 4), "mostly 3 x aten::mm 4 ns"),
    ],
)
def test_the_place_is_where_the_event_is_that_leads(led: Evidence, ends: str) -> None:
    """The longest piece of all, of which the finding tells the place, may be another event's."""
    assert said("host_bound", led, module="Norm_0", line="train.py(12): step").endswith(ends)


@pytest.mark.parametrize("identifier", ["data_loading", "graph_capture", "unfused_optimizer"])
def test_calls_tell_where_they_are(identifier: str) -> None:
    led = Evidence("zoom_shift", 1, 4, "", "scipy/zoom.py(7): zoom")
    told = said(identifier, led, module="Net_0", line="train.py(12): step")
    assert told.endswith("6 ns (60%) in Net_0 (train.py:12), mostly zoom_shift 4 ns")
    assert said(identifier, line="train.py(12): step").endswith("6 ns (60%) at train.py:12")


@pytest.mark.parametrize(("identifier", "which"), [("warm_up", "slow first step"), ("slow_step", "slow step")])
def test_the_share_of_a_slow_step_is_one_of_the_recording(identifier: str, which: str) -> None:
    expected = f"a {which} lengthens the recording by 6 ns (60%), mostly python 4 ns"
    assert said(identifier, Evidence("python", 1, 4)) == expected


def test_a_finding_without_a_place_has_none_of_an_event() -> None:
    assert said("many_small_operators", Evidence("aten::t", 1, 4, "Net_0")).endswith("mostly aten::t 4 ns")


def test_without_an_event_the_place_is_the_finding_s() -> None:
    assert said("host_python", module="Norm_0", line="train.py(9): step") == f"{PYTHON} in Norm_0 (train.py:9)"


def test_time_between_events_is_said_to_be_that() -> None:
    between, least = Evidence("(between events)", 1, 5), Evidence("aten::mm", 1, 1, "Norm_0")
    assert said("host_python", between, least, module="Norm_0") == f"{PYTHON}, mostly between events"
    assert said("host_python", Evidence("(between events)", 2, 3), least) == f"{PYTHON}, led by time between events"
    elsewhere = Evidence("(waiting for work)", 1, 5)
    assert said("host_python", elsewhere, least, module="Net_0") == f"{PYTHON}, including aten::mm 1 ns in Norm_0"


def test_what_is_kept_has_a_place_of_its_own() -> None:
    calls, kept = Evidence("cudaMalloc", 2, 5, "Net_0"), Evidence("aten::empty", 3, 0, "Head_0", "train.py(9): step")
    assert said("memory_growth", calls, kept, module="Head_0", line="train.py(9): step").endswith(
        "mostly 2 x cudaMalloc 5 ns, the longest in Net_0; the largest that stays: 3 x aten::empty in Head_0 (train.py:9)"
    )


def test_a_call_that_launches_nothing_is_not_called_a_launch() -> None:
    context = timed(0, 30_000, "cudaDeviceGetStreamPriorityRange", "cuda_runtime", correlation=9)
    launches = [timed(at, 1_000, "cudaLaunchKernel", "cuda_runtime", correlation=at) for at in (40_000, 50_000)]
    work = [
        timed(at + 2_000, 1_000, "gemm", "kernel", (0, 7), device=0, stream=7, correlation=at)
        for at in (40_000, 50_000)
    ]
    first = analyzer_of(context, *launches, *work).analysis().findings[0]
    assert (first.id, first.bound_ns) == ("slow_launches", 29_000)
    assert first.sentence == (
        "slow calls to the driver hold the host for 29.00 µs (55%), mostly cudaDeviceGetStreamPriorityRange 29.00 µs"
    )


@pytest.mark.parametrize("name", [BACKWARD, ENGINE, OUTSIDE])
def test_time_without_an_event_keeps_its_name(name: str) -> None:
    assert short_name(name) == name


def test_what_leads_is_the_largest() -> None:
    waiting, work = Evidence(BACKWARD, 1, 3), Evidence("aten::mm", 2, 2)
    late = "launches by the host come 6 ns (60%) too late"
    assert said("host_bound", work, Evidence(BACKWARD, 1, 1)) == f"{late}, led by 2 x aten::mm 2 ns"
    assert said("host_bound", waiting, work) == f"{late}, including 2 x aten::mm 2 ns"
