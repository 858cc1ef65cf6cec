"""An analyzed trace for the Perfetto UI: its events, and above them what the analysis says of each instant.

The axis is that of the trace: the budget of the window is as long as the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from overhead_lens.export.lanes.budget import busy_slice, host_slices, idle_slice
from overhead_lens.export.lanes.events import CATEGORIES_LANE, event_lanes
from overhead_lens.export.lanes.model import Counter, Lane, Section, Slice, Value
from overhead_lens.export.lanes.modules import module_sections
from overhead_lens.export.names import readable, thread_title
from overhead_lens.export.perfetto.picture import Picture, write_picture
from overhead_lens.readers.kineto.event import DEVICE_CATEGORIES
from overhead_lens.stats.values import Floats, Ints
from overhead_lens.traces.budgets import DeviceBudget, TraceStep
from overhead_lens.traces.counters.tracks import Track
from overhead_lens.traces.critical_path.model import GAP, LATENCY, QUEUE
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.traces.pieces import Analyzed, TracePieces
from overhead_lens.units import format_ns

_FIRST_ARROW = 1 << 40
"""Beyond the numbers of the arrows between events."""


def write_analysis_perfetto(path: Path, analyzed: Analyzed) -> None:
    """Write the trace with its annotations.

    On top the budget of the busiest thread, the steps with theirs, the thread's categories over time, and every device: busy or
    idle, and who is to blame, over its streams with arrows from the launches. Below, the threads with their events.
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
    """Lanes over time of the busiest thread and the devices, and the lanes of threads."""
    # The profiler's own span over all of it tells nothing.
    events = analyzed.trace.events[analyzed.trace.events["cat"] != "Trace"]
    lanes = event_lanes(events, analyzed.pieces.host, zero_ns=0)
    threads = analyzed.analysis.threads[:1]
    keys = {(readable(thread.pid), readable(thread.tid)) for thread in threads}
    host = [lane for lane in lanes if lane.name == CATEGORIES_LANE and lane.thread in keys]
    sections = []
    for lane in host:
        text = f"What {thread_title(threads[0].tid, threads[0].name)} was doing when, as recorded."
        sections.append(Section(replace(lane, name="Host by category", thread=None, description=text)))
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
    slices = host_slices(analysis.host, start_ns=analysis.window.start_ns)
    return Lane("Budget of the trace", slices, description=description)


def _steps_lane(analysis: TraceAnalysis) -> Lane:
    slices = (piece for step in analysis.steps for piece in _step_slices(step))
    description = (
        "Every ProfilerStep, and in it the budget of the busiest thread, whose order is not the order of events."
    )
    return Lane("Steps", slices, description=description)


def _step_slices(step: TraceStep) -> Iterator[Slice]:
    start_ns, end_ns = step.window.bounds
    arguments: dict[str, Value] = {f"host {category.category} ns": category.ns for category in step.host if category.ns}
    for device in step.devices:
        arguments[f"device {device.device} busy ns"] = device.busy_ns
    yield Slice(start_ns, end_ns, f"step {step.step}: {format_ns(end_ns - start_ns)}", "step", arguments)
    yield from host_slices(step.host, start_ns=start_ns, kind="budget of a step")


def _devices(analyzed: Analyzed, events: pd.DataFrame, streams: list[Lane]) -> Iterator[Section]:
    """A section a device, with its queue and its streams."""
    for device in analyzed.analysis.devices:
        own = [lane for lane in streams if lane.name.startswith(f"device {device.device} / ")]
        streams = [lane for lane in streams if lane not in own]
        yield Section(_device_lane(device, events, analyzed.pieces), (*_queue_counters(device, analyzed.pieces), *own))
    for lane in streams:
        yield Section(lane)


