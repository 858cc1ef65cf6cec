"""Sequences of launches and operators that repeat in a trace, and what joining or capturing them would spare at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pandas as pd

from overhead_lens.stats.values import Bools, Ints
from overhead_lens.traces.columns import passing
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.launches import Linked
from overhead_lens.traces.memory.context import FUNCTION, MODULE_PREFIX, SCOPE
from overhead_lens.traces.sequences.model import LAUNCHES, OPERATORS, RepeatedSequence
from overhead_lens.traces.sequences.repeats import Repeat, repeats

_MOST = 20
_MOST_NAMES = 16
_MORE_OFTEN = 2


@dataclass(frozen=True, slots=True)
class Items:
    """What may repeat, lane after lane, each in order of start; int64 arrays of shape ``(n,)``.

    Attributes:
        name: Number in ``names``; one of its own for the end of a lane.
        lane: Number in ``lanes``, ascending.
        call_ns: Time of the launching calls.
        graph: 0 or 1: whether a graph launched it.
        thread, asked_ns: Host thread as a number in ``HostEvents.threads`` and time at which it was asked for; -1 where unknown.
    """

    kind: str
    name: Ints
    lane: Ints
    start_ns: Ints
    end_ns: Ints
    call_ns: Ints
    graph: Ints
    thread: Ints
    asked_ns: Ints
    names: Sequence[str]
    lanes: Sequence[str]


def sequences(events: pd.DataFrame, host: HostEvents, linked: Linked) -> tuple[RepeatedSequence, ...]:
    """Of launches on streams and of operators on threads those that spare most, at most ``_MOST`` of each."""
    found = [_repeated(items, host) for items in (_launches(events, host, linked), _operators(host))]
    return tuple(sequence for several in found for sequence in several)


def _launches(events: pd.DataFrame, host: HostEvents, linked: Linked) -> Items:
    """Device events stream by stream."""
    start_ns, dur_ns = events["start_ns"].to_numpy(), events["dur_ns"].to_numpy()
    device, stream = (events[name].to_numpy()[linked.rows] for name in ("device", "stream"))
    order = np.lexsort((start_ns[linked.rows], stream, device))
    rows, launch = linked.rows[order], linked.launch[order]
    keys = list(zip(device[order].tolist(), stream[order].tolist(), strict=True))
    lanes = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    position = np.full(len(events), -1, dtype=np.int64)
    position[host.rows] = np.arange(len(host.rows))
    asked = np.where(launch >= 0, position[launch], -1)
    known = asked >= 0
    # A call that launched several events, a graph's, is paid for once.
    first = known & ~pd.Series(launch).duplicated().to_numpy()
    name = events["name"].cat
    return Items(
        LAUNCHES,
        name.codes.to_numpy()[rows].astype(np.int64),
        np.array([lanes[key] for key in keys], dtype=np.int64),
        start_ns[rows],
        start_ns[rows] + dur_ns[rows],
        np.where(first, dur_ns[launch], 0),
        linked.is_graph[order].astype(np.int64),
        np.where(known, host.thread[asked], -1) if len(host.rows) else asked,
        np.where(known, start_ns[launch], -1),
        list(name.categories),
        [f"device {device} stream {stream}" for device, stream in lanes],
    )


def _operators(host: HostEvents) -> Items:
    """Operators thread by thread that no other operator is around; what names no dispatcher's operator is passed over."""
    named = passing(host.names, lambda name: SCOPE.match(name) is not None)[host.name]
    able = np.flatnonzero(host.operator & named)
    end_ns = host.start_ns + host.dur_ns
    able = able[np.lexsort((-end_ns[able], host.start_ns[able], host.thread[able]))]
    top = able[_outermost(host.thread[able], host.start_ns[able], end_ns[able])]
    calls = np.flatnonzero(host.runtime)
    calls = calls[np.lexsort((host.start_ns[calls], host.thread[calls]))]
    return Items(
        OPERATORS,
        host.name[top],
        host.thread[top],
        host.start_ns[top],
        end_ns[top],
        _time_inside(host, top, calls),
        np.zeros(len(top), dtype=np.int64),
        host.thread[top],
        host.start_ns[top],
        host.names,
        [f"thread {tid}" for _, tid in host.threads],
    )


def _outermost(thread: Ints, start_ns: Ints, end_ns: Ints) -> Bools:
    """Which begin after all that began before them on their thread have ended."""
    outermost = np.ones(len(thread), dtype=bool)
    for number in np.unique(thread):
        mine = np.flatnonzero(thread == number)
        reached = np.maximum.accumulate(end_ns[mine])
        outermost[mine[1:]] = start_ns[mine][1:] >= reached[:-1]
    return outermost


def _time_inside(host: HostEvents, operators: Ints, calls: Ints) -> Ints:
    """Time of the runtime calls that begin inside each operator."""
    inside = np.zeros(len(operators), dtype=np.int64)
    for number in np.unique(host.thread[operators]):
        mine = np.flatnonzero(host.thread[operators] == number)
        own = calls[host.thread[calls] == number]
        total = np.concatenate(([0], np.cumsum(host.dur_ns[own])))
        starts = host.start_ns[operators[mine]]
        first, last = (
            np.searchsorted(host.start_ns[own], at) for at in (starts, starts + host.dur_ns[operators[mine]])
        )
        inside[mine] = total[last] - total[first]
    return inside


