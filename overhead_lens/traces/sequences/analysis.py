"""Sequences of launches and operators that repeat in a trace, and what joining or capturing them would save at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Bools, Ints, are_first, taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import passing
from overhead_lens.traces.host import HostEvents, of_each
from overhead_lens.traces.intervals import distinct_values, union
from overhead_lens.traces.launches import Linked
from overhead_lens.traces.sequences.model import LAUNCHES, OPERATORS, RepeatedSequence
from overhead_lens.traces.sequences.repeats import Repeat, repeats
from overhead_lens.traces.timeline import ordered

_MOST = 10
_MOST_NAMES = 16
_MORE_OFTEN = 2
_FEWEST = 4  # two, twice
_MOST_SUM = 2.0**62
_NO_CALL = np.iinfo(np.int64).max
_MARKS: tuple[Callable[[str], object], ...] = (
    torch_names.SCOPE.match,
    lambda name: name.startswith(torch_names.MODULE_PREFIX),
    torch_names.FUNCTION.match,
)


@dataclass(frozen=True, slots=True)
class Repeated:
    """A sequence with the times of its repetitions: int64 arrays of shape ``(count,)``, lane after lane."""

    sequence: RepeatedSequence
    start_ns: Ints
    end_ns: Ints


@dataclass(frozen=True, slots=True)
class Items:
    """What may repeat, lane after lane, each in order of start; int64 arrays of shape ``(n,)``.

    Attributes:
        lane: Number in ``lanes``, ascending.
        call_ns: Time of the launching calls without their waits for the device; -1 for an item that none belongs to.
        gap_ns: Time from the end of it and all before it in its lane to the start of the next.
        idle_ns: The part of it in which the whole device, or the thread, had nothing to do.
        idle_from: Idle time of the device before that; gaps of two streams in which it idles once overlap on this axis.
        thread, called_ns: Host thread as a number in ``HostEvents.threads`` and time of the call; -1 where unknown.
    """

    kind: str
    name: Ints
    lane: Ints
    start_ns: Ints
    end_ns: Ints
    call_ns: Ints
    gap_ns: Ints
    idle_ns: Ints
    idle_from: Ints
    graph: Ints
    thread: Ints
    called_ns: Ints
    names: Sequence[str]
    lanes: Sequence[str]


def sequences(events: Events, host: HostEvents, linked: Linked, waits_from_ns: Ints) -> tuple[Repeated, ...]:
    """Sequences of launches on streams and operators on threads by savings, at most ``_MOST`` of each; see ``waits_from``."""
    waits = passing(host.attributions, lambda each: each.category == "wait")[host.attribution]
    # -1 for a call that does nothing but wait.
    launching_ns = np.where(waits, -1, waits_from_ns - host.start_ns)
    kinds = _launches(events, host, linked, launching_ns), _operators(host, linked, launching_ns)
    groups = [_repeated(items, host) for items in kinds]
    return tuple(sorted((one for several in groups for one in several), key=_rank))


def _rank(repeated: Repeated) -> tuple[int, int, str, int, str]:
    """Sort key: the costliest first, then the longest."""
    sequence = repeated.sequence
    return -sequence.saved_ns, -sequence.length, sequence.kind, sequence.start_ns, sequence.lane


def _launches(events: Events, host: HostEvents, linked: Linked, launching_ns: Ints) -> Items:
    """Device events stream by stream."""
    start_ns, dur_ns = events["start_ns"], events["dur_ns"]
    device, stream = (events[name][linked.rows] for name in ("device", "stream"))
    name = events["name"]
    codes = name.codes[linked.rows].astype(np.int64)
    starts, durations = start_ns[linked.rows], dur_ns[linked.rows]
    order = ordered(starts, durations, _by_text(codes, list(name.categories)))
    for key in (stream, device):
        order = order[np.argsort(key[order], kind="stable")]
    launch, starts = linked.launch[order], starts[order]
    ends = starts + durations[order]
    lane, first = _lanes(device[order], stream[order])
    call = host.places(launch)
    known = call >= 0
    # A call that launched several events (a graph) counts once.
    pays = known & are_first(launch)
    gap_ns = _gaps(lane, starts, ends)
    # Within a graph the device goes from one event to the next by itself.
    within = linked.is_graph[order][:-1] & (launch[1:] == launch[:-1])
    gap_ns[:-1][within] = 0
    idle_from, idle_ns = _idle(device[order], starts, ends, gap_ns)
    return Items(
        LAUNCHES,
        codes[order],
        lane,
        starts,
        ends,
        np.where(pays, taken(launching_ns, call), -1),
        gap_ns,
        idle_ns,
        idle_from,
        linked.is_graph[order].astype(np.int64),
        taken(host.thread, call),
        np.where(known, start_ns[launch], -1) if len(start_ns) else launch,
        list(name.categories),
        [f"device {device[order][at]} stream {stream[order][at]}" for at in first.tolist()],
    )


def _by_text(codes: Ints, names: Sequence[str]) -> Ints:
    """The place of each name among those used, so that what starts together stands in one order in every file."""
    used = np.flatnonzero(np.bincount(codes))
    place = np.zeros(len(names) + 1, dtype=np.int64)
    place[sorted(used.tolist(), key=lambda code: names[code])] = np.arange(len(used))
    return place[codes]


def _lanes(*keys: Ints) -> tuple[Ints, Ints]:
    """Number of each run of equal keys, and where it begins."""
    changes = np.zeros(len(keys[0]), dtype=bool)
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    changes[:1] = True
    return np.cumsum(changes) - 1, np.flatnonzero(changes)


def _gaps(lane: Ints, start_ns: Ints, end_ns: Ints) -> Ints:
    """Time from the end of each and all before it in its lane to the start of the next; 0 at the end of a lane."""
    gaps = np.zeros(len(lane), dtype=np.int64)
    reached = _reached(lane, end_ns)
    gaps[:-1] = np.where(lane[1:] == lane[:-1], np.maximum(start_ns[1:] - reached[:-1], 0), 0)
    return gaps


def _idle(device: Ints, start_ns: Ints, end_ns: Ints, gap_ns: Ints) -> tuple[Ints, Ints]:
    """The idle time of its device before the gap after each, and in it; devices one after the other."""
    before, idle_ns = np.zeros((2, len(device)), dtype=np.int64)
    _, edges = _lanes(device)
    passed = 0
    for mine in map(slice, edges, [*edges[1:], len(device)]):
        busy = union(start_ns[mine], end_ns[mine] - start_ns[mine])
        ends = np.where(gap_ns[mine] > 0, np.append(start_ns[mine][1:], 0), start_ns[mine])
        starts = ends - gap_ns[mine]
        first = int(start_ns[mine].min())
        before[mine] = passed + starts - first - busy.before(starts)
        idle_ns[mine] = gap_ns[mine] - (busy.before(ends) - busy.before(starts))
        passed += int(end_ns[mine].max()) - first
    return before, idle_ns


def _reached(lane: Ints, end_ns: Ints) -> Ints:
    """Latest end so far within each lane."""
    reached: Ints = end_ns.copy()
    edges = [*_lanes(lane)[1].tolist(), len(lane)]
    for first, last in pairwise(edges):
        np.maximum.accumulate(reached[first:last], out=reached[first:last])
    return reached


def _operators(host: HostEvents, linked: Linked, launching_ns: Ints) -> Items:
    """Operators thread by thread that no other operator is around; what names no dispatcher's operator is passed over."""
    named = passing(host.names, _MARKS[0])[host.name]
    able = np.flatnonzero(host.operator & named)
    end_ns = host.start_ns + host.dur_ns
    text = _by_text(host.name[able], host.names)
    able = able[ordered(host.start_ns[able], -end_ns[able], text)]
    # Small integers are sorted by radix.
    able = able[np.argsort(host.thread[able].astype(np.min_scalar_type(len(host.threads))), kind="stable")]
    top = able[_outermost(host.thread[able], host.start_ns[able], end_ns[able])]
    calls = host.among(linked.launch)
    calls = calls[launching_ns[calls] >= 0]
    lane, first = _lanes(host.thread[top])
    gap_ns = _gaps(lane, host.start_ns[top], end_ns[top])
    return Items(
        OPERATORS,
        host.name[top],
        lane,
        host.start_ns[top],
        end_ns[top],
        _time_inside(host, top, calls, launching_ns),
        gap_ns,
        gap_ns,
        np.cumsum(gap_ns) - gap_ns,
        np.zeros(len(top), dtype=np.int64),
        host.thread[top],
        host.start_ns[top],
        host.names,
        [f"thread {host.threads[int(host.thread[top[at]])][1]}" for at in first.tolist()],
    )