def _device_lane(device: DeviceBudget, events: pd.DataFrame, pieces: TracePieces) -> Lane:
    name = f" ({readable(device.name)})" if device.name else ""
    description = (
        f"Device {device.device}{name}: busy, and idle by what the host was doing when it should have fed it; "
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


def path_sections(parts: pd.DataFrame) -> list[Section]:
    """The critical path: its parts (``PART_COLUMNS``) in order of time, and below it its threads and streams.

    An arrow leads from where the path leaves a thread or stream to where it goes on. None without parts.
    """
    if parts.empty:
        return []
    slices = list(_path_slices(parts))
    description = (
        "The chain that decides how long each step, or the window, takes. Below it by thread and stream, with an arrow where it "
        "goes from one to another."
    )
    lanes: dict[str, list[Slice]] = {}
    for name, piece in zip(parts["lane"].tolist(), slices, strict=True):
        lanes.setdefault(name, []).append(piece)
    below = tuple(Lane(readable(name), lanes[name]) for name in sorted(lanes))
    top = [piece._replace(flows_out=(), flows_in=()) for piece in slices]
    return [Section(Lane("Critical path", top, description=description), below)]


def _path_slices(parts: pd.DataFrame) -> Iterator[Slice]:
    step, lane = parts["step"].to_numpy(), parts["lane"].to_numpy()
    # Whether the path goes on in another lane of the same step, before the first part and after each.
    changes = [False, *((step[1:] == step[:-1]) & (lane[1:] != lane[:-1])).tolist(), False]
    columns = (parts[name].tolist() for name in ("start_ns", "dur_ns", "kind", "name", "operator", "reached_by"))
    for place, (start_ns, dur_ns, kind, name, operator, reached_by) in enumerate(zip(*columns, strict=True)):
        lost = kind in (LATENCY, GAP, QUEUE)
        arguments = {"kind": kind, "operator": operator, "reached by": reached_by, "before": name if lost else ""}
        yield Slice(
            start_ns,
            start_ns + dur_ns,
            kind.replace("_", " ") if lost else readable(name or kind),
            "critical path",
            {key: readable(value) for key, value in arguments.items() if value},
            flows_out=(_FIRST_ARROW + place,) if changes[place + 1] else (),
            flows_in=(_FIRST_ARROW + place - 1,) if changes[place] else (),
            color=kind,
        )


def counter_sections(tracks: Sequence[Track]) -> Iterator[Section]:
    """One section per process or device: its first counter, with the others below."""
    places = dict.fromkeys((track.process, track.device) for track in tracks)
    for place in places:
        first, *others = (_track_counter(track) for track in tracks if (track.process, track.device) == place)
        yield Section(first, tuple(others))


def _track_counter(track: Track) -> Counter:
    where = f"device {track.device}" if track.device is not None else readable(track.process)
    description = f"Counter of {where}, as the trace has it."
    gaps = int((track.gap_ns > 0).sum())
    if gaps:
        description += (
            f" {gaps} gaps, {format_ns(int(track.gap_ns.sum()))} in all: what is drawn there is the value before."
        )
    return _counter(f"{readable(track.name)} ({where})", track.unit, track.start_ns, track.values, description)


def memory_sections(memory: pd.DataFrame) -> Iterator[Section]:
    """A section for each device: live bytes, and below them what the allocator held."""
    for device, mine in memory.groupby("device", sort=False):
        name = readable(str(device))
        start_ns, live, reserved = (mine[column].to_numpy() for column in ("start_ns", "live_bytes", "reserved_bytes"))
        top = _counter(f"{name} live bytes", "bytes", start_ns, live, "Memory that was allocated and not yet released.")
        held = "Memory that the allocator held of the device, in use or not."
        below = _counter(f"{name} reserved bytes", "bytes", start_ns, reserved, held)
        yield Section(top, (below,) if (reserved >= 0).all() else ())


def _counter(name: str, unit: str, start_ns: Ints, values: Ints | Floats, description: str) -> Counter:
    """Values over time. Nothing is drawn before the first event of the trace: the last earlier value is drawn there."""
    points = zip(start_ns.clip(min=0).tolist(), values.astype(float).tolist(), strict=True)
    return Counter(name, unit, points, description)
