"""The capture of a call for other viewers: its budget, a traced call, its timed blocks and its stacks.

The axis of a picture is that of one call: everything begins at zero and has its own length, so that what the profiler adds is
seen as such. A writer raises ``UsageError`` where the capture lacks its evidence or is damaged, or the file cannot be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from overhead_lens.budget.model import Breakdown, Wall
from overhead_lens.budget.trace import category_lane, loop_events
from overhead_lens.budget.wall import time_column, without_delays
from overhead_lens.captures.directory import Capture, read_capture
from overhead_lens.captures.files import KINETO, KINETO_STACK, PERFETTO
from overhead_lens.errors import UsageError
from overhead_lens.export.chrome import write_chrome
from overhead_lens.export.lanes.budget import budget_lane, device_lane, operator_lane
from overhead_lens.export.lanes.events import OPERATORS_LANE, event_lanes
from overhead_lens.export.lanes.model import Counter, Lane, Section, Slice
from overhead_lens.export.lanes.threads import placed_stacks
from overhead_lens.export.perfetto.picture import Picture, view_ns, write_picture
from overhead_lens.export.perfetto.stacks import Flamegraph
from overhead_lens.export.speedscope import Profile, Write
from overhead_lens.instruments.clock.record import read_blocks
from overhead_lens.instruments.samples.record import read_samples
from overhead_lens.instruments.trace.record import Traced
from overhead_lens.readers.kineto.model import columns_of
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.stack import Stack
from overhead_lens.stats.values import Ints
from overhead_lens.stored import breakdown_of
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.traces.launches import link
from overhead_lens.traces.timeline import Nesting
from overhead_lens.units import format_ns
from overhead_lens.worker.loop import LOOP_NAME

Span = tuple[int, int]


def one_call(events: pd.DataFrame, calls: int) -> Span | None:
    """Start and end of the call of median length, in the events' time; None if the calls cannot be separated.

    A trace does not say where a call begins. All calls of a loop raise the same outermost events, so they form one
    equal group per call::

        loop     |-------------------------------------------------|
        events    |add| |mul|     |add| |mul|     |add| |mul|
        call      |-------------->|-------------->|

    A call lasts until the next one begins. The last of several calls is left out, since nothing marks its end.
    """
    host, window = loop_events(events)
    if host.empty or calls < 1:
        return None
    start_ns, end_ns = host["start_ns"].to_numpy(), (host["start_ns"] + host["dur_ns"]).to_numpy()
    loop = np.flatnonzero(host["name"].astype(str).str.endswith(f": {LOOP_NAME}") & (host["cat"] == "python_function"))
    outermost = np.flatnonzero(Nesting(start_ns, end_ns - start_ns).parent == (loop[0] if len(loop) else -1))
    firsts = _firsts(outermost, host["name"].to_numpy(), calls)
    if firsts is None:
        return None
    if calls == 1:
        return (int(start_ns[loop[0]]), int(end_ns[loop[0]])) if len(loop) else window
    begins = start_ns[firsts]
    chosen = np.argsort(np.diff(begins), kind="stable")[(calls - 2) // 2]
    return int(begins[chosen]), int(begins[chosen + 1])


def _firsts(outermost: Ints, names: np.ndarray, calls: int) -> Ints | None:
    """Positions of each call's first event, if the outermost events form that many equal groups."""
    size, rest = divmod(len(outermost), calls)
    if not size or rest:
        return None
    groups = names[outermost].reshape(calls, size)
    return outermost[::size] if (groups == groups[0]).all() else None


def events_of_call(events: pd.DataFrame, call: Span) -> pd.DataFrame:
    """Host events that begin in the call, on any thread, and the device work that they launched.

    Device work without a launch in the trace belongs to the call in which it begins.
    """
    chosen = (events["start_ns"].between(*call, inclusive="left") & (events["cat"] != "Trace")).to_numpy(copy=True)
    linked = link(columns_of(events))
    chosen[linked.rows] = chosen[np.where(linked.launch >= 0, linked.launch, linked.rows)]
    own: pd.DataFrame = events[chosen]
    return own


