"""Device events in an order independent of the file, with their launches and predecessors in the stream."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Bools, Ints, taken
from overhead_lens.traces.device import device_kinds
from overhead_lens.traces.host import distinct
from overhead_lens.traces.intervals import distinct_values
from overhead_lens.traces.launches import Linked
from overhead_lens.traces.loops import run

_LONG_AGO = -(2**62)


@dataclass(frozen=True, slots=True)
class PathWork:
    """Device events by device, stream and start; int64 arrays of shape ``(n,)``.

    Attributes:
        start_ns, end_ns: When they ran.
        group: Number of device and stream together.
        kind: Number in ``traces.device.KINDS``.
        launch: Row of the launching call, -1 where it is not in the trace or contradicts the clock.
        is_graph: bool: launched as part of a graph.
        called_ns: Start of the launching call. Where that is unknown, the latest that it can be: the event's own start, or the
            call of the next event in the stream that has one; before the recording for those that come before any with a call.
        before: The event of the same stream before it that ends last, as a position here; -1 for none.
        contradicted: Events that start before their launching call.
    """

    rows: Ints
    start_ns: Ints
    end_ns: Ints
    device: Ints
    stream: Ints
    group: Ints
    name: Ints
    kind: Ints
    launch: Ints
    is_graph: Bools
    called_ns: Ints
    before: Ints
    contradicted: int

    def __len__(self) -> int:
        return len(self.rows)


def device_work(events: Events, linked: Linked) -> PathWork:
    """All device events of a trace."""
    frame = {name: events[name] for name in ("start_ns", "dur_ns", "device", "stream", "correlation")}
    rows, launch = linked.rows, linked.launch
    name = events["name"]
    code = name.codes[rows].astype(np.int64)
    spelled = np.argsort(np.argsort(np.array([str(text) for text in name.categories] or [""])))
    start_ns = frame["start_ns"][rows]
    end_ns = start_ns + frame["dur_ns"][rows]
    device, stream = frame["device"][rows], frame["stream"][rows]
    called_ns = np.where(launch >= 0, frame["start_ns"][launch], start_ns) if len(rows) else start_ns
    contradicts = called_ns > start_ns
    launch = np.where(contradicts, -1, launch)
    called_ns = np.minimum(called_ns, start_ns)
    known = launch >= 0
    order = np.lexsort((frame["correlation"][rows], called_ns, spelled[code], end_ns, start_ns, stream, device))
    device_number = distinct(device)[0]
    stream_number, streams = distinct(stream)
    group = distinct(device_number * max(1, len(streams)) + stream_number)[0][order]
    called_ns = called_ns[order]
    latest = _latest_of_group(group, end_ns[order])
    before = np.where(np.diff(group, prepend=-1) == 0, np.append(-1, latest)[: len(rows)], -1)
    run(_called, (group, known[order].astype(np.int64)), (called_ns,), len(rows))
    return PathWork(
        rows[order],
        start_ns[order],
        end_ns[order],
        device[order],
        stream[order],
        group,
        code[order],
        device_kinds(events, rows[order]),
        launch[order],
        linked.is_graph[order] & (launch[order] >= 0),
        called_ns,
        before,
        int(contradicts.sum()),
    )


class LaunchOrder:
    """Device events in the order in which they were launched, within groups.

    Args:
        group: int64 per event: only events of one group are ordered.
    """

    def __init__(self, work: PathWork, group: Ints) -> None:
        self._times = distinct_values(work.called_ns)
        self._width = len(self._times) + 1
        self._groups = distinct_values(group)
        key = np.searchsorted(self._groups, group) * self._width + np.searchsorted(self._times, work.called_ns)
        self._order = np.argsort(key, kind="stable")
        self._key = key[self._order]
        self._group = group[self._order]
        self._latest = self._order[_latest_of_group(self._group, work.end_ns[self._order])]

    def last_before(self, group: Ints, time_ns: Ints) -> Ints:
        """The event launched last in a group before a time; -1 for none."""
        return taken(self._order, self._places(group, time_ns, -1))

    def latest_before(self, group: Ints, time_ns: Ints) -> Ints:
        """The event that ends last of those launched in a group before a time; -1 for none."""
        return taken(self._latest, self._places(group, time_ns, -1))

    def first_from(self, group: Ints, time_ns: Ints) -> Ints:
        """The event launched first in a group at a time or after it; -1 for none."""
        return taken(self._order, self._places(group, time_ns, 0))

    def _places(self, group: Ints, time_ns: Ints, step: int) -> Ints:
        """The place in the order that is ``step`` from the first launch in a group at a time or after it; -1 outside of it."""
        number = np.searchsorted(self._groups, group)
        key = number * self._width + np.searchsorted(self._times, time_ns, "left")
        at = np.searchsorted(self._key, key, "left") + step
        inside = (at >= 0) & (at < len(self._order))
        inside[inside] = self._group[at[inside]] == group[inside]
        return np.where(inside, at, -1)


def _latest_of_group(group: Ints, end_ns: Ints) -> Ints:
    """The event that ends last up to and including each in its group (the last of equals)."""
    latest = np.empty(len(group), dtype=np.int64)
    run(_latest, (group, end_ns), (latest,), len(group))
    return latest


def _latest(group: Sequence[int], end: Sequence[int], latest: MutableSequence[int]) -> int:
    best = -1
    for at in range(len(group)):
        if best < 0 or group[best] != group[at] or end[at] >= end[best]:
            best = at
        latest[at] = best
    return len(group)


def _called(group: Sequence[int], known: Sequence[int], called: MutableSequence[int]) -> int:
    """Replace unknown times by the next known time of the group; without one, by the lowest."""
    for at in range(len(group) - 2, -1, -1):
        if known[at] == 0 and group[at + 1] == group[at] and called[at + 1] < called[at]:
            called[at] = called[at + 1]
    led = 0
    for at in range(len(group)):
        if at == 0 or group[at] != group[at - 1]:
            led = 0
        if known[at] == 1:
            led = 1
        elif led == 0:
            called[at] = _LONG_AGO
    return len(group)
