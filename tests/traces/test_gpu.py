"""Traces and captures that were recorded on GPUs (H100, H200; torch 2.11, CUDA 13), read independently."""

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
from overhead_lens.studies.run import analysis as run_analysis
from overhead_lens.studies.run.analysis import run_budget_of
from overhead_lens.traces.analyzer import analyze_trace
from tests.drawn.stacks import CLASSIFIER

REFERENCE = Path(__file__).parents[2] / "traces" / "reference"
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
TRACES = [
    "gpu-graph.json.gz",
    "gpu-warm-up.json.gz",
    *(f"gpu-{name}/kineto.json.gz" for name in ("call", "run", "backward", "compiled-run")),
]
# A graph in each of ten calls; one forward and one backward in each of ten steps.
GRAPHS = {"gpu-graph.json.gz": 10, "gpu-compiled-run/kineto.json.gz": 20}


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
    document = json.loads(gzip.decompress((REFERENCE / name).read_bytes()))
    assert (device.events, device.name) == (len(work), document["deviceProperties"][0]["name"])
    assert device.busy_ns == union_ns(spans)
    assert device.span_ns == max(end for _, end in spans) - min(begin for begin, _ in spans)
    calls = {event["args"]["correlation"]: event for event in events if event["cat"] in ("cuda_runtime", "cuda_driver")}
    launched = {event["args"]["correlation"] for event in work}
    assert launched <= {number for number, call in calls.items() if is_timed(call)}
    assert (device.launch.count, device.launch.unlinked) == (len(launched), 0)
    graphs = [number for number in launched if "GraphLaunch" in calls[number]["name"]]
    assert device.launch.graph_launches == len(graphs) == GRAPHS.get(name, 0)
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


def test_a_call_that_waits_for_its_backward_pass_is_divided_by_the_trace() -> None:
    found = load_directory(REFERENCE / "gpu-backward", CLASSIFIER)
    # The sampler found it waiting in nearly all stacks.
    stacks = gzip.decompress((REFERENCE / "gpu-backward" / "stacks.txt.gz").read_bytes()).decode().splitlines()
    counts = [("ReadyQueue::pop" in line, int(line.rpartition(" ")[2])) for line in stacks if "measured_loop" in line]
    assert sum(count for waits, count in counts if waits) > 0.95 * sum(count for _, count in counts)
    assert {category.evidence for category in found.host} == {"trace", "none"}
    assert sum(category.ns for category in found.host) == round(found.wall.ns)
    assert found.category("wait").share < 0.01
    events = events_of(REFERENCE / "gpu-backward" / "kineto.json.gz")
    launches = [event for event in events if "LaunchKernel" in event["name"]]
    assert len({event["tid"] for event in launches}) == 2
    # Recorded, a launch takes longer: part of its time is the recording's.
    calls = json.loads((REFERENCE / "gpu-backward" / "meta.json").read_text())["instruments"]["trace"]["calls"]
    recorded_ns = sum(ns(event["dur"]) for event in launches) / calls
    assert 0.5 * recorded_ns < found.category("launch").ns < recorded_ns
    assert found.device is not None
    assert found.device.events_per_call == sum(event["cat"] in WORK for event in events) / calls


def _holds(event: dict, other: dict) -> bool:
    return event["ts"] <= other["ts"] and other["ts"] + other["dur"] <= event["ts"] + event["dur"]


def test_a_run_divides_its_backward_passes_as_the_traced_steps_do(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run_budget_of(REFERENCE / "gpu-run", CLASSIFIER)
    # Autograd's thread runs for all of the time that the steps wait for it, and stacks do not show at what.
    assert [said for said in found.warnings if "works for 100% of the wait" in said and "as the trace shows" in said]
    assert found.category("wait").share < 0.01
    events = events_of(REFERENCE / "gpu-run" / "kineto.json.gz")
    (number,) = {event["tid"] for event in events if event["name"].startswith("autograd::engine")}
    own = [event for event in events if event.get("tid") == number and event["cat"] in ("cpu_op", *CALLS)]
    covered_ns = union_ns([(ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])) for event in own])
    pauses = [event for event in events if event["name"] == "Activity Buffer Request"]
    held = [each for each in pauses if any(_holds(event, each) for event in own if event["cat"] == "cpu_op")]
    assert 0 < len(held) < len(pauses)
    covered_ns -= sum(ns(each["dur"]) for each in held)
    launch_ns = sum(ns(event["dur"]) for event in own if event["cat"] in CALLS)
    monkeypatch.setattr(run_analysis, "backward_work", lambda *_: None)
    apart = run_budget_of(REFERENCE / "gpu-run", CLASSIFIER)
    added = found.category("launch").share - apart.category("launch").share
    # The engine works between its nodes, too, where no event is.
    assert 0.8 < added / (apart.category("wait").share * launch_ns / covered_ns) < 1.0


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


def test_a_loader_that_pins_memory_takes_the_gil_no_longer_than_the_cpu_clocks_leave() -> None:
    path = REFERENCE / "gpu-loader-run"
    found = run_budget_of(path, CLASSIFIER)
    steps = pd.read_parquet(path / "steps.parquet")
    bare = (steps["phase"] == Phase.BARE) & (steps["phase"].shift(1) == Phase.BARE)
    apart, spent = steps["end_ns"].diff()[bare].sum(), (steps["user_ns"] + steps["system_ns"]).diff()[bare].sum()
    (backward,) = [thread for thread in found.threads if thread.thread == 763]
    running = dict(json.loads((path / "meta.json").read_text())["running"])[backward.thread]
    # Stacks show twice as much: caller and backward pass wait for the GIL in turns.
    gil_ns, device_ns = (found.category("wait").part_ns(part) for part in ("gil", "device"))
    assert gil_ns / found.wall.ns == pytest.approx(1 - spent / apart - running, abs=1e-3)
    # Two stacks are in the copy of a batch, whose memory is pinned.
    assert gil_ns + device_ns == found.category("wait").ns
    assert 0 < device_ns < 0.005 * found.wall.ns