def _outermost(thread: Ints, start_ns: Ints, end_ns: Ints) -> Bools:
    """Which begin after all that began before them on their thread have ended."""
    outermost = np.ones(len(thread), dtype=bool)
    reached = _reached(thread, end_ns)
    outermost[1:] = (thread[1:] != thread[:-1]) | (start_ns[1:] >= reached[:-1])
    return outermost


def _time_inside(host: HostEvents, operators: Ints, calls: Ints, launching_ns: Ints) -> Ints:
    """Time that the launching calls take that begin inside each operator; -1 for none."""
    inside_ns, count = np.full(len(operators), -1, dtype=np.int64), len(host.threads)
    for mine, own in zip(of_each(host.thread[operators], count), of_each(host.thread[calls], count), strict=True):
        begun = calls[own][np.argsort(host.start_ns[calls[own]], kind="stable")]
        total = np.concatenate(([0], np.cumsum(launching_ns[begun])))
        starts_ns, durations_ns = host.start_ns[operators[mine]], host.dur_ns[operators[mine]]
        first, last = np.searchsorted(host.start_ns[begun], (starts_ns, starts_ns + durations_ns), "left")
        inside_ns[mine] = np.where(last > first, total[last] - total[first], -1)
    return inside_ns


def _repeated(items: Items, host: HostEvents) -> list[Repeated]:
    """The repeats with the largest savings; a part of a repeat is dropped unless it occurs more often."""
    if len(items.name) < _FEWEST or _beyond_int64(items):
        return []
    tokens, names = _tokens(items)
    spared = _Spared(items, tokens)
    scored = sorted(
        ((spared.bound(repeat), repeat) for repeat in repeats(names, spared.weights)),
        key=lambda pair: (-pair[0].most_ns, -pair[1].length, int(pair[1].places[0])),
    )
    selected = list(islice(_distinct(scored, _alone(items)[tokens]), _MOST))
    begun = [tokens[repeat.places] for _, repeat in selected]
    first = np.array([at[np.argmin(items.start_ns[at])] for at in begun], dtype=np.int64)
    places = _around(host, items.thread[first], items.called_ns[first]) if selected else []
    return [
        _with_times(repeat, tokens, bound, items, at, place)
        for (bound, repeat), at, place in zip(selected, first.tolist(), places, strict=True)
    ]