def categories_in(lane: pd.DataFrame, call: Span) -> pd.DataFrame:
    """Consecutive pieces cut to the call: ``start_ns``, ``dur_ns``, ``category``."""
    start_ns = lane["start_ns"].clip(*call)
    dur_ns = (lane["start_ns"] + lane["dur_ns"]).clip(*call) - start_ns
    cut: pd.DataFrame = lane.assign(start_ns=start_ns, dur_ns=dur_ns)[dur_ns > 0]
    return cut


def draw(path: Path, breakdown: Breakdown, classifier: Classifier) -> Path:
    """Write ``trace.pftrace`` in the capture; returns the file."""
    write_picture(path / PERFETTO, _picture(read_capture(path), breakdown, classifier))
    return path / PERFETTO


def write_call_perfetto(path: Path, target: Path, classifier: Classifier) -> None:
    """Write a capture as a native Perfetto trace."""
    write_picture(target, _picture(read_capture(path), breakdown_of(path, classifier), classifier))


def write_call_chrome(path: Path, target: Path, classifier: Classifier) -> None:
    """Write the budget of a call, and the traced calls, as Chrome's JSON trace."""
    breakdown, stored = breakdown_of(path, classifier), read_capture(path)
    source = stored.existing(KINETO_STACK) or stored.existing(KINETO)
    if source is None:
        raise UsageError(f"{path} holds no trace to export")
    write_chrome(target, budget_lane(breakdown), read_trace(source).events)


def write_call_stacks(path: Path, target: Path, classifier: Classifier, write: Write) -> None:
    """Write the stacks of a call."""
    breakdown, samples = breakdown_of(path, classifier), read_samples(read_capture(path))
    if not samples.stacks:
        raise UsageError(f"{path} holds no samples to export ({samples.sampled.reason})")
    subject = breakdown.subject
    profile = Profile(subject.title, breakdown.wall.ns, samples.stacks)
    write(target, f"{subject.title}, {breakdown.mode}", [profile])


@dataclass(frozen=True, slots=True)
class _Loop:
    """A traced loop with the time window of one call, or of all calls if they cannot be separated.

    Attributes:
        calls: How many calls the time is of.
    """

    events: pd.DataFrame
    span: Span
    calls: int

    @property
    def wall_ns(self) -> int:
        """Length of the time window."""
        return self.span[1] - self.span[0]

    @property
    def own_events(self) -> pd.DataFrame:
        """Events in the time window, except the loop itself."""
        mine = events_of_call(self.events, self.span)
        own: pd.DataFrame = mine[mine["name"] != LOOP_NAME]
        return own

    @property
    def title(self) -> str:
        """The title of the time window."""
        return "One call, of median length" if self.calls == 1 else f"{self.calls:,} calls, which cannot be separated"


def _picture(capture: Capture, breakdown: Breakdown, classifier: Classifier) -> Picture:
    about = capture.note("trace", Traced) or Traced()
    sections = [Section(budget_lane(breakdown), (interval_lane(breakdown.wall),))]
    if breakdown.device is not None:
        sections.append(Section(device_lane(breakdown.device)))
    if breakdown.operators is not None and breakdown.operators.children:
        sections.append(Section(operator_lane(breakdown.operators)))
    plain = _loop(capture, KINETO, about.calls)
    if plain is not None:
        sections += _traced(plain, classifier)
    sections.append(Section(block_counter(read_blocks(capture), breakdown.wall)))
    with_stacks = _loop(capture, KINETO_STACK, about.stack_calls)
    if with_stacks is not None:
        sections += _traced_with_stacks(with_stacks, breakdown.wall.ns)
    stacks = read_samples(capture).stacks
    placed = placed_stacks(stacks, breakdown.host, classifier.fitted(stacks), shown=_without_loop)
    flamegraph = Flamegraph(("1", "1"), "measured loop", "Sampled stacks", placed)
    view = 0, view_ns(breakdown.wall.ns, plain.wall_ns if plain is not None else 0)
    return Picture(sections, view, flamegraphs=[flamegraph] if stacks else [])


def _without_loop(stack: Stack) -> Stack:
    """A stack without the frame of the measured loop, which all of them have."""
    return replace(stack, frames=stack.frames[1:])


def _loop(capture: Capture, name: str, calls: int) -> _Loop | None:
    """The loop in one of the capture's traces."""
    path = capture.existing(name)
    if path is None:
        return None
    events = read_trace(path).events
    span = one_call(events, calls)
    if span is not None:
        return _Loop(events, span, 1)
    loops = events[events["name"] == LOOP_NAME]
    if not len(loops):
        return None
    start_ns = int(loops["start_ns"].iloc[0])
    return _Loop(events, (start_ns, start_ns + int(loops["dur_ns"].iloc[0])), calls)


