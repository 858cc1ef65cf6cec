"""The device side of a trace: busy and idle time, and the blame for the idle time.

An idle interval is followed back from the next device event to the call that launched it::

    host     ..python..|dispatcher|[launch call]
    device   ---busy---|            idle                 |kernel
    blame              |dispatcher |   launch   |  queue  |

Before the launching call began, the blame is what its thread was doing (while that thread had nothing to do, what the busiest
thread was doing). During the call it is ``launch``; after its return, ``queue``. If the launch is not in the trace, the blame is
``unattributed``. An operator's time is ``dispatcher``, undivided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.readers.kineto.event import COPY_CATEGORIES
from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Ints, are_first
from overhead_lens.taxonomy import torch_names
from overhead_lens.taxonomy.categories import BLAME, BLAMED_AS, QUEUE
from overhead_lens.traces.budgets import DeviceBudget, Kinds, Launches
from overhead_lens.traces.columns import passing
from overhead_lens.traces.host import of_each, threads_of
from overhead_lens.traces.host_budget import ThreadPieces
from overhead_lens.traces.intervals import cut, groups, union
from overhead_lens.traces.launches import Linked, launch_statistics, queue_of
from overhead_lens.traces.timeline import sum_by

KINDS = ("compute", "communication", "copy")
COMPUTE, COMMUNICATION, COPY = range(len(KINDS))
BUSY = ("compute", "communication", "both at once", "copy")
"""What divides a device's busy time: compute and communication alone, both together, copies beside neither."""

_QUEUE, _LAUNCH, _UNKNOWN = (BLAME.index(name) for name in (QUEUE, "launch", "unattributed"))
_BLAME_OF_CATEGORY = np.array([BLAME.index(name) for name in BLAMED_AS])


@dataclass(frozen=True, slots=True)
class Idle:
    """Idle time of a device in pieces.

    Attributes:
        start_ns, dur_ns: int64, shape ``(n,)``, ascending and disjoint; ``dur_ns`` > 0.
        blame: int64: number in ``BLAME``.
    """

    start_ns: Ints
    dur_ns: Ints
    blame: Ints

    def by_blame(self, start_ns: Ints, end_ns: Ints) -> list[dict[str, int]]:
        """Time in each window per key of ``BLAME``."""
        parts = cut(start_ns, end_ns, self.start_ns, self.start_ns + self.dur_ns)
        sums = sum_by(parts.interval * len(BLAME) + self.blame[parts.piece], parts.dur_ns, len(start_ns) * len(BLAME))
        return [dict(zip(BLAME, each, strict=True)) for each in sums.reshape(-1, len(BLAME)).tolist()]


