"""A picture for the Perfetto UI (``.pftrace``): what is on it, and how it is written.

The UI opens a dropped file with everything closed but the tracks at the top, on all of its time or as much as the file says was
recorded. So a picture has sections there, which are seen at once, in order, and says how much of its time is to be seen first;
the threads below them are closed.

Packets are written as they are made. A million events take about 12 s and 40 MB of disk; memory grows by what sorting
them takes, about 170 bytes an event, beside the frame that holds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from overhead_lens.export.lanes.identities import Identities
from overhead_lens.export.lanes.model import Counter, Lane, Section, Slice, ThreadKey
from overhead_lens.export.names import readable
from overhead_lens.export.output import replacing
from overhead_lens.export.perfetto.packets import PacketSequence, PacketSink
from overhead_lens.export.perfetto.stacks import Flamegraph, write_samples
from overhead_lens.export.perfetto.tracks import Tracks

EXPLAINED = "what it shows"
UNNAMED_PROCESS = "process"

_FIRST_SEQUENCE = 1
_WIDEST_VIEW = 2


@dataclass(frozen=True, slots=True)
class Picture:
    """The contents of a picture.

    Attributes:
        sections: On top, in this order.
        flamegraphs: One a thread, each thread once.
        view: Start and end of what is seen first; its length is positive.
    """

    sections: Sequence[Section]
    view: tuple[int, int]
    lanes: Sequence[Lane] = ()
    flamegraphs: Sequence[Flamegraph] = ()
    thread_names: Mapping[ThreadKey, str] = field(default_factory=dict)


def view_ns(budget_ns: int, beside_ns: int) -> int:
    """How much time is seen first: a budget and what is beside it, but so that the budget takes half of it at least."""
    budget_ns = max(1, budget_ns)
    return min(max(budget_ns, beside_ns), _WIDEST_VIEW * budget_ns)


def write_picture(path: Path, picture: Picture) -> None:
    """Write a trace that ui.perfetto.dev and trace_processor read."""
    with replacing(path) as file:
        sink = PacketSink(file)
        packets = PacketSequence(sink, _FIRST_SEQUENCE)
        # What "was recorded" is what the UI shows first; the rest is reached by zooming out.
        packets.packet(picture.view[0]).service_event.tracing_started = True
        packets.packet(picture.view[1]).service_event.tracing_disabled = True
        tracks = Tracks(packets)
        _write_sections(tracks, picture)
        threads, numbers = _described_threads(tracks, picture)
        for lane in picture.lanes:
            tracks.lane(lane, threads[_key(lane)])
        for sequence, flamegraph in enumerate(picture.flamegraphs, _FIRST_SEQUENCE + 1):
            process, thread = numbers.processes[flamegraph.thread[0]], numbers.threads[flamegraph.thread]
            write_samples(PacketSequence(sink, sequence), flamegraph.samples, process, thread)
        sink.flush()


def _write_sections(tracks: Tracks, picture: Picture) -> None:
    """Numbered, for the UI sorts what is on top by name; none alone, for it hides a top track that has nothing below."""
    width = len(str(len(picture.sections)))
    for place, section in enumerate(picture.sections, 1):
        name = f"{place:0{width}}. {section.top.name}"
        track = _write_track(tracks, section.top, name)
        explanation = Slice(*picture.view, section.top.description or name, "text", color="text")
        tracks.lane(Lane(EXPLAINED, [explanation]), track)
        for below in section.below:
            _write_track(tracks, below, below.name, track)


def _write_track(tracks: Tracks, track: Lane | Counter, name: str, parent: int = 0) -> int:
    if isinstance(track, Lane):
        return tracks.lane(Lane(name, track.slices, description=track.description), parent)
    return tracks.counter(Counter(name, track.unit, track.points, track.description), parent)


def _described_threads(tracks: Tracks, picture: Picture) -> tuple[dict[ThreadKey, int], Identities]:
    """The track of every thread of lanes and flamegraphs, and the numbers of threads and their processes."""
    sampled = {flamegraph.thread: flamegraph for flamegraph in picture.flamegraphs}
    keys = list(dict.fromkeys([*sampled, *map(_key, picture.lanes)]))
    numbers = Identities(keys)
    processes = {pid: UNNAMED_PROCESS for pid, _ in keys} | {
        pid: each.process_name for (pid, _), each in sampled.items()
    }
    for pid, name in processes.items():
        tracks.process(numbers.processes[pid], _named(readable(name), pid, numbers.processes[pid]))
    names = {**picture.thread_names, **{key: each.thread_name for key, each in sampled.items()}}
    threads = {}
    for key in keys:
        process, number = numbers.processes[key[0]], numbers.threads[key]
        name = _named(readable(names.get(key) or "thread"), key[1], number)
        threads[key] = tracks.thread(process, number, name)
    return threads, numbers


def _key(lane: Lane) -> ThreadKey:
    assert lane.thread is not None
    return lane.thread


def _named(name: str, key: str, number: int) -> str:
    """A name, and what the trace calls its bearer where the number that viewers add to it is a stand-in."""
    return name if key == str(number) else f"{name} ({key})"
