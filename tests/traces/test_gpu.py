"""Traces and captures that were recorded on a GPU (H200, torch 2.11, CUDA 13), read independently."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from overhead_lens.directories import load_directory
from overhead_lens.program.area import Phase
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.studies.run.analysis import run_budget_of
from overhead_lens.traces.analyzer import analyze_trace
from tests.drawn.stacks import CLASSIFIER

REFERENCE = Path(__file__).parents[2] / "traces" / "reference"
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
TRACES = ["gpu-graph.json.gz", "gpu-warm-up.json.gz", "gpu-call/kineto.json.gz", "gpu-run/kineto.json.gz"]


def events_of(path: Path) -> list[dict[str, Any]]:
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    return [event for event in document["traceEvents"] if event["ph"] == "X"]


def ns(us: Decimal | int) -> int:
    return int(Decimal(us) * 1000)


def is_timed(event: dict[str, Any]) -> bool:
    return bool(event["ts"] or event["dur"])


def union_ns(spans: list[tuple[int, int]]) -> int:
    total, reached = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


@pytest.mark.parametrize("name", TRACES)
def test_busy_time_and_launches_are_those_of_the_events(name: str) -> None:
    events = events_of(REFERENCE / name)
    work = [event for event in events if event["cat"] in WORK and is_timed(event)]
    analysis = analyze_trace(read_trace(REFERENCE / name), CLASSIFIER)
    (device,) = analysis.devices
    spans = [(ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])) for event in work]
    assert (device.events, device.name) == (len(work), "NVIDIA H200")
    assert device.busy_ns == union_ns(spans)
    assert device.span_ns == max(end for _, end in spans) - min(begin for begin, _ in spans)
    calls = {event["args"]["correlation"]: event for event in events if event["cat"] in ("cuda_runtime", "cuda_driver")}
    launched = {event["args"]["correlation"] for event in work}
    assert launched <= {number for number, call in calls.items() if is_timed(call)}
    assert (device.launch.count, device.launch.unlinked) == (len(launched), 0)
    graphs = [number for number in launched if "GraphLaunch" in calls[number]["name"]]
    assert device.launch.graph_launches == len(graphs) == (10 if name.startswith("gpu-graph") else 0)
    assert analysis.issues.get("untimed_event", 0) == sum(not is_timed(event) for event in events)
    assert sum(device.idle_blame.values()) + device.busy_ns == device.span_ns


def test_what_the_profilers_warm_up_leaves_has_no_time() -> None:
    analysis = analyze_trace(read_trace(REFERENCE / "gpu-warm-up.json.gz"), CLASSIFIER)
    assert analysis.issues["untimed_event"] == 320
    # Two steps of some milliseconds, and not the years since the clock's zero.
    assert [step.step for step in analysis.steps] == [1, 2]
    assert analysis.window.wall_ns < 20_000_000


def test_a_call_closes_on_both_sides() -> None:
    found = load_directory(REFERENCE / "gpu-call", CLASSIFIER)
    device = found.device
    assert sum(category.ns for category in found.host) == device.busy_ns + device.idle_ns == round(found.wall.ns)
    events = events_of(REFERENCE / "gpu-call" / "kineto.json.gz")
    kernels = [ns(event["dur"]) for event in events if event["cat"] == "kernel"]
    calls = json.loads((REFERENCE / "gpu-call" / "meta.json").read_text())["instruments"]["trace"]["calls"]
    assert len(kernels) == calls
    assert device.busy_ns == round(sum(kernels) / calls)
    # The host's side of a device's kernel is no kernel.
    assert found.category("kernel").ns == 0


def test_a_run_divides_its_backward_passes_as_the_traced_steps_do() -> None:
    found = run_budget_of(REFERENCE / "gpu-run", CLASSIFIER)
    # Autograd's thread runs for all of the time that the steps wait for it, and stacks do not show at what.
    assert [said for said in found.warnings if "100% of the time" in said and "as the trace shows" in said]
    assert found.category("wait").share < 0.01
    events = events_of(REFERENCE / "gpu-run" / "kineto.json.gz")
    (number,) = {event["tid"] for event in events if event["name"].startswith("autograd::engine")}
    own = [event for event in events if event.get("tid") == number and event["cat"] in ("cpu_op", "cuda_runtime")]
    covered_ns = union_ns([(ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])) for event in own])
    launch_ns = sum(ns(event["dur"]) for event in own if event["name"].startswith("cudaLaunch"))
    running = dict(json.loads((REFERENCE / "gpu-run" / "meta.json").read_text())["running"])
    # The rest of the launches are those of the thread with the steps.
    assert found.category("launch").share > running[number] * launch_ns / covered_ns * 0.8


def test_a_run_waits_no_longer_than_the_cpu_clock_of_its_thread_leaves() -> None:
    found = run_budget_of(REFERENCE / "gpu-run", CLASSIFIER)
    steps = pd.read_parquet(REFERENCE / "gpu-run" / "steps.parquet")
    assert not (steps["phase"].iloc[steps["phase"].eq(Phase.TRACED).idxmax() :] == Phase.BARE).any()
    bare = (steps["phase"] == Phase.BARE) & (steps["phase"].shift(1) == Phase.BARE)
    apart, spent = steps["end_ns"].diff()[bare].sum(), (steps["user_ns"] + steps["system_ns"]).diff()[bare].sum()
    assert found.category("wait").share <= 1 - spent / apart + 0.02
    (other,) = found.threads
    # The thread of the backward pass, which is always stopped last, and always found waiting.
    assert other.slept is not None
    assert other.slept.by_stacks > 0.95
    running = dict(json.loads((REFERENCE / "gpu-run" / "meta.json").read_text())["running"])
    assert other.busy_share == pytest.approx(running[other.thread], abs=0.01)
    assert found.device is not None
    (device,) = found.device.devices
    events = events_of(REFERENCE / "gpu-run" / "kineto.json.gz")
    work = [(ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])) for event in events if event["cat"] in WORK]
    assert (device.busy_ns, device.busy_ns + device.idle_ns) == (round(union_ns(work) / 10), found.wall.ns)