def _repeated(items: Items, host: HostEvents) -> list[RepeatedSequence]:
    """The repeats that spare most, each told once: not also its parts that are there no more often."""
    if len(items.name) < 4:
        return []
    gap_ns = _gaps(items)
    spared = np.maximum(gap_ns, items.call_ns)
    tokens = _rows_with_ends(items)
    scored = sorted(
        ((_bound(repeat, tokens, items, gap_ns), repeat) for repeat in repeats(_separated(items), spared[tokens])),
        key=lambda pair: (-max(pair[0]), -pair[1].length, int(pair[1].places[0])),
    )
    chosen = islice(_distinct(scored, len(tokens)), _MOST)
    return [_told(repeat, tokens, bound, items, host) for bound, repeat in chosen]


def _rows_with_ends(items: Items) -> Ints:
    """The items, and after each lane its last once more as its end."""
    last = np.flatnonzero(np.append(items.lane[1:] != items.lane[:-1], True))
    return np.insert(np.arange(len(items.name)), last + 1, last)


def _separated(items: Items) -> Ints:
    """Names with one of its own at the end of each lane, so that nothing repeats across two lanes."""
    last = np.flatnonzero(np.append(items.lane[1:] != items.lane[:-1], True))
    return np.insert(items.name, last + 1, len(items.names) + np.arange(len(last)))


def _gaps(items: Items) -> Ints:
    """Time from the end of each and all before it in its lane to the start of the next; 0 at the end of a lane."""
    gaps = np.zeros(len(items.name), dtype=np.int64)
    for number in np.unique(items.lane):
        mine = np.flatnonzero(items.lane == number)
        reached = np.maximum.accumulate(items.end_ns[mine])
        gaps[mine[:-1]] = np.maximum(items.start_ns[mine[1:]] - reached[:-1], 0)
    return gaps


def _bound(repeat: Repeat, tokens: Ints, items: Items, gap_ns: Ints) -> tuple[int, int]:
    """Launch time and gaps that are inside of all repetitions, but for the longest launch of each."""
    at = tokens[repeat.places[:, None] + np.arange(repeat.length)]
    calls = items.call_ns[at]
    return int((calls.sum(axis=1) - calls.max(axis=1)).sum()), int(gap_ns[at[:, :-1]].sum())


def _distinct(scored: Sequence[tuple[tuple[int, int], Repeat]], count: int) -> Iterator[tuple[tuple[int, int], Repeat]]:
    """Leave out what lies mostly in a sequence that was told and is there less than twice as often, and what spares nothing."""
    often = np.zeros(count, dtype=np.int64)
    for bound, repeat in scored:
        inside = repeat.places[:, None] + np.arange(repeat.length)
        is_new = 2 * int((len(repeat.places) >= _MORE_OFTEN * often[inside]).sum()) > inside.size
        if max(bound) > 0 and is_new:
            often[inside] = np.maximum(often[inside], len(repeat.places))
            yield bound, repeat


def _told(repeat: Repeat, tokens: Ints, bound: tuple[int, int], items: Items, host: HostEvents) -> RepeatedSequence:
    at = tokens[repeat.places[:, None] + np.arange(repeat.length)]
    first = int(at[0, 0])
    operator, module, line = _around(host, int(items.thread[first]), int(items.asked_ns[first]))
    return RepeatedSequence(
        items.kind,
        items.lanes[items.lane[first]],
        tuple(items.names[code] for code in items.name[at[0, :_MOST_NAMES]].tolist()),
        repeat.length,
        len(repeat.places),
        int(items.start_ns[first]),
        int((items.end_ns[at] - items.start_ns[at]).sum()),
        *bound,
        int(items.graph[at].sum()),
        operator,
        module,
        line,
    )


def _around(host: HostEvents, thread: int, at_ns: int) -> tuple[str, str, str]:
    """Outermost operator, innermost module and Python function outside of torch that are open on a thread at some time."""
    if thread < 0:
        return "", "", ""
    is_open = (host.thread == thread) & (host.start_ns <= at_ns) & (host.start_ns + host.dur_ns > at_ns)
    events = np.flatnonzero(is_open)
    events = events[np.lexsort((-host.dur_ns[events], host.start_ns[events]))]
    names = [host.names[code] for code in host.name[events].tolist()]
    operators = [
        name
        for name, is_operator in zip(names, host.operator[events], strict=True)
        if is_operator and SCOPE.match(name)
    ]
    modules = [name.removeprefix(MODULE_PREFIX) for name in names if name.startswith(MODULE_PREFIX)]
    lines = [name for name in names if FUNCTION.match(name)]
    return operators[0] if operators else "", modules[-1] if modules else "", lines[-1] if lines else ""
