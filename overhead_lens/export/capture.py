"""A stored capture as a picture for the Perfetto UI: its budget, a traced call, its timed blocks and its stacks.

The axis is that of one call: everything begins at zero and has its own length, so that what the profiler adds is seen as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from overhead_lens.budget.model import Breakdown
from overhead_lens.budget.trace import category_lane
from overhead_lens.captures.directory import Capture, read_capture
from overhead_lens.captures.files import KINETO, KINETO_STACK, PERFETTO
from overhead_lens.export.lanes.budget import budget_lane, device_lane, operator_lane
from overhead_lens.export.lanes.call import Span, categories_in, events_of_call, one_call
from overhead_lens.export.lanes.clock import block_counter, interval_lane
from overhead_lens.export.lanes.events import OPERATORS_LANE, event_lanes
from overhead_lens.export.lanes.model import Lane, Section
from overhead_lens.export.lanes.samples import placed_stacks
from overhead_lens.export.perfetto.picture import Picture, view_ns, write_picture
from overhead_lens.export.perfetto.stacks import Flamegraph
from overhead_lens.instruments.clock.evidence import read_blocks
from overhead_lens.instruments.samples.evidence import read_samples
from overhead_lens.instruments.trace.evidence import Traced
from overhead_lens.readers.kineto.read import read_events
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import format_ns
from overhead_lens.worker.loop import LOOP_NAME

TRACED = "Traced call"
TRACED_WITH_STACKS = "With Python stacks"

_STACKS = ("1", "1")


def draw(path: Path, breakdown: Breakdown, classifier: Classifier) -> Path:
    """Write ``trace.pftrace`` into the capture."""
    write_capture(path, path / PERFETTO, breakdown, classifier)
    return path / PERFETTO


def write_capture(path: Path, target: Path, breakdown: Breakdown, classifier: Classifier) -> None:
    """Write a capture as a native Perfetto trace to ``target``.

    Raises:
        UsageError: The capture is damaged, or the file cannot be written.
    """
    write_picture(target, _picture(read_capture(path), breakdown, classifier))


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
    flamegraph = Flamegraph(_STACKS, "measured loop", "Sampled stacks", placed)
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
    events = read_events(path)
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
    yield from _sections(event_lanes(loop.own_events, categories), TRACED, text)


def _traced_with_stacks(loop: _Loop, wall_ns: int) -> Iterator[Section]:
    times = f", {loop.wall_ns / (loop.calls * wall_ns):.1f} times the unprofiled call" if wall_ns else ""
    text = (
        f"{loop.title}, recorded again with Python stacks, which take their time: {format_ns(loop.wall_ns)}{times}. It is for "
        "looking at who calls whom, in order: no figure of the budget comes from it."
    )
    lanes = event_lanes(loop.own_events, separates_python=False)
    yield from _sections(lanes, TRACED_WITH_STACKS, text, only=OPERATORS_LANE)


def _sections(lanes: list[Lane], title: str, text: str, only: str = "") -> Iterator[Section]:
    """A section a lane, named by what it shows (but for the lanes called ``only``), and by its thread where there are several."""
    several = len({lane.thread for lane in lanes if lane.thread}) > 1
    for lane in lanes:
        shown = "" if lane.name == only else f": {lane.name.lower()}"
        thread = f" of thread {lane.thread[1]}" if several and lane.thread else ""
        yield Section(replace(lane, name=f"{title}{shown}{thread}", thread=None, group="", description=text))