class DeviceTimeline:
    """One device of a trace.

    Args:
        threads: Pieces of every host thread by (pid, tid); the busiest first.

    Attributes:
        events: Every event of the trace.
        linked: Its events with their launches, in order of start.
        is_first: bool: whether each is the first of its launch.
        queue: Its launches that were called and have not started.
        start_ns: int64: their starts.
        span: Start of its first and end of its last event.
        busy: Union of its events.
        kind: int64: number in ``KINDS`` of each event.
        by_kind: Union of the events of each of ``KINDS``.
        idle: Idle pieces over the whole window, before its first and after its last event as well.
    """

    def __init__(
        self,
        events: Events,
        linked: Linked,
        device: int,
        threads: Mapping[tuple[str, str], ThreadPieces],
        window: tuple[int, int],
    ) -> None:
        self.number = device
        self.events = events
        self._event_start_ns = events["start_ns"]
        chosen = np.flatnonzero(events["device"][linked.rows] == device)
        chosen = chosen[np.argsort(self._event_start_ns[linked.rows[chosen]], kind="stable")]
        self.linked = linked.chosen(chosen)
        self._rows = self.linked.rows
        self.start_ns = self._event_start_ns[self._rows]
        self.is_first = (self.linked.launch >= 0) & are_first(self.linked.launch)
        called_ns = self._event_start_ns[self.linked.launch[self.is_first]]
        self.queue = queue_of(called_ns, self.start_ns[self.is_first])
        self._dur_ns = events["dur_ns"][self._rows]
        self._reached_ns = np.maximum.accumulate(self.start_ns + self._dur_ns)
        self.busy = union(self.start_ns, self._dur_ns)
        self.span = (int(self.start_ns.min()), int((self.start_ns + self._dur_ns).max()))
        self.kind = device_kinds(events, self._rows)
        self.by_kind = [
            union(self.start_ns[self.kind == at], self._dur_ns[self.kind == at]) for at in range(len(KINDS))
        ]
        exposed = self.kind != COPY
        self._compute_or_communication = union(self.start_ns[exposed], self._dur_ns[exposed])
        self.idle = self._blamed(threads, window)

    def budgets(self, name: str, windows: Sequence[tuple[int, int]]) -> list[DeviceBudget]:
        """The device over each of ``windows`` (start, end)."""
        starts_ns, ends_ns = np.array(windows, dtype=np.int64).reshape(-1, 2).T
        unions = (*self.by_kind, self._compute_or_communication, self.busy)
        inside_ns = [(each.before(ends_ns) - each.before(starts_ns)).tolist() for each in unions]
        return [
            DeviceBudget(
                device=str(self.number),
                name=name,
                events=self._open_in(window),
                span_ns=span_ns,
                busy_ns=busy_ns,
                kinds=Kinds(compute, communication, copy, compute + communication - either),
                idle_blame=blame,
                launch=launch,
            )
            for window, span_ns, compute, communication, copy, either, busy_ns, blame, launch in zip(
                windows,
                (ends_ns - starts_ns).tolist(),
                *inside_ns,
                self.idle.by_blame(starts_ns, ends_ns),
                self._launches(windows, np.arange(len(windows))),
                strict=True,
            )
        ]

    def _open_in(self, window: tuple[int, int]) -> int:
        """Number of its events that are open in ``window``; all in its own span."""
        if window == self.span:
            return len(self._rows)
        first = int(np.searchsorted(self._reached_ns, window[0], "right"))
        last = int(np.searchsorted(self.start_ns, window[1], "left"))
        return int((self.start_ns[first:last] + self._dur_ns[first:last] > window[0]).sum())

    def busy_before(self, at_ns: Ints) -> Ints:
        """Time of each of ``BUSY`` before each instant, shape ``(len(BUSY), len(at_ns))``."""
        compute, communication, _ = (kind.before(at_ns) for kind in self.by_kind)
        either = self._compute_or_communication.before(at_ns)
        both = compute + communication - either
        return np.stack((compute - both, communication - both, both, self.busy.before(at_ns) - either))

    def launches(self, windows: Sequence[tuple[int, int]]) -> Launches:
        """Statistics of its launches whose work starts in ``windows`` (start, end)."""
        (launches,) = self._launches(windows, np.zeros(len(windows), dtype=np.int64))
        return launches

    def _launches(self, windows: Sequence[tuple[int, int]], group: Ints) -> list[Launches]:
        """The same for each group of windows."""
        started = self._started(windows)
        chosen = np.concatenate([*started, group[:0]])
        of_event = np.repeat(group, [len(each) for each in started])
        linked, depths = self.linked.chosen(chosen), self.queue.depths(windows, group)
        return launch_statistics(self._event_start_ns, linked, self.is_first[chosen], of_event, depths)

    def started(self, windows: Sequence[tuple[int, int]]) -> Ints:
        """Rows in the event frame of its events that start in ``windows``."""
        rows: Ints = self._rows[np.concatenate(self._started(windows))]
        return rows

    def _started(self, windows: Sequence[tuple[int, int]]) -> list[Ints]:
        ends = [(start_ns, end_ns + ((start_ns, end_ns) == self.span)) for start_ns, end_ns in windows]
        edges = np.searchsorted(self.start_ns, np.array(ends, dtype=np.int64).reshape(-1, 2), "left")
        return [np.arange(first, last) for first, last in edges.tolist()]

    def _blamed(self, threads: Mapping[tuple[str, str], ThreadPieces], window: tuple[int, int]) -> Idle:
        # Work of zero length also ends an idle interval, because it had its own launch.
        work = groups(self.start_ns, self._dur_ns)
        gap_start = np.concatenate(([window[0]], work.end_ns)).astype(np.int64)
        gap_end = np.concatenate((work.start_ns, [window[1]])).astype(np.int64)
        gap_end = np.maximum(gap_end, gap_start)
        launch = np.append(self.linked.launch[work.first], -1)
        start_ns, dur_ns = self._event_start_ns, self.events["dur_ns"]
        linked = launch >= 0
        called = np.where(linked, np.clip(start_ns[launch], gap_start, gap_end), gap_start)
        returned = np.where(linked, np.clip(start_ns[launch] + dur_ns[launch], called, gap_end), gap_start)
        parts = [
            _constant(called, returned, _LAUNCH),
            _constant(np.where(linked, returned, gap_end), gap_end, _QUEUE),
            _constant(gap_start[:-1], np.where(linked, gap_start, gap_end)[:-1], _UNKNOWN),
        ]
        host_end = np.where(linked, called, gap_start)
        # After the last device event there is no launch: the busiest thread is blamed.
        host_end[-1] = gap_end[-1]
        thread = self._launching_thread(launch, list(threads))
        for mine, pieces in zip(of_each(thread, len(threads)), threads.values(), strict=True):
            if len(mine):
                parts += _host_blame(gap_start[mine], host_end[mine], pieces, next(iter(threads.values())))
        if not threads:
            parts.append(_constant(gap_start[-1:], gap_end[-1:], _UNKNOWN))
        merged = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
        order = np.argsort(merged[0], kind="stable")
        return Idle(*(column[order] for column in merged))

    def _launching_thread(self, launch: Ints, keys: Sequence[tuple[str, str]]) -> Ints:
        """Number in ``keys`` of the thread of each launch; the first for no launch."""
        if not keys:
            return np.full(len(launch), -1, dtype=np.int64)
        number, named = threads_of(self.events, launch)
        position = np.array([keys.index(key) if key in keys else 0 for key in named], dtype=np.int64)
        return np.where(launch >= 0, position[number], 0)


