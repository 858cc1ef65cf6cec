"""What waited for a device: calls of the host that block until work is done, and streams that wait for other streams.

``cuda_sync`` events (third_party/kineto, CuptiActivity.cpp, ``CudaSyncActivity``) say which stream a call waited for, and which
call recorded an event. Most recordings have none. There it is assumed that

- a stream synchronization waits for the stream that its thread launched to last;
- an event synchronization, and a release of device memory, waits for what ended last of all that was launched before (so does,
  in any trace, an event synchronization for an event recorded before the trace began);
- a device event that starts later than its launch and its stream explain has waited for what ended last before it on another
  stream of its device, if that is later than what is known to lead to it, was launched earlier, and a wait for an event was
  called in between (in a trace that has no such calls at all, or within one captured graph: without one).

The waits within a captured graph are in no recording, so that they are always assumed.

The call of a copy that begins before the call returns has waited for what was before the copy in its stream, for what its stream
waited for (by recorded waits, or, for copies that do not go to a device and begin later than twice the usual time after their
call, by the last rule above), and for the copy itself if that is over when it returns; an asynchronous call waits for no copy
within devices, or between a device and pinned memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from overhead_lens.readers.kineto.event import integer
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.stats.values import Bools, Ints, first_places, taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import where
from overhead_lens.traces.critical_path.work import LaunchOrder, PathWork
from overhead_lens.traces.device import COPY
from overhead_lens.traces.host import threads_of
from overhead_lens.traces.intervals import distinct_values
from overhead_lens.traces.launches import runtime_rows

_SYNC = "cuda_sync"
_KIND, _ON_STREAM, _RECORD = "cuda_sync_kind", "wait_on_stream", "wait_on_cuda_event_record_corr_id"


@dataclass(frozen=True, slots=True)
class HostWaits:
    """Calls that wait for device events; int64 arrays of shape ``(n,)``.

    Attributes:
        start_ns: From when on it waits.
        work: The device event that it waits for.
        assumed: bool: the trace does not say which.
        contradicted: Waits of calls that returned before the awaited work ended, by the clocks; the last event that had ended is
            used.
    """

    call: Ints
    start_ns: Ints
    work: Ints
    assumed: Bools
    contradicted: int


@dataclass(frozen=True, slots=True)
class StreamWaits:
    """Device events (``waiting``) that wait for one of another stream (``work``); positions in the device work, int64.

    Attributes:
        contradicted: Further events that began before the other was done.
    """

    waiting: Ints
    work: Ints
    contradicted: int


@dataclass(frozen=True, slots=True)
class Synchronizations:
    """The trace's synchronization events, by the correlation of their calls.

    Attributes:
        streams: Correlation of a stream's synchronization to (device, stream).
        events: Correlation of a call that waits for an event to (device, stream of the record, correlation of the record).
        waits: (correlation of the call, device, stream that waits) for each wait of a stream.
    """

    count: int
    streams: Mapping[int, tuple[int, int]]
    events: Mapping[int, tuple[int, int, int]]
    waits: tuple[tuple[int, int, int], ...]


def synchronizations(trace: Trace) -> Synchronizations:
    """Read the synchronization events of a trace."""
    rows = np.flatnonzero(where(trace.columns["cat"], lambda cat: cat == _SYNC))
    streams, events, waits = {}, {}, []
    names = trace.columns["name"][rows]
    for name, arguments in zip(names, trace.arguments(rows.tolist()), strict=True):
        kind = str(arguments.get(_KIND, name))
        device, stream, correlation = (integer(arguments.get(key)) for key in ("device", "stream", "correlation"))
        if kind == "Stream Sync":
            streams[correlation] = (device, stream)
        elif kind in ("Event Sync", "Stream Wait Event") and (of := integer(arguments.get(_ON_STREAM))) >= 0:
            events[correlation] = (device, of, integer(arguments.get(_RECORD)))
            if kind == "Stream Wait Event":
                waits.append((correlation, device, stream))
    return Synchronizations(len(rows), streams, events, tuple(sorted(waits)))


class Waits:
    """Finds what waited for device work."""

    def __init__(self, trace: Trace, work: PathWork) -> None:
        self._events = trace.columns
        self._work = work
        self.sync_events = synchronizations(trace)
        frame = trace.columns
        self._start_ns, self._dur_ns = frame["start_ns"], frame["dur_ns"]
        self._correlation = frame["correlation"]
        self._calls = runtime_rows(frame)
        self._by_stream = LaunchOrder(work, work.group)

    def host_waits(self, expected_ns: Ints) -> HostWaits:
        """Calls that block the host; ``expected_ns``: int64, by when each device event would start if it waited for no stream."""
        parts = [*self._synchronizing(), *self._copies(expected_ns)]
        call, start_ns, work, assumed = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        late = np.zeros(len(call), dtype=bool)
        late[work >= 0] = self._work.end_ns[work[work >= 0]] > (self._start_ns + self._dur_ns)[call[work >= 0]]
        # With a late clock the device seems busy when the call returned: the last finished event released the call.
        instead = self._ended_by(call[late])
        same = instead >= 0
        same[same] = self._work.group[instead[same]] == self._work.group[work[late][same]]
        work[late] = np.where(same, instead, -1)
        keep = work >= 0
        # What a thread has waited for is over: its later waits for the same follow from the first.
        thread = threads_of(self._events, call)[0]
        order = np.lexsort((start_ns, work, thread))
        again = (np.diff(work[order], prepend=-2) == 0) & (np.diff(thread[order], prepend=-2) == 0)
        keep[order[again]] = False
        return HostWaits(call[keep], start_ns[keep], work[keep], (assumed | late)[keep], int(late.sum()))

    @cached_property
    def stream_waits(self) -> StreamWaits:
        """Waits of streams that the trace records."""
        correlation, device, stream = np.array(self.sync_events.waits, dtype=np.int64).reshape(-1, 3).T
        rows = self._rows_of(correlation)
        time_ns = self._start_ns[rows]
        waiting = self._by_stream.first_from(self._group(device, stream), time_ns)
        work = self._recorded(correlation, time_ns)
        known = (rows >= 0) & (waiting >= 0) & (work >= 0)
        known[known] = self._work.group[waiting[known]] != self._work.group[work[known]]
        waiting, work = waiting[known], work[known]
        late = self._work.end_ns[work] > self._work.start_ns[waiting]
        return StreamWaits(waiting[~late], work[~late], int(late.sum()))

    def assumed_stream_waits(self, expected_ns: Ints) -> StreamWaits:
        """Waits that would explain why events start later than ``expected_ns`` (int64 per event)."""
        work = self._work
        waiting = np.flatnonzero((work.launch >= 0) & (work.start_ns > expected_ns))
        candidate = self._ended_elsewhere(waiting)
        explains = candidate >= 0
        explains[explains] = work.end_ns[candidate[explains]] > expected_ns[waiting[explains]]
        waiting, candidate = waiting[explains], candidate[explains]
        same_graph = work.is_graph[waiting] & (work.launch[waiting] == work.launch[candidate])
        earlier = work.called_ns[candidate] < work.called_ns[waiting]
        # Of captured graphs no trace records the waits of streams.
        keep = same_graph if self.sync_events.waits else same_graph | (earlier & self._wait_called(waiting))
        return StreamWaits(waiting[keep], candidate[keep], 0)

    def _ended_elsewhere(self, waiting: Ints) -> Ints:
        """The event that ended last before each started, on another stream of its device; -1 for none."""
        work = self._work
        order = self._by_end
        device, group = work.device[order], work.group[order]
        place = np.arange(len(order))
        differs = np.append([False], (group[1:] != group[:-1]))[: len(order)]
        # The position before a run of one stream in this order.
        elsewhere = np.maximum.accumulate(np.where(differs, place - 1, -1))
        last = np.full(len(waiting), -1, dtype=np.int64)
        for number in distinct_values(work.device[waiting]).tolist():
            first, past = np.searchsorted(device, [number, number], "left")[0], np.searchsorted(device, number, "right")
            mine = np.flatnonzero(work.device[waiting] == number)
            at = first + np.searchsorted(work.end_ns[order[first:past]], work.start_ns[waiting[mine]], "right") - 1
            inside = at >= first
            same = inside & (group[np.maximum(at, 0)] == work.group[waiting[mine]])
            at = np.where(same, elsewhere[np.maximum(at, 0)], at)
            last[mine] = np.where(inside & (at >= first), order[np.maximum(at, 0)], -1)
        return last

    @cached_property
    def _by_end(self) -> Ints:
        """The device events by device and end."""
        return np.lexsort((np.arange(len(self._work)), self._work.end_ns, self._work.device))

    def _wait_called(self, waiting: Ints) -> Bools:
        """Whether a wait for an event was called since the launch before on the stream; True in a trace without such calls."""
        times = np.sort(self._start_ns[self._named(torch_names.STREAM_WAITS)])
        if not len(times):
            return np.ones(len(waiting), dtype=bool)
        called_ns = self._work.called_ns
        before = self._by_stream.last_before(self._work.group[waiting], called_ns[waiting])
        since = np.where(before >= 0, np.searchsorted(times, called_ns[before], "right"), 0) if len(before) else before
        return np.searchsorted(times, called_ns[waiting], "right") > since

    def _named(self, pattern: re.Pattern[str]) -> Ints:
        """Rows of the runtime and driver calls of some names."""
        return self._calls[where(self._events["name"], pattern.search)[self._calls]]

    def _synchronizing(self) -> Iterator[tuple[Ints, Ints, Ints, Bools]]:
        yield from self._of_device(self._named(torch_names.DEVICE_SYNCHRONIZE))
        for pattern, find in (
            (torch_names.STREAM_SYNCHRONIZE, self._of_stream),
            (torch_names.EVENT_SYNCHRONIZE, self._of_event),
        ):
            rows = self._named(pattern)
            yield (rows, self._start_ns[rows], *find(rows))
        rows = self._named(torch_names.RELEASE)
        device_event = self._ended_by(rows)
        # A call that returns at once did not wait.
        waited = device_event >= 0
        waited[waited] = self._work.end_ns[device_event[waited]] > self._start_ns[rows[waited]]
        yield rows, self._start_ns[rows], np.where(waited, device_event, -1), np.ones(len(rows), dtype=bool)

    def _of_device(self, rows: Ints) -> Iterator[tuple[Ints, Ints, Ints, Bools]]:
        """Every stream of the device holds a call back: if the last to end took no time, the others still would."""
        device = self._place(self._work.device, self._launched_last(rows))
        for at in np.unique(self._work.group, return_index=True)[1].tolist():
            mine = rows[device == self._work.device[at]]
            start_ns = self._start_ns[mine]
            latest = self._by_stream.latest_before(np.full(len(mine), self._work.group[at]), start_ns)
            yield mine, start_ns, latest, np.zeros(len(mine), dtype=bool)

    def _of_stream(self, rows: Ints) -> tuple[Ints, Bools]:
        last = self._launched_last(rows)
        group = self._place(self._work.group, last)
        streams = [self.sync_events.streams.get(each) for each in self._correlation[rows].tolist()]
        known = np.array([each is not None for each in streams], dtype=bool)
        if known.any():
            device, stream = np.array([each for each in streams if each is not None], dtype=np.int64).reshape(-1, 2).T
            group[known] = self._group(device, stream)
        return self._by_stream.latest_before(group, self._start_ns[rows]), ~known

    @staticmethod
    def _place(number: Ints, last: Ints) -> Ints:
        """The device or stream of some events, -1 for none; where there is only one, that one."""
        only = number[0] if len(number) and (number == number[0]).all() else -1
        return np.where(last >= 0, number[last], only) if len(number) else last

    def _of_event(self, rows: Ints) -> tuple[Ints, Bools]:
        correlation = self._correlation[rows]
        known = np.array([each in self.sync_events.events for each in correlation.tolist()], dtype=bool)
        device_event = self._ended_by(rows)
        if known.any():
            device_event[known] = self._recorded(correlation[known], self._start_ns[rows[known]])
        return device_event, ~known

    def _ended_by(self, rows: Ints) -> Ints:
        """The event that ended last before each call returned, if it was launched before the call; -1 for none."""
        work = self._work
        device_event = np.full(len(rows), -1, dtype=np.int64)
        if len(work) and len(rows):
            order = np.lexsort((np.arange(len(work)), work.end_ns))
            at = np.searchsorted(work.end_ns[order], self._start_ns[rows] + self._dur_ns[rows], "right") - 1
            last = order[np.maximum(at, 0)]
            device_event = np.where((at >= 0) & (work.called_ns[last] < self._start_ns[rows]), last, -1)
        return device_event

    def _copies(self, expected_ns: Ints) -> Iterator[tuple[Ints, Ints, Ints, Bools]]:
        """Copies that began during their call: it waited for what was before them, and for those that were over."""
        work = self._work
        copies = np.flatnonzero((work.kind == COPY) & (work.launch >= 0))
        is_copy = where(self._events["name"], torch_names.ANY_COPY.search)[work.launch[copies]]
        asynchronous = where(self._events["name"], torch_names.ASYNCHRONOUS_COPY.match)[work.launch[copies]]
        is_copy &= ~(asynchronous & where(self._events["name"], torch_names.NON_BLOCKING_COPY.match)[work.rows[copies]])
        copies = copies[is_copy & (work.end_ns[copies] > work.start_ns[copies])]
        call = work.launch[copies]
        start_ns, end_ns = self._start_ns[call], self._start_ns[call] + self._dur_ns[call]
        before = work.before[copies]
        behind = (before >= 0) & (work.start_ns[copies] <= end_ns)
        behind &= (work.end_ns[before] > start_ns) & (work.end_ns[before] <= work.start_ns[copies])
        over = work.end_ns[copies] <= end_ns
        yield call[behind], start_ns[behind], before[behind], np.zeros(int(behind.sum()), dtype=bool)
        yield call[over], work.start_ns[copies[over]], copies[over], np.zeros(int(over.sum()), dtype=bool)
        yield from self._copies_behind_streams(copies[work.start_ns[copies] <= end_ns], expected_ns)

    def _copies_behind_streams(self, copies: Ints, usual_ns: Ints) -> Iterator[tuple[Ints, Ints, Ints, Bools]]:
        """What copies that began during their call waited for on another stream."""
        work = self._work
        called_ns = work.called_ns
        to_host = copies[~where(self._events["name"], torch_names.COPY_TO_DEVICE.match)[work.rows[copies]]]
        expected_ns, begun = np.full(len(work), np.iinfo(np.int64).max), np.zeros(len(work), dtype=bool)
        expected_ns[to_host] = usual_ns[to_host]
        begun[copies] = True
        for waits, assumed in ((self.stream_waits, False), (self.assumed_stream_waits(expected_ns), True)):
            held = begun[waits.waiting] & (work.end_ns[waits.work] > called_ns[waits.waiting])
            waiting = waits.waiting[held]
            yield work.launch[waiting], called_ns[waiting], waits.work[held], np.full(len(waiting), assumed)

    def _launched_last(self, rows: Ints) -> Ints:
        """The device event launched last before each call by its thread, else by any; -1 for none."""
        if not len(rows):
            return rows
        work, time_ns = self._work, self._start_ns[rows]
        thread, _ = threads_of(self._events, np.concatenate((work.launch, rows)))
        of_work, of_calls = np.split(thread, [len(work)])
        launched = work.launch >= 0
        own = LaunchOrder(work, np.where(launched, of_work, -1)).last_before(of_calls, time_ns)
        any_thread = LaunchOrder(work, np.where(launched, 0, -1)).last_before(np.zeros_like(rows), time_ns)
        return np.where(own >= 0, own, any_thread)

    def _recorded(self, correlation: Ints, else_ns: Ints) -> Ints:
        """The last event launched to the stream that an event was recorded on, before it was recorded; -1 for none."""
        records = [self.sync_events.events[each] for each in correlation.tolist()]
        device, stream, record = np.array(records, dtype=np.int64).reshape(-1, 3).T
        rows = self._rows_of(record)
        time_ns = np.where(rows >= 0, self._start_ns[rows], else_ns) if len(rows) else else_ns
        return self._by_stream.latest_before(self._group(device, stream), time_ns)

    def _rows_of(self, correlation: Ints) -> Ints:
        """The first call with each correlation; -1 for none."""
        calls = self._calls[np.argsort(self._start_ns[self._calls], kind="stable")]
        at = first_places(self._correlation[calls], correlation)
        return np.where(correlation >= 0, taken(calls, at), -1)

    def _group(self, device: Ints, stream: Ints) -> Ints:
        """Number of the work's group; -1 where nothing ran there."""
        first = np.unique(self._work.group, return_index=True)[1]
        number = {
            (int(self._work.device[at]), int(self._work.stream[at])): int(self._work.group[at]) for at in first.tolist()
        }
        pairs = zip(device.tolist(), stream.tolist(), strict=True)
        return np.array([number.get(pair, -1) for pair in pairs], dtype=np.int64)
