"""An analyzed trace for the Perfetto UI: its events, and above them what the analysis says of each instant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from overhead_lens.export.lanes.budget import BUDGET_GROUP
from overhead_lens.export.lanes.counters import Counter
from overhead_lens.export.lanes.drawn import Drawn
from overhead_lens.export.lanes.events import event_lanes
from overhead_lens.export.lanes.model import Lane, Slice, Value
from overhead_lens.export.perfetto.trace import write_lanes
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.traces.model import TraceAnalysis, TraceStep
from overhead_lens.traces.pieces import TracePieces

STEPS = "Steps"
IDLE = "idle"
QUEUES = "Device queues"


def write_analysis_perfetto(path: Path, trace: Trace, analysis: TraceAnalysis, pieces: TracePieces) -> None:
    """Write the trace with its annotations.

    On top the steps and the idle time of every device, named by who is to blame; then the threads with their categories over
    their events, the device streams with arrows from the launches, and the depth of each device's queue.

    Raises:
        UsageError: The file cannot be written, or the timestamps are damaged.
    """
    evidence = Drawn(events=trace.events, categories=pieces.host, thread_names=trace.thread_names)
    lanes = [_steps_lane(analysis)] if analysis.steps else []
    lanes += [_idle_lane(device, pieces) for device in sorted(set(pieces.idle["device"].tolist()))]
    counters = [_queue_counter(device, pieces) for device in sorted(set(pieces.queue["device"].tolist()))]
    write_lanes(path, [*lanes, *event_lanes(evidence)], {QUEUES: counters}, evidence)


def _steps_lane(analysis: TraceAnalysis) -> Lane:
    return Lane(STEPS, (_step_slice(step) for step in analysis.steps), group=BUDGET_GROUP)


def _step_slice(step: TraceStep) -> Slice:
    arguments: dict[str, Value] = {f"host {category.category} ns": category.ns for category in step.host if category.ns}
    for device in step.devices:
        arguments[f"device {device.device} busy ns"] = device.busy_ns
    end_ns = step.window.start_ns + step.window.wall_ns
    return Slice(step.window.start_ns, end_ns, f"step {step.step}", "step", arguments)


def _idle_lane(device: int, pieces: TracePieces) -> Lane:
    description = (
        "Idle time of the device by what the host was doing when it should have fed it; 'queue' is after the launch."
    )
    return Lane(f"device {device} {IDLE}", _idle_slices(device, pieces), group=BUDGET_GROUP, description=description)


def _idle_slices(device: int, pieces: TracePieces) -> Iterator[Slice]:
    idle = pieces.idle[pieces.idle["device"] == device]
    columns = (idle[name].tolist() for name in ("start_ns", "dur_ns", "blame"))
    for start_ns, dur_ns, blame in zip(*columns, strict=True):
        yield Slice(start_ns, start_ns + dur_ns, f"{IDLE}: {blame}", IDLE)


def _queue_counter(device: int, pieces: TracePieces) -> Counter:
    queue = pieces.queue[pieces.queue["device"] == device]
    points = zip(queue["start_ns"].tolist(), map(float, queue["depth"].tolist()), strict=True)
    return Counter(f"device {device}: launches queued", "launches", tuple(points))