def device_kinds(events: Events, rows: Ints) -> Ints:
    """Number in ``KINDS`` of device events, given by their rows in the event frame, by name and category."""
    name, cat = events["name"], events["cat"]
    codes = name.codes[rows]
    used = np.flatnonzero(np.bincount(codes))
    kinds = np.full(len(name.categories), COMPUTE)
    kinds[used] = [_kind_by_name(name.categories[code]) for code in used.tolist()]
    is_copy = passing(cat.categories, COPY_CATEGORIES.__contains__)[cat.codes[rows]]
    return np.where(is_copy, COPY, kinds[codes])


def _kind_by_name(name: str) -> int:
    if torch_names.COPY_KERNEL.match(name):
        return COPY
    return COMMUNICATION if torch_names.COMMUNICATION_KERNEL.search(name) else COMPUTE


_Part = tuple[Ints, Ints, Ints]


def _constant(start_ns: Ints, end_ns: Ints, blame: int) -> _Part:
    lasting = np.flatnonzero(end_ns > start_ns)
    return start_ns[lasting], (end_ns - start_ns)[lasting], np.full(len(lasting), blame, dtype=np.int64)


def _host_blame(start_ns: Ints, end_ns: Ints, thread: ThreadPieces, busiest: ThreadPieces) -> list[_Part]:
    """What ``thread`` did in the intervals; while it had nothing to do, what the busiest thread did."""
    parts = cut(start_ns, end_ns, thread.start_ns, thread.start_ns + thread.dur_ns)
    blame = _BLAME_OF_CATEGORY[thread.categories()[parts.piece]]
    if thread is busiest:
        return [(parts.start_ns, parts.dur_ns, blame)]
    idle = thread.is_idle[parts.piece]
    idle_start_ns = parts.start_ns[idle]
    return [
        (parts.start_ns[~idle], parts.dur_ns[~idle], blame[~idle]),
        *_host_blame(idle_start_ns, idle_start_ns + parts.dur_ns[idle], busiest, busiest),
    ]