def _beyond_int64(items: Items) -> bool:
    """Whether damaged times are too long to be added up."""
    times = (items.end_ns - items.start_ns, items.call_ns, items.gap_ns)
    return any(float(ns.sum(dtype=np.float64)) > _MOST_SUM for ns in times)


def _tokens(items: Items) -> tuple[Ints, Ints]:
    """The items, and after each lane its last once more as its end; their names, each end's its own: no repeat crosses it."""
    last = np.flatnonzero(np.append(items.lane[1:] != items.lane[:-1], True))
    ends = len(items.names) + np.arange(len(last))
    return np.insert(np.arange(len(items.name)), last + 1, last), np.insert(items.name, last + 1, ends)


def _alone(items: Items) -> Bools:
    """Whether each has the same name as the one before it in its lane."""
    same = np.zeros(len(items.name), dtype=bool)
    same[1:] = (items.name[1:] == items.name[:-1]) & (items.lane[1:] == items.lane[:-1])
    return same


class _Bound(NamedTuple):
    """What one repeat could save in all of its repetitions."""

    launch_ns: int
    gap_ns: int
    idle_ns: int

    @property
    def most_ns(self) -> int:
        return max(self.launch_ns, self.idle_ns)


class _Spared:
    """Possible savings summed over runs of tokens."""

    def __init__(self, items: Items, tokens: Ints) -> None:
        self._items, self._tokens = items, tokens
        calls, idle = items.call_ns[tokens], items.idle_ns[tokens]
        self.weights = np.maximum(np.maximum(calls, 0), idle)
        sums = (np.maximum(calls, 0), items.gap_ns[tokens], idle)
        self._calls, self._gaps, self._idle = (np.concatenate(([0], np.cumsum(ns))) for ns in sums)
        self._shortest = np.append(np.where(calls >= 0, calls, _NO_CALL), _NO_CALL)

    def bound(self, repeat: Repeat) -> _Bound:
        """Launch time and gaps that are inside of all repetitions, but for the shortest launch of each."""
        starts, ends = repeat.places, repeat.places + repeat.length
        shortest = np.minimum.reduceat(self._shortest, np.column_stack((starts, ends)).ravel())[::2]
        remaining_ns = np.where(shortest == _NO_CALL, 0, shortest)
        return _Bound(
            int((self._calls[ends] - self._calls[starts] - remaining_ns).sum()),
            int((self._gaps[ends - 1] - self._gaps[starts]).sum()),
            self._idle_inside(repeat),
        )

    def _idle_inside(self, repeat: Repeat) -> int:
        """Idle time in all gaps; what several streams wait through together once."""
        starts, ends = repeat.places, repeat.places + repeat.length
        lane = self._items.lane[self._tokens[starts]]
        if lane[0] == lane[-1]:
            return int((self._idle[ends - 1] - self._idle[starts]).sum())
        inside = self._tokens[(starts[:, None] + np.arange(repeat.length - 1)).ravel()]
        return union(self._items.idle_from[inside], self._items.idle_ns[inside]).total_ns


