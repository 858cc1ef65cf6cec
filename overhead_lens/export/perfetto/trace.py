"""The budget and its evidence as one Perfetto trace (``.pftrace``).

Packets are written as they are made. A million events take about 12 s and 40 MB of disk; memory grows by what sorting
them takes, about 170 bytes an event, beside the frame that holds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from overhead_lens.budget.model import Breakdown
from overhead_lens.export.lanes.budget import budget_lane
from overhead_lens.export.lanes.counters import CLOCK, Counter, clock_counters
from overhead_lens.export.lanes.drawn import Drawn
from overhead_lens.export.lanes.events import event_lanes
from overhead_lens.export.lanes.identities import Identities
from overhead_lens.export.lanes.model import Lane, ThreadKey
from overhead_lens.export.names import readable
from overhead_lens.export.output import replacing
from overhead_lens.export.perfetto.packets import PacketSequence, PacketSink
from overhead_lens.export.perfetto.samples import write_samples
from overhead_lens.export.perfetto.tracks import Tracks

SAMPLES = "Sampled stacks"

_EVENT_SEQUENCE = 1
_SAMPLE_SEQUENCE = 2


def write_perfetto(path: Path, breakdown: Breakdown | None, evidence: Drawn | None = None) -> None:
    """Write a trace that ui.perfetto.dev and trace_processor read.

    Every part starts at the timeline's zero: the budget of one call, the traced events, the clock's measured time and
    the sampled stacks were taken by different instruments in different processes.

    Args:
        path: Replaced when the trace is complete.
        breakdown: Its budget becomes the first track; None where only a trace was analyzed.
        evidence: Drawn below it.

    Raises:
        UsageError: The file cannot be written, or the events' timestamps are damaged.
    """
    shown = evidence or Drawn()
    lanes = ([budget_lane(breakdown)] if breakdown is not None else []) + event_lanes(shown)
    write_lanes(path, lanes, {CLOCK: tuple(clock_counters(shown.clock))}, shown)


def write_lanes(path: Path, lanes: list[Lane], counters: Mapping[str, Sequence[Counter]], shown: Drawn) -> None:
    """Write lanes, counters under their headings, and the sampled stacks of ``shown``.

    Raises:
        UsageError: The file cannot be written.
    """
    numbers = Identities(lane.thread for lane in lanes if lane.thread is not None)
    with replacing(path) as file:
        sink = PacketSink(file)
        tracks = Tracks(PacketSequence(sink, _EVENT_SEQUENCE))
        _write_lanes(tracks, lanes, numbers, shown)
        _write_counters(tracks, counters)
        if shown.stacks:
            _write_samples(sink, tracks, shown, numbers.fresh())
        sink.flush()


def _write_lanes(tracks: Tracks, lanes: list[Lane], numbers: Identities, shown: Drawn) -> None:
    process_name = readable(shown.process_name)
    processes: set[str] = set()
    threads: dict[ThreadKey, int] = {}
    groups: dict[str, int] = {}
    for lane in lanes:
        if lane.thread is None:
            if lane.group not in groups:
                groups[lane.group] = tracks.group(lane.group)
            tracks.lane(lane, groups[lane.group])
            continue
        pid, tid = lane.thread
        if pid not in processes:
            processes.add(pid)
            tracks.process(numbers.process(pid), _named(process_name, pid, numbers.process(pid)))
        if lane.thread not in threads:
            number = numbers.thread(lane.thread)
            name = readable(shown.thread_names[lane.thread]) if lane.thread in shown.thread_names else "thread"
            threads[lane.thread] = tracks.thread(numbers.process(pid), number, _named(name, tid, number))
        tracks.lane(lane, threads[lane.thread])


def _named(name: str, key: str, number: int) -> str:
    """A name, and what the trace calls its bearer where the number that viewers add to it is a stand-in."""
    return name if key == str(number) else f"{name} ({key})"


def _write_counters(tracks: Tracks, counters: Mapping[str, Sequence[Counter]]) -> None:
    for heading, members in counters.items():
        group = tracks.group(heading) if members else 0
        for counter in members:
            tracks.counter(counter, group)


def _write_samples(sink: PacketSink, tracks: Tracks, evidence: Drawn, number: int) -> None:
    tracks.process(number, SAMPLES)
    tracks.thread(number, number, SAMPLES)
    write_samples(PacketSequence(sink, _SAMPLE_SEQUENCE), evidence.stacks, evidence.sample_period_ns, number, number)
