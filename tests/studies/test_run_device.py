"""The devices in the recorded steps of a run: drawn and public traces in the place of the recording."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from overhead_lens.captures.files import KINETO
from overhead_lens.documents.analysis import trace_document
from overhead_lens.program.area import Phase
from overhead_lens.readers.kineto.event import DEVICE_CATEGORIES
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.report.forms import to_html, to_markdown, to_notebook, to_text
from overhead_lens.studies.run.analysis import RunBudget, run_budget_of
from overhead_lens.studies.run.stored import StoredRegion
from overhead_lens.traces.analyzer import analyze_trace
from tests.documents import validated
from tests.drawn.runs import HOME, WORK, bare, main, run_of, store, stretch
from tests.drawn.stacks import CLASSIFIER
from tests.drawn.timelines import blame, timed
from tests.drawn.trace_text import document
from tests.public_traces import public_trace

GPU = (0, 7)


def launch(start: int, correlation: int, name: str = "cudaLaunchKernel") -> dict:
    """A call of 4 ns."""
    return timed(start, 4, name, "cuda_runtime", correlation=correlation)


def work(start: int, dur: int, correlation: int, name: str = "gemm", cat: str = "kernel") -> dict:
    """Work of device 0."""
    return timed(start, dur, name, cat, GPU, device=0, stream=7, correlation=correlation)


# Two steps of 40 ns; the last kernel, which communicates, ends 16 ns behind them:
#
#     host     |..mm{call}......................|..mm{call}......{call}....|
#     device                 |-gemm-|                        |-gemm-|   |---------nccl--------|
STEPS = [
    timed(0, 40, "ProfilerStep#0", "user_annotation"),
    timed(4, 16, "aten::mm"),
    launch(8, 1),
    work(14, 10, 1),
    timed(40, 40, "ProfilerStep#1", "user_annotation"),
    timed(44, 16, "aten::mm"),
    launch(48, 2),
    work(60, 10, 2),
    launch(62, 3),
    work(76, 20, 3, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
    # The device repeats the steps' names over their kernels.
    timed(14, 10, "ProfilerStep#0", "gpu_user_annotation", GPU, device=0, stream=7),
    timed(60, 36, "ProfilerStep#1", "gpu_user_annotation", GPU, device=0, stream=7),
]
BLAME = {"python": 24, "dispatcher": 8, "launch": 8, "queue": 16}


def run_with(
    folder: Path, trace: bytes, *, wall_ns: int, traced_ns: Sequence[int] = (40, 40), **meta: Any
) -> RunBudget:
    """A run of 20 bare steps whose recording is ``trace``."""
    rows = [*bare(*(20 * [wall_ns])), *stretch(Phase.TRACED, *traced_ns)]
    path = store(folder / "run", run_of(*rows, **meta), ([main(WORK, 100)],))
    (path / KINETO).write_bytes(gzip.compress(trace, compresslevel=1))
    return run_budget_of(path, CLASSIFIER)


def drawn_run(folder: Path, *entries: dict, wall_ns: int = 34, **more: Any) -> RunBudget:
    return run_with(folder, document(entries or STEPS).encode(), wall_ns=wall_ns, **more)


def test_busy_time_is_the_traces_and_idle_time_the_rest_of_a_bare_step(tmp_path: Path) -> None:
    found = drawn_run(tmp_path)
    assert found.device is not None
    assert (found.device.steps, found.device.step_ratio) == (2, pytest.approx(96 / 2 / 34))
    (device,) = found.device.devices
    assert (device.device, device.kind, device.busy_ns, device.idle_ns) == ("0", "cuda", 20, 14)
    assert (device.compute_ns, device.communication_ns, device.copy_ns, device.overlap_ns) == (10, 10, 0, 0)
    # 56 idle ns were recorded, of which a bare step has 14.
    assert blame(device) == {name: ns // 4 for name, ns in BLAME.items()}
    assert (device.events_per_call, device.launches_per_call, device.graph_launches_per_call) == (1.5, 1.5, 0)
    assert (device.launch_median_ns, device.launch_p99_ns) == (12, 14)
    assert [(each.kind, each.per_call, each.ns) for each in device.top] == [
        ("compute", 1.0, 10),
        ("communication", 0.5, 10),
    ]
    assert found.warnings == ()


def test_the_recording_is_told_as_analyze_tells_it(tmp_path: Path) -> None:
    assert told(drawn_run(tmp_path)) == analyzed(read_trace(tmp_path / "run" / KINETO))
    (device,) = told(drawn_run(tmp_path / "again"))["device"]
    # From its first event's start to its last event's end.
    assert (device["span_ns"], device["busy_ns"], device["launch"]["count"]) == (82, 40, 3)


def test_work_that_recorded_steps_did_not_launch_does_not_lengthen_them(tmp_path: Path) -> None:
    found = drawn_run(tmp_path, *STEPS, launch(200, 4), work(210, 500, 4))
    assert found.device is not None
    assert (found.device.devices[0].busy_ns, found.device.step_ratio) == (20, pytest.approx(96 / 2 / 34))


def test_a_step_whose_recording_was_cut_short_does_not_count(tmp_path: Path) -> None:
    # Of the second of three steps 40 ns were recorded.
    found = drawn_run(tmp_path, traced_ns=(40, 90, 90))
    assert found.device is not None
    assert (found.device.steps, found.device.step_ratio, found.device.devices[0].busy_ns) == (
        1,
        pytest.approx(40 / 34),
        10,
    )
    # The program ended in the second.
    ended = drawn_run(tmp_path / "ended", traced_ns=(40,)).device
    assert (ended and ended.steps) == 1
    assert drawn_run(tmp_path / "all", traced_ns=(90, 40, 90)).device is not None
    assert drawn_run(tmp_path / "none", *STEPS[:4], traced_ns=(41, 90)).device is None


def test_a_device_that_is_busier_than_a_bare_step_has_no_idle_time(tmp_path: Path) -> None:
    found = drawn_run(tmp_path, wall_ns=16)
    assert found.device is not None
    (device,) = found.device.devices
    assert (device.busy_ns, device.idle_ns, blame(device), device.compute_ns) == (16, 0, {}, 8)
    (warning,) = found.warnings
    assert (
        warning
        == "a device is busy for 20 ns per step under the profiler, longer than the bare step: taken as all of it"
    )


def test_several_devices_each_have_their_own(tmp_path: Path) -> None:
    other = timed(30, 30, "gemm", "kernel", (1, 7), device=1, stream=7)
    found = drawn_run(tmp_path, *STEPS, other)
    assert found.device is not None
    assert [(each.device, each.busy_ns, each.idle_ns) for each in found.device.devices] == [
        ("0", 20, 14),
        ("1", 15, 19),
    ]


@pytest.mark.parametrize("trace", [STEPS[:2], STEPS[2:4]], ids=["no device", "no steps"])
def test_without_device_work_in_steps_there_is_none(tmp_path: Path, trace: list[dict]) -> None:
    found = drawn_run(tmp_path, *trace)
    assert found.device is None
    assert validated(found.to_json())["device"] is None
    assert "device" not in to_text(replace(found, capture=""))


def test_of_the_whole_run_there_is_none(tmp_path: Path) -> None:
    path = store(tmp_path / "run", run_of(*stretch(Phase.TRACED, 40, 40), found_by="none"), ([main(WORK, 100)],))
    (path / KINETO).write_bytes(gzip.compress(document(STEPS).encode()))
    assert run_budget_of(path, CLASSIFIER).device is None


# ---------------------------------------------------------------- regions
BEGIN_NS = 1_000 + 7_777 + 20 * 34
"""When the first recorded step begins by the program's clock."""


