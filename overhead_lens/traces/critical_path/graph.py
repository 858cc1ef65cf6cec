"""The graph of a trace over host and device: instants, and what has to pass between them.

=====================  =====================  =============================================================================
dependency             takes                  from .. to
=====================  =====================  =============================================================================
``program_order``      the piece              one cut of a thread .. the next; nothing if the thread waits
``device_event``       the event              its start .. its end
``stream_order``       the usual gap          end of the event before in its stream .. its start
``stream_wait``        the usual gap          end of an event of another stream .. start of the event that waited for it
``launch``             the usual latency      the launching call's return .. start of what it launched
``synchronization``    nothing                end of a device event .. where it let the blocked call go on
``backward``           nothing                the calling thread .. the autograd threads, when a pass begins, and back at its end
=====================  =====================  =============================================================================

A launch is found by its correlation, so a graph launch is the launch of all its events. Device work that begins during the call
depends on the instant of the call at which its first event began.

Usual latencies come from launches to an idle stream and device, usual gaps from events that ended after the next one was
launched. Each counts as it was recorded, up to the 90th percentile of its device; where an event had something
else to wait for, up to the median. An event that starts later than its dependencies explain
keeps the remainder as a delay of its own.

Every dependency goes forward in time. Two clocks that disagree would close cycles: a dependency that would go backward is left
out and counted. Order on a thread and in a stream is of one clock and stays; what is left out is between two clocks. At one
instant ends of device events come first, then the host, then starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from overhead_lens.readers.kineto.model import Trace
from overhead_lens.stats.values import Bools, Ints, numbered_rows, taken
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.traces.critical_path.lanes import Chain, Codes, Threads, chain, nearest
from overhead_lens.traces.critical_path.model import GAP, KINDS, LATENCY, QUEUE, UNEXPLAINED
from overhead_lens.traces.critical_path.string_table import StringTable
from overhead_lens.traces.critical_path.waits import StreamWaits, Waits
from overhead_lens.traces.critical_path.work import PathWork, device_work
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.intervals import NOTHING, distinct_values, is_among
from overhead_lens.traces.launches import Linked
from overhead_lens.traces.timeline import ordered

EDGES = (
    "program_order",
    "device_event",
    "stream_order",
    "stream_wait",
    "launch",
    "synchronization",
    "backward",
    "assumed_stream_wait",
    "assumed_synchronization",
)
"""From the most to the least certain."""

PROGRAM, EVENT, STREAM, STREAM_WAIT, LAUNCH, SYNC, BACKWARD, ASSUMED_WAIT, ASSUMED_SYNC = range(len(EDGES))

_LATENCY, _QUEUE, _GAP, _UNEXPLAINED = (KINDS.index(kind) for kind in (LATENCY, QUEUE, GAP, UNEXPLAINED))
_FIRST_DEVICE_KIND = len(HOST_CATEGORIES)
_NO_LABEL = 0
_ENDS, _AUTOGRAD, _HOST, _AUTOGRAD_BEGINS, _STARTS = range(5)


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order in which every edge goes forward; times are int64, ``kind`` int8, other numbers int32.

    Attributes:
        time_ns: Per node, ascending.
        lane: Per node: number in ``lanes``.
        decides: Per node, bool: whether the window's end waits for it (the busiest thread and the devices).
        event: Per node: position in ``work`` of the event that ends there; -1 for others.
        first: ``first[v]:first[v + 1]`` are the edges that lead to node ``v``.
        source: Per edge: its earlier node.
        kind: Per edge: number in ``EDGES``.
        weight_ns: Per edge: its time, counted from the earlier node.
        label: Per edge: number in ``labels``.
        delay_ns, delay_label: Per node: the unexplained delay before it, after all its dependencies.
        lanes: Threads and streams by name.
        edge_counts, broken: Edges by kind; those left out, since the clocks contradict them.
        synchronization_events: How many the trace has.
    """

    time_ns: Ints
    lane: Ints
    decides: Bools
    event: Ints
    first: Ints
    source: Ints
    kind: Ints
    weight_ns: Ints
    label: Ints
    delay_ns: Ints
    delay_label: Ints
    labels: StringTable
    lanes: Sequence[str]
    work: PathWork
    edge_counts: Mapping[str, int]
    broken: Mapping[str, int]
    synchronization_events: int


def graph_of(trace: Trace, host: HostEvents, linked: Linked, threads: Threads) -> Graph:
    """The graph of a trace; ``threads`` with the busiest first."""
    return _Builder(trace, host, linked, threads).graph()