def _distinct(scored: Sequence[tuple[_Bound, Repeat]], alike: Bools) -> Iterator[tuple[_Bound, Repeat]]:
    """Drop what saves nothing, and what lies mostly in a sequence that was reported and is there less than twice as often.

    Args:
        scored: The most first.
        alike: Whether each token has the name of the one before: a part of a run of one name is the same sequence, however often.
    """
    often = np.zeros(len(alike), dtype=np.int64)
    for bound, repeat in scored:
        if bound.most_ns <= 0:
            return
        inside = repeat.places[:, None] + np.arange(repeat.length)
        reported_count = often[inside]
        is_run = bool(alike[inside[0, 1:]].all())
        new = (reported_count == 0) if is_run else len(repeat.places) >= _MORE_OFTEN * reported_count
        if 2 * int(new.sum()) > inside.size:
            often[inside] = np.maximum(reported_count, len(repeat.places))
            yield bound, repeat


def _with_times(
    repeat: Repeat, tokens: Ints, bound: _Bound, items: Items, first: int, place: Sequence[str]
) -> Repeated:
    at = tokens[repeat.places[:, None] + np.arange(repeat.length)]
    operator, module, line = place
    sequence = RepeatedSequence(
        items.kind,
        items.lanes[items.lane[first]],
        len(distinct_values(items.lane[at[:, 0]])),
        tuple(items.names[code] for code in items.name[at[0, :_MOST_NAMES]].tolist()),
        repeat.length,
        len(repeat.places),
        int(items.start_ns[first]),
        int((items.end_ns[at] - items.start_ns[at]).sum()),
        *bound,
        int(items.graph[at].sum()),
        "" if items.kind == OPERATORS else operator,
        module,
        line,
    )
    return Repeated(sequence, items.start_ns[at[:, 0]], items.end_ns[at].max(axis=1))


def _around(host: HostEvents, thread: Ints, at_ns: Ints) -> list[list[str]]:
    """Outermost operator, innermost module and Python function outside of torch that are open on threads at some times."""
    around, names = host.around, host.names
    first = around.open_at(thread, at_ns).tolist()
    operator, module, line = (passing(host.names, test)[host.name] for test in _MARKS)
    scopes = around.nearest_of(first, operator & host.operator, outermost=True)
    near = (scopes, around.nearest_of(first, module), around.nearest_of(first, line))
    texts = [[names[host.name[event]] if event >= 0 else "" for event in each] for each in near]
    return [
        [scope, inside.removeprefix(torch_names.MODULE_PREFIX), at] for scope, inside, at in zip(*texts, strict=True)
    ]