def entered(*windows: tuple[int, int]) -> dict[str, Any]:
    """A region of 18 ns in bare steps, and these entries in recorded ones, by the trace's clock."""
    regions = [StoredRegion("decode", [HOME], 40, 40 * 18.0, 40 * 18.0**2), StoredRegion("load", [HOME], 1, 9.0, 81.0)]
    return {
        "regions": regions,
        "traced_regions": {"decode": [(BEGIN_NS + start, BEGIN_NS + end) for start, end in windows]},
    }


def test_a_region_has_the_device_while_it_is_open(tmp_path: Path) -> None:
    found = drawn_run(tmp_path, **entered((44, 70), (-90, -50), (90, 99)))
    assert found.device is not None
    (region,) = found.device.regions
    assert (region.name, region.count) == ("decode", 1)
    (device,) = region.devices
    # 10 of 26 ns busy; the other 16, of which a bare entry has 8, are of the operator, its call and the queue.
    assert (device.busy_ns, device.idle_ns) == (10, 8)
    assert blame(device) == {"dispatcher": 2, "launch": 2, "queue": 4}
    assert (device.launches_per_call, device.launch_median_ns) == (1, 12)


def test_entries_of_a_region_are_averaged(tmp_path: Path) -> None:
    found = drawn_run(tmp_path, **entered((44, 70), (12, 20)))
    assert found.device is not None
    (device,) = found.device.regions[0].devices
    assert (device.busy_ns, device.idle_ns, device.events_per_call) == ((10 + 6) // 2, 10, 1)
    assert (device.launch_median_ns, device.launch_p99_ns) == (6, 12)


def test_regions_are_placed_by_the_middles_of_the_steps(tmp_path: Path) -> None:
    # The clock of each step begins 2 ns behind its window and ends 2 ns before it.
    shown = drawn_run(tmp_path, traced_ns=(36, 36), **entered((42, 66)))
    assert shown.device is not None
    (device,) = shown.device.regions[0].devices
    # The middles of the two steps are 2 and 6 ns behind those by the program's clock: 4 ns in the median.
    assert device.busy_ns == 10


# ---------------------------------------------------------------- reports
def test_the_report(tmp_path: Path) -> None:
    found = drawn_run(tmp_path, **entered((44, 70)))
    lines = to_text(found).splitlines()
    assert "device 0 of the same step: busy 59%, idle led by python (18%)" in lines
    assert "Device 0 (cuda), of the same wall time: busy + idle = wall" in lines
    (row,) = [line.split() for line in lines if line.startswith("decode") and "busy" in line]
    assert row == ["decode", "1x", "18", "ns", "0", "10", "ns", *"busy 56%, idle led by queue (22%)".split()]
    assert "2 traced steps took 1.41 times as long as bare ones" in to_text(found)
    heading = "What to try, each saves at most (not to be added up); 2 traced steps together"
    assert heading in lines
    assert "Launches by the host come 28 ns (29%) too late, mostly ProfilerStep#0 16 ns." in lines
    for shown in (to_markdown(found), to_html(found, CLASSIFIER), to_notebook(found)):
        assert "Device 0 (cuda), of the same wall time" in shown
        assert heading in shown
    # On a page, and with --all, all that the traced steps show together.
    assert "1.5 kernels per step; steps: 1 host-bound, 1 neither" in to_html(found, CLASSIFIER)
    assert "0 ns of 20 ns hidden behind compute; 2 traced steps together" in to_text(found, whole=True)


def test_the_report_says_what_is_exposed_and_what_is_uncertain(tmp_path: Path) -> None:
    beside = timed(84, 4, "gemm", "kernel", (0, 8), device=0, stream=8, correlation=9)
    text = to_text(drawn_run(tmp_path, *STEPS, beside))
    (row,) = [line.split() for line in text.splitlines() if line.split()[:1] == ["communication"]]
    assert row[-6:] == ["10", "ns", *"8 ns without compute".split()]
    assert "device events have no launch in the trace (1 of 4; " in text


def test_the_document(tmp_path: Path) -> None:
    found = validated(drawn_run(tmp_path, **entered((44, 70))).to_json())["device"]
    (device,) = found["devices"]
    assert (device["busy_ns"], device["idle_ns"], device["events"]) == (20, 14, 1.5)
    assert device["kinds"] == {"compute_ns": 10, "communication_ns": 10, "copy_ns": 0, "overlap_ns": 0}
    assert [(region["name"], region["devices"][0]["busy_ns"]) for region in found["regions"]] == [("decode", 10)]
    assert [step["device"][0]["busy_ns"] for step in found["traced"]["steps"]] == [10, 10 + 4]
    assert found["traced"]["collectives"][0]["exposed_ns"] == 20


# ---------------------------------------------------------------- public traces
def told(found: RunBudget) -> dict[str, Any]:
    """What a run says of its recording."""
    traced: dict[str, Any] = validated(found.to_json())["device"]["traced"]
    return traced


def analyzed(recording: Trace) -> dict[str, Any]:
    """The same of ``analyze``."""
    analysis = analyze_trace(recording, CLASSIFIER)
    (trace,) = validated(trace_document(analysis).to_json())["traces"]
    names = ("device", "collectives", "findings", "launch_figures", "notes")
    steps = [{name: step[name] for name in ("step", "start_ns", "wall_ns", "device")} for step in trace["steps"]]
    issues = {reason: count for reason, count in trace["issues"].items() if count}
    return {**{name: trace[name] for name in names}, "steps": steps, "issues": issues}


def busy_ns(events: pd.DataFrame, device: int) -> tuple[int, int]:
    """Union of a device's work inside the steps, up to the last that they launched, and their number."""
    steps = events[events["name"].str.startswith("ProfilerStep#") & (events["cat"] == "user_annotation")]
    begin, end = steps["start_ns"].min(), (steps["start_ns"] + steps["dur_ns"]).max()
    work = events[events["cat"].isin(DEVICE_CATEGORIES)]
    calls = events[(events["device"] < 0) & events["start_ns"].between(begin, end - 1) & (events["correlation"] >= 0)]
    launched = work[work["correlation"].isin(calls["correlation"])]
    end = max(end, (launched["start_ns"] + launched["dur_ns"]).max())
    total, reached = 0, begin
    own = work[work["device"] == device].sort_values("start_ns")
    for start, dur in zip(own["start_ns"].tolist(), own["dur_ns"].tolist(), strict=True):
        stop = min(start + dur, end)
        total += max(0, stop - max(start, reached))
        reached = max(reached, stop)
    return int(total), len(steps)


@pytest.mark.parametrize(
    ("name", "graph_launches"),
    [
        ("hta_a100_compile_cudagraph_16rank", 70 / 5),
        ("hta_nccl_data", 0),
        ("hta_amd_mi250_minitoy", 0),
        ("tl_mi300_resnet_ddp_train_stack", 0),
    ],
)
def test_a_public_trace_in_the_place_of_the_recording(tmp_path: Path, name: str, graph_launches: float) -> None:
    trace = gzip.decompress(public_trace(name).read_bytes())
    found = run_with(tmp_path, trace, wall_ns=10_000_000_000, traced_ns=5 * [1])
    recording = read_trace(tmp_path / "run" / KINETO)
    assert told(found) == analyzed(recording)
    assert found.device is not None
    for device in found.device.devices:
        ns, steps = busy_ns(recording.events, int(device.device))
        assert (device.busy_ns, found.device.steps) == (round(ns / steps), steps)
        assert device.busy_ns + device.idle_ns == found.wall.ns == sum(device.idle_blame.values()) + device.busy_ns
    assert found.device.devices[0].graph_launches_per_call == graph_launches


def test_a_run_of_an_earlier_version_has_no_regions_of_recorded_steps(tmp_path: Path) -> None:
    found = drawn_run(tmp_path, regions=entered()["regions"])
    meta = tmp_path / "run" / "meta.json"
    fields = json.loads(meta.read_text())
    del fields["traced_regions"]
    meta.write_text(json.dumps(fields))
    again = run_budget_of(tmp_path / "run", CLASSIFIER)
    assert again == replace(found, capture=again.capture)
    assert again.device is not None
    assert again.device.regions == ()