@dataclass(frozen=True, slots=True)
class _Edges:
    """Edges of one kind between nodes by number; weights and labels as rows (kind, name, operator, module)."""

    kind: int
    source: Ints
    target: Ints
    weight_ns: Ints
    what: Ints | Codes


class _Builder:
    """Builds a graph: nodes of the threads first, then starts and ends of device events."""

    def __init__(self, trace: Trace, host: HostEvents, linked: Linked, threads: Threads) -> None:
        self._events = trace.columns
        self._threads = threads
        self._host = host
        self.work = device_work(trace.columns, linked)
        self._waits = Waits(trace, self.work)
        self._start_ns, self._dur_ns = trace.columns["start_ns"], trace.columns["dur_ns"]
        self._launch_ns = self._launch_points()
        self._host_waits = self._waits.host_waits(self._unhindered_ns())
        self._passes = next(iter(threads.values())).passes if threads else NOTHING
        self._around = nearest(host)
        self._chains = self._made_chains()
        lengths = [len(one.time_ns) for one in self._chains]
        self._offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        self._broken: dict[str, int] = {}
        self._names = [*next(iter(threads.values())).names] if threads else [*trace.columns["name"].categories]

    def graph(self) -> Graph:
        work, hosts = self.work, int(self._offsets[-1])
        lasting = work.end_ns > work.start_ns
        starts = hosts + np.arange(len(work))
        # An event without length is one node.
        ends = np.where(lasting, hosts + len(work) + np.arange(len(work)), starts)
        time_ns = np.concatenate([*(one.time_ns for one in self._chains), work.start_ns, work.end_ns]).astype(np.int64)
        used = np.ones(len(time_ns), dtype=bool)
        used[hosts + len(work) :] = lasting
        edges = [*self._program(), *self._backward(), self._device(starts, ends), self._stream(starts, ends)]
        edges += [*self._launches(starts), *self._synchronizations(ends)]
        stream_waits = self._waits.stream_waits
        self._break(STREAM_WAIT, stream_waits.contradicted)
        edges.append(self._waited(STREAM_WAIT, stream_waits, starts, ends))
        assumed = self._waits.assumed_stream_waits(self._expected(edges, starts, time_ns))
        edges.append(self._waited(ASSUMED_WAIT, assumed, starts, ends))
        return self._ordered(edges, time_ns, used, starts, ends)

    def _launch_points(self) -> Ints:
        """For each device event, when its launch released it: the call's return, or an earlier start of its first event."""
        work = self.work
        known = work.launch >= 0
        if not known.any():
            return work.start_ns
        first_ns = np.full(len(self._start_ns), np.iinfo(np.int64).max)
        np.minimum.at(first_ns, work.launch[known], work.start_ns[known])
        point_ns = np.minimum(self._start_ns + self._dur_ns, first_ns)
        # At one instant a node that is start and end of an event comes before the host's.
        short = work.launch[known & (work.end_ns == work.start_ns)]
        point_ns[short] = np.where(point_ns == first_ns, self._start_ns, point_ns)[short]
        return np.where(known, point_ns[work.launch], work.start_ns)

    def _made_chains(self) -> list[Chain]:
        """The chain of each thread; none in a trace without length, whose threads have no pieces."""
        if not all(len(pieces.start_ns) for pieces in self._threads.values()):
            return []
        waits, work = self._host_waits, self.work
        let_go_ns = np.maximum(work.end_ns[waits.work], waits.start_ns)
        launched = work.launch >= 0
        rows = np.concatenate((work.launch[launched], waits.call, waits.call))
        times = np.concatenate((self._launch_ns[launched], waits.start_ns, let_go_ns))
        thread = self._thread_of(rows)
        waiting = self._thread_of(waits.call)
        chains = []
        for number, pieces in enumerate(self._threads.values()):
            cuts = [times[thread == pieces.timeline.number]]
            if len(self._passes.start_ns) and (number == 0 or pieces.timeline.is_autograd):
                cuts += [self._passes.start_ns, self._passes.end_ns]
            inside = distinct_values(np.concatenate(cuts))
            inside = inside[(inside >= pieces.start_ns[0]) & (inside <= pieces.start_ns[-1] + pieces.dur_ns[-1])]
            mine = waiting == pieces.timeline.number
            blocked = waits.start_ns[mine], let_go_ns[mine]
            chains.append(chain(pieces, self._around, inside, blocked, self._passes, is_busiest=number == 0))
        return chains

    def _thread_of(self, rows: Ints) -> Ints:
        """Number of the thread of host events by their rows."""
        return taken(self._host.thread, self._host.places(rows))

    def _nodes_at(self, rows: Ints, time_ns: Ints) -> Ints:
        """Nodes at given times on the threads of host events; each is a cut of its thread."""
        thread = self._thread_of(rows)
        nodes = np.zeros(len(rows), dtype=np.int64)
        for number, pieces in enumerate(self._threads.values()):
            mine = np.flatnonzero(thread == pieces.timeline.number)
            if len(mine):
                nodes[mine] = self._offsets[number] + self._chains[number].at(time_ns[mine])
        return nodes

    def _program(self) -> list[_Edges]:
        edges = []
        for offset, one in zip(self._offsets[:-1].tolist(), self._chains, strict=True):
            source = np.arange(offset, offset + len(one.weight_ns), dtype=np.int32)
            edges.append(_Edges(PROGRAM, source, source + 1, one.weight_ns, one.label))
        return edges

    def _backward(self) -> list[_Edges]:
        edges = []
        times_ns = np.stack((self._passes.start_ns, self._passes.end_ns))
        for number, pieces in enumerate(self._threads.values()):
            if number and pieces.timeline.is_autograd and times_ns.size:
                main, other = (self._chains[at].at(times_ns) + self._offsets[at] for at in (0, number))
                edges.append(self._plain(BACKWARD, main[0], other[0]))
                edges.append(self._plain(BACKWARD, other[1], main[1]))
        return edges

    def _device(self, starts: Ints, ends: Ints) -> _Edges:
        work = self.work
        lasting = np.flatnonzero(work.end_ns > work.start_ns)
        return _Edges(
            EVENT, starts[lasting], ends[lasting], (work.end_ns - work.start_ns)[lasting], self._what(lasting)
        )

    def _what(self, chosen: Ints) -> Ints:
        """Kind, name, operator and module of device events."""
        work = self.work
        kind = _FIRST_DEVICE_KIND + work.kind[chosen]
        return np.column_stack((kind, work.name[chosen], *self._caller(chosen)))

    def _caller(self, chosen: Ints) -> tuple[Ints, Ints]:
        """Innermost operator and module around the launches of device events."""
        event = self._host.places(self.work.launch[chosen])
        operator, module = (taken(codes, event) for codes in self._around)
        return operator, module

    def _stream(self, starts: Ints, ends: Ints) -> _Edges:
        """Edges from the previous event of the stream; an event that is still running counts up to the start of the next."""
        work = self.work
        mine = np.flatnonzero(work.before >= 0)
        before = work.before[mine]
        over = work.end_ns[before] <= work.start_ns[mine]
        source = np.where(over, ends[before], starts[before])
        gap_ns = np.minimum(work.start_ns[mine] - work.end_ns[before], self._gap_ns[mine])
        weight_ns = np.where(over, gap_ns, work.start_ns[mine] - work.start_ns[before])
        what = np.where(over[:, None], self._lost(_GAP, mine), self._what(before))
        return _Edges(STREAM, source, starts[mine], weight_ns, what)

    def _waited(self, kind: int, waits: StreamWaits, starts: Ints, ends: Ints) -> _Edges:
        work = self.work
        gap_ns = np.minimum(work.start_ns[waits.waiting] - work.end_ns[waits.work], self._gap_ns[waits.waiting])
        return _Edges(kind, ends[waits.work], starts[waits.waiting], gap_ns, self._lost(_GAP, waits.waiting))

    def _launches(self, starts: Ints) -> list[_Edges]:
        work = self.work
        self._break(LAUNCH, work.contradicted)
        known = np.flatnonzero(work.launch >= 0)
        if not len(known) or not self._chains:
            return []
        latency_ns = work.start_ns[known] - self._launch_ns[known]
        weight_ns = np.minimum(latency_ns, self._latency_ns()[known])
        source = self._nodes_at(work.launch[known], self._launch_ns[known])
        return [_Edges(LAUNCH, source, starts[known], weight_ns, self._lost(_LATENCY, known))]

    def _lost(self, kind: int, chosen: Ints) -> Ints:
        """Label rows for lost time before device events, which has no operator."""
        operator, module = self._caller(chosen)
        operator = np.full_like(operator, -1)
        return np.column_stack((np.full(len(chosen), kind), self.work.name[chosen], operator, module))

    @cached_property
    def _reached_ns(self) -> Ints:
        """The time at which the stream of each event became idle."""
        work = self.work
        return np.where(work.before >= 0, work.end_ns[work.before], np.iinfo(np.int64).min)

    def _latency_ns(self) -> Ints:
        """The usual latency between launch and start, per event."""
        work = self.work
        free = (work.launch >= 0) & (self._reached_ns <= self._launch_ns) & self._idle_at(self._launch_ns)
        by_launch = np.lexsort((work.start_ns, work.launch))
        launch = work.launch[by_launch]
        first = np.zeros(len(work), dtype=bool)
        first[by_launch[np.concatenate(([True], launch[1:] != launch[:-1]))]] = True
        return self._usual(work.start_ns - self._launch_ns, free & first, free)

    def _unhindered_ns(self) -> Ints:
        """By when each event would start by its call and its stream: after twice the median latency, and the usual gap."""
        work = self.work
        free = (work.launch >= 0) & (self._reached_ns <= work.called_ns) & self._idle_at(work.called_ns)
        usual_ns = self._usual(work.start_ns - work.called_ns, free, np.zeros(len(work), dtype=bool))
        expected_ns: Ints = np.maximum(work.called_ns + 2 * usual_ns, self._reached_ns + self._gap_ns)
        return expected_ns

    def _idle_at(self, times_ns: Ints) -> Bools:
        """Whether the device of each event was idle at a time."""
        work = self.work
        idle = np.zeros(len(work), dtype=bool)
        for device in distinct_values(work.device).tolist():
            mine = np.flatnonzero(work.device == device)
            by_start = mine[np.argsort(work.start_ns[mine], kind="stable")]
            reached_ns = np.maximum.accumulate(work.end_ns[by_start])
            before = np.searchsorted(work.start_ns[by_start], times_ns[mine], "left") - 1
            idle[mine] = (before < 0) | (reached_ns[before] <= times_ns[mine])
        return idle

    @cached_property
    def _gap_ns(self) -> Ints:
        """The usual gap between the previous event's end and the start, per event."""
        work = self.work
        behind = (work.launch >= 0) & (self._reached_ns >= self._launch_ns) & (self._reached_ns <= work.start_ns)
        waits = behind | (work.launch < 0)
        return self._usual(work.start_ns - np.minimum(self._reached_ns, work.start_ns), behind, waits)

    def _usual(self, ns: Ints, sample: Bools, full: Bools) -> Ints:
        """Per event, the 90th percentile (``full``) or the median of its device's sample; 0 without a sample."""
        work = self.work
        usual_ns = np.zeros(len(work), dtype=np.int64)
        for device in distinct_values(work.device).tolist():
            mine = work.device == device
            ordered = np.sort(ns[mine & sample])
            if len(ordered):
                high, middle = (int(ordered[(len(ordered) * share + 9) // 10 - 1]) for share in (9, 5))
                usual_ns[mine] = np.where(full[mine], high, middle)
        return usual_ns

    def _synchronizations(self, ends: Ints) -> list[_Edges]:
        waits, work = self._host_waits, self.work
        self._break(SYNC, waits.contradicted)
        if not len(waits.call) or not self._chains:
            return []
        target = self._nodes_at(waits.call, np.maximum(work.end_ns[waits.work], waits.start_ns))
        source = ends[waits.work]
        return [
            self._plain(kind, source[chosen], target[chosen])
            for kind, chosen in ((SYNC, ~waits.assumed), (ASSUMED_SYNC, waits.assumed))
        ]

    def _plain(self, kind: int, source: Ints, target: Ints) -> _Edges:
        """Edges that take no time of their own."""
        return _Edges(kind, source, target, np.zeros(len(source), dtype=np.int64), self._nothing(len(source)))

    @staticmethod
    def _nothing(count: int) -> Ints:
        return np.tile(np.array([[_UNEXPLAINED, -1, -1, -1]], dtype=np.int32), (count, 1))

    def _break(self, kind: int, count: int) -> None:
        if count:
            self._broken[EDGES[kind]] = self._broken.get(EDGES[kind], 0) + count

    def _expected(self, edges: Sequence[_Edges], starts: Ints, time_ns: Ints) -> Ints:
        """The start of each device event that its dependencies explain."""
        expected = np.full(len(starts), np.iinfo(np.int64).min)
        if len(starts):
            for one in edges:
                mine = (one.target >= starts[0]) & (one.target <= starts[-1])
                np.maximum.at(expected, one.target[mine] - starts[0], (time_ns[one.source] + one.weight_ns)[mine])
        return expected

    def _ordered(self, edges: Sequence[_Edges], time_ns: Ints, used: Bools, starts: Ints, ends: Ints) -> Graph:
        """The graph with its nodes in order, and without edges that would go backward."""
        rank, second, lane, decides = self._ranks()
        order = ordered(time_ns, rank, second)
        order = order[used[order]]
        place = np.full(len(time_ns), -1, dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        source = np.concatenate([place[one.source] for one in edges])
        target = np.concatenate([place[one.target] for one in edges])
        weight_ns = np.concatenate([one.weight_ns for one in edges])
        kind = np.repeat(np.array([one.kind for one in edges], dtype=np.int8), [len(one.source) for one in edges])
        forward = source < target
        for number in distinct_values(kind[~forward]).tolist():
            self._break(number, int((kind[~forward] == number).sum()))
        by_target = np.flatnonzero(forward)
        by_target = by_target[ordered(target[by_target] * np.int64(len(EDGES)) + kind[by_target], source[by_target])]
        source, target, kind, weight_ns = (column[by_target] for column in (source, target, kind, weight_ns))
        time_ns = time_ns[order]
        first = np.cumsum(np.bincount(target + 1, minlength=len(order) + 1))
        delayed, delay_ns = self._delays(time_ns, source, target, weight_ns, place[starts])
        what = [self._nothing(1), self._lost(_QUEUE, delayed), *(one.what for one in edges)]
        label, labels = self._labelled(np.concatenate(what, dtype=np.int32, casting="same_kind"))
        delay_label = np.zeros(len(order), dtype=np.int32)
        delay_label[place[starts[delayed]]] = label[1 : len(delayed) + 1]
        event = np.full(len(order), -1, dtype=np.int32)
        event[place[ends]] = np.arange(len(ends))
        counts = np.bincount(kind, minlength=len(EDGES)).tolist()
        return Graph(
            time_ns,
            lane[order],
            decides[order],
            event,
            first,
            source,
            kind,
            weight_ns,
            label[len(delayed) + 1 :][by_target],
            delay_ns,
            delay_label,
            labels,
            self._lane_names(),
            self.work,
            {name: count for name, count in zip(EDGES, counts, strict=True) if count},
            dict(sorted(self._broken.items())),
            self._waits.sync_events.count,
        )

    def _ranks(self) -> tuple[Ints, Ints, Ints, Bools]:
        """Per node: two sort keys within one instant, its lane, and whether the window's end waits for it."""
        work, hosts, passes = self.work, int(self._offsets[-1]), self._passes.start_ns
        lasting = work.end_ns > work.start_ns
        position = np.arange(len(work), dtype=np.int32)
        keys = list(self._threads)
        spelled = np.argsort(np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)).astype(np.int32)
        thread = np.repeat(np.arange(len(self._chains), dtype=np.int32), np.diff(self._offsets))
        autograd = np.array([pieces.timeline.is_autograd for pieces in self._threads.values()] or [False])
        autograd[0] = False
        begins = np.concatenate([np.zeros(0, bool), *(is_among(one.time_ns, passes) for one in self._chains)])
        host = np.where(autograd[thread], np.where(begins, _AUTOGRAD_BEGINS, _AUTOGRAD), _HOST) if hosts else thread
        ranks = (host, np.where(lasting, _STARTS, _ENDS), np.full(len(work), _ENDS))
        rank = np.concatenate(ranks, dtype=np.int8, casting="same_kind")
        second = np.concatenate((spelled[thread] if hosts else thread, position, position))
        lane = np.concatenate((thread, *(len(self._chains) + work.group,) * 2), dtype=np.int32)
        decides = np.concatenate((thread == 0, np.ones(2 * len(work), dtype=bool)))
        return rank, second, lane, decides

    def _delays(self, time_ns: Ints, source: Ints, target: Ints, weight_ns: Ints, starts: Ints) -> tuple[Ints, Ints]:
        """Device events with a known launch that start later than their dependencies explain; that delay per node."""
        delay_ns = np.zeros(len(time_ns), dtype=np.int64)
        begins = np.full(len(time_ns), np.iinfo(np.int64).min)
        np.maximum.at(begins, target, time_ns[source] + weight_ns)
        late = (self.work.launch >= 0) & (begins[starts] > np.iinfo(np.int64).min) & (begins[starts] < time_ns[starts])
        delayed = np.flatnonzero(late)
        delay_ns[starts[delayed]] = time_ns[starts[delayed]] - begins[starts[delayed]]
        return delayed, delay_ns

    def _labelled(self, what: Codes) -> tuple[Ints, StringTable]:
        """The distinct rows, and the number of each; the first row is number 0."""
        number, first = numbered_rows(*what.T)
        kind, name, operator, module = what[first].astype(np.int64).T
        return number.astype(np.int32), StringTable(kind, name, operator, module, self._names)

    def _lane_names(self) -> list[str]:
        work = self.work
        first = np.unique(work.group, return_index=True)[1].tolist()
        streams = [f"device {work.device[at]} stream {work.stream[at]}" for at in first]
        return [*(f"thread {tid}" if tid else "thread" for _, tid in self._threads), *streams]
