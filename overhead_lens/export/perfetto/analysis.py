"""An analyzed trace for the Perfetto UI: its events, and above them what the analysis says of each instant.

The axis is that of the trace: the budget of the window is as long as the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from overhead_lens.export.lanes.budget import busy_slice, host_slices, idle_slice
from overhead_lens.export.lanes.counters import counter_sections, memory_sections
from overhead_lens.export.lanes.critical_path import path_sections
from overhead_lens.export.lanes.events import CATEGORIES_LANE, event_lanes
from overhead_lens.export.lanes.model import Counter, Lane, Section, Slice, Value
from overhead_lens.export.lanes.modules import module_sections
from overhead_lens.export.names import readable, thread_title
from overhead_lens.export.perfetto.picture import Picture, write_picture
from overhead_lens.readers.kineto.event import DEVICE_CATEGORIES
from overhead_lens.traces.budgets import DeviceBudget, TraceStep
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.traces.pieces import Analyzed, TracePieces
from overhead_lens.units import format_ns

BUDGET_LANE = "Budget of the trace"
STEPS = "Steps"
HOST = "Host by category"
STEP_BUDGET = "budget of a step"


def write_analysis_perfetto(path: Path, analyzed: Analyzed) -> None:
    """Write the trace with its annotations.

    On top the budget of the busiest thread, the steps with theirs, the thread's categories over time, and every device: busy or
    idle, and who is to blame, over its streams with arrows from the launches. Below, the threads with their events.

    Raises:
        UsageError: The file cannot be written, or the timestamps are damaged.
    """
    analysis = analyzed.analysis
    sections = [Section(_budget_lane(analysis))] if analysis.threads else []
    sections += [Section(_steps_lane(analysis))] if analysis.steps else []
    sections += path_sections(analyzed.pieces.critical_path)
    over_time, lanes = time_sections(analyzed)
    start_ns, end_ns = analysis.window.bounds
    view = start_ns, max(start_ns + 1, end_ns)
    write_picture(path, Picture([*sections, *over_time], view, lanes, thread_names=analyzed.trace.thread_names))


def time_sections(analyzed: Analyzed) -> tuple[list[Section], list[Lane]]:
    """Lanes over time of the busiest thread and the devices, and the lanes of threads.

    Raises:
        UsageError: The timestamps are damaged.
    """
    # The profiler's own span over all of it tells nothing.
    events = analyzed.trace.events[analyzed.trace.events["cat"] != "Trace"]
    lanes = event_lanes(events, analyzed.pieces.host, zero_ns=0)
    threads = analyzed.analysis.threads[:1]
    keys = {(readable(thread.pid), readable(thread.tid)) for thread in threads}
    host = [lane for lane in lanes if lane.name == CATEGORIES_LANE and lane.thread in keys]
    sections = []
    for lane in host:
        text = f"What {thread_title(threads[0].tid, threads[0].name)} was doing when, as recorded."
        sections.append(Section(replace(lane, name=HOST, thread=None, description=text)))
    sections += module_sections(analyzed)
    sections += memory_sections(analyzed.pieces.memory)
    sections += counter_sections(analyzed.pieces.tracks)
    sections += _devices(analyzed, events, [lane for lane in lanes if lane.thread is None])
    return sections, [lane for lane in lanes if lane.thread is not None and lane not in host]


def _budget_lane(analysis: TraceAnalysis) -> Lane:
    busiest = analysis.threads[0]
    description = (
        f"The busiest thread, {thread_title(busiest.tid, busiest.name)}, over the {format_ns(analysis.window.wall_ns)} of the "
        "trace, as recorded, with the profiler's own cost. The categories sum to that; their order is not the order of events."
    )
    return Lane(BUDGET_LANE, host_slices(analysis.host, start_ns=analysis.window.start_ns), description=description)


def _named(name: str) -> str:
    return f" ({readable(name)})" if name else ""


def _steps_lane(analysis: TraceAnalysis) -> Lane:
    slices = (piece for step in analysis.steps for piece in _step_slices(step))
    description = (
        "Every ProfilerStep, and in it the budget of the busiest thread, whose order is not the order of events."
    )
    return Lane(STEPS, slices, description=description)


def _step_slices(step: TraceStep) -> Iterator[Slice]:
    start_ns, end_ns = step.window.bounds
    arguments: dict[str, Value] = {f"host {category.category} ns": category.ns for category in step.host if category.ns}
    for device in step.devices:
        arguments[f"device {device.device} busy ns"] = device.busy_ns
    yield Slice(start_ns, end_ns, f"step {step.step}: {format_ns(end_ns - start_ns)}", "step", arguments)
    yield from host_slices(step.host, start_ns=start_ns, kind=STEP_BUDGET)


def _devices(analyzed: Analyzed, events: pd.DataFrame, streams: list[Lane]) -> Iterator[Section]:
    """A section a device, with its queue and its streams."""
    for device in analyzed.analysis.devices:
        own = [lane for lane in streams if lane.name.startswith(f"device {device.device} / ")]
        streams = [lane for lane in streams if lane not in own]
        yield Section(_device_lane(device, events, analyzed.pieces), (*_queue_counters(device, analyzed.pieces), *own))
    for lane in streams:
        yield Section(lane)


def _device_lane(device: DeviceBudget, events: pd.DataFrame, pieces: TracePieces) -> Lane:
    description = (
        f"Device {device.device}{_named(device.name)}: busy, and idle by what the host was doing when it should have fed it; "
        "'queue' is after the launch."
    )
    return Lane(f"Device {device.device}", _device_slices(int(device.device), events, pieces), description=description)


def _device_slices(device: int, events: pd.DataFrame, pieces: TracePieces) -> Iterator[Slice]:
    """The device's span: idle pieces, and busy between them."""
    work = events[(events["device"] == device) & events["cat"].isin(DEVICE_CATEGORIES)]
    before_ns, last_ns = int(work["start_ns"].min()), int((work["start_ns"] + work["dur_ns"]).max())
    idle = [*_rows(pieces.idle, device, "start_ns", "dur_ns", "blame"), (last_ns, 0, "")]
    for start_ns, dur_ns, blame in idle:
        if start_ns > before_ns:
            yield busy_slice(before_ns, start_ns)
        if dur_ns:
            yield idle_slice(blame, start_ns, start_ns + dur_ns)
        before_ns = start_ns + dur_ns


def _queue_counters(device: DeviceBudget, pieces: TracePieces) -> Iterator[Counter]:
    points = [
        (start_ns, float(depth)) for start_ns, depth in _rows(pieces.queue, int(device.device), "start_ns", "depth")
    ]
    if points:
        yield Counter(
            "launches queued", "launches", points, "Launches that were called and had not started on the device."
        )


def _rows(frame: pd.DataFrame, device: int, *columns: str) -> Iterator[tuple[Any, ...]]:
    mine = frame[frame["device"] == device]
    return zip(*(mine[column].tolist() for column in columns), strict=True)