def _traced(loop: _Loop, classifier: Classifier) -> Iterator[Section]:
    """Categories and events as torch.profiler saw them."""
    lane = categories_in(category_lane(loop.events, classifier), loop.span)
    thread = loop.events.loc[loop.events["name"] == LOOP_NAME, ["pid", "tid"]].head(1)
    categories = lane.assign(pid=thread["pid"].iloc[0], tid=thread["tid"].iloc[0]) if len(thread) else None
    text = (
        f"{loop.title}, as torch.profiler recorded it: {format_ns(loop.wall_ns)} with the profiler's own cost, which the budget "
        "does not contain."
    )
    yield from _sections(event_lanes(loop.own_events, categories), "Traced call", text)


def _traced_with_stacks(loop: _Loop, wall_ns: int) -> Iterator[Section]:
    times = f", {loop.wall_ns / (loop.calls * wall_ns):.1f} times the unprofiled call" if wall_ns else ""
    text = (
        f"{loop.title}, recorded again with Python stacks, which take their time: {format_ns(loop.wall_ns)}{times}. It is for "
        "looking at who calls whom, in order: no figure of the budget comes from it."
    )
    lanes = event_lanes(loop.own_events, separates_python=False)
    yield from _sections(lanes, "With Python stacks", text, only=OPERATORS_LANE)


def _sections(lanes: list[Lane], title: str, text: str, only: str = "") -> Iterator[Section]:
    """A section a lane, named by what it shows (but for the lanes called ``only``), and by its thread where there are several."""
    several = len({lane.thread for lane in lanes if lane.thread}) > 1
    for lane in lanes:
        shown = "" if lane.name == only else f": {lane.name.lower()}"
        thread = f" of thread {lane.thread[1]}" if several and lane.thread else ""
        yield Section(replace(lane, name=f"{title}{shown}{thread}", thread=None, group="", description=text))


_BINS = 60
_LONGEST = 1.5


def block_counter(clock: pd.DataFrame, wall: Wall) -> Counter:
    """Histogram of timed blocks: at each time of the axis, the number of blocks whose calls took about that long.

    The axis is that of one call, so the peak is where the budget ends::

        budget    | python           | dispatcher  |
        blocks                                  ___====__
                  0                             wall

    Blocks above 1.5 times the wall time are counted at that time, to keep the axis short.
    """
    clock, longest_ns = without_delays(clock), max(wall.ns + 1, int(_LONGEST * wall.ns))
    call_ns = np.minimum((clock[time_column(clock)] / clock["calls"]).to_numpy(), longest_ns)
    width_ns = max(1, longest_ns // (_BINS * 4), int(np.ptp(call_ns)) // _BINS)
    counts = np.bincount((call_ns // width_ns).astype(np.int64))
    description = (
        f"Blocks of calls timed by the bare clock, {len(clock):,} in all: how many took that long per call. "
        f"Each column is {format_ns(width_ns)} wide; what took longer than {format_ns(longest_ns)} is counted there."
    )
    return Counter("Timed blocks", "blocks", _changes(counts.tolist(), width_ns), description)


def interval_lane(wall: Wall) -> Lane:
    """The interval of the wall time, where it lies on the axis of a call."""
    low_ns, high_ns = (round(bound) for bound in wall.ci95_ns)
    kind = wall.interval if wall.is_range else "95 % interval"
    name = f"{kind} of the wall time: {format_ns(low_ns)} .. {format_ns(high_ns)}"
    arguments = {"wall ns": wall.ns, "processes": wall.processes, "blocks": wall.blocks, "calls": wall.calls}
    return Lane(kind, [Slice(max(0, low_ns), max(0, low_ns, high_ns), name, "interval", arguments)])


def _changes(counts: Sequence[int], width_ns: int) -> list[tuple[int, float]]:
    """Positions at which a staircase function changes, and its new values; it begins and ends at zero."""
    points = [(0, 0.0)]
    for place, count in enumerate([*counts, 0]):
        if count != points[-1][1]:
            points.append((place * width_ns, float(count)))
    return points if points[1:2] != [(0, points[1][1])] else points[1:]
