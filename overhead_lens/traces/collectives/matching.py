"""Matches the collectives of several traces, in a common order.

Two kernels belong to one collective if they agree in name, process group and number (``Seq``), if all traces have that; else in
step, kind, type and size as far as all traces have these, and in their position among equals. Without numbers, a rank whose
trace lacks a kernel is matched wrongly from there to the end of the step.

A collective ends on all its ranks at once. The difference of its two ends is therefore the difference of
two ranks' clocks, constant except for drift. If it differs from the median by more than the kernels' durations and the possible
drift, the two kernels never ran at the same time and do not belong to one collective.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from overhead_lens.traces.collectives.definitions import PAIRWISE_KERNEL, POINT_TO_POINT
from overhead_lens.traces.collectives.model import Collective

FEWEST = 2
_FEW = 5
"""Shared collectives from which on their ends tell the difference of two clocks."""
_JITTER_NS = 1_000_000
_DRIFT = 1e-4
"""More than clocks drift: a few parts in 100,000 (RFC 5905, 7.2)."""

_Key = TypeVar("_Key", bound=Hashable)
_Parts = tuple[tuple[int, Collective], ...]


@dataclass(frozen=True, slots=True)
class Matched:
    """Collectives that several traces took part in.

    Attributes:
        shared: Number of the trace and its kernel for each; a collective comes after those before it on all its ranks.
        unordered: Collectives that traces ran in different orders; of these the first trace's order holds.
        by_size: Whether kinds and sizes were compared.
        by_step: Whether steps were compared.
        refuted: Kernels that agreed in all of these but never ran together with the others.
    """

    shared: tuple[tuple[tuple[int, Collective], ...], ...]
    unordered: int
    by_size: bool
    by_step: bool
    refuted: int


def matched(traces: Sequence[Sequence[Collective]]) -> Matched:
    """Collectives that two traces or more have; a send or a receive is of its pair of ranks alone, and is not one."""
    traces = [[one for one in mine if not _is_pairwise(one)] for mine in traces]
    known = {
        name
        for name in ("sequence", "bytes", "step")
        if all(any(getattr(one, name) is not None for one in mine) for mine in traces if mine)
    }
    keys = [list(numbered(_alike(one, known) for one in mine)) for mine in traces]
    where: defaultdict[Hashable, list[tuple[int, Collective]]] = defaultdict(list)
    for number, mine in enumerate(traces):
        for key, one in zip(keys[number], mine, strict=True):
            where[key].append((number, one))
    common = {key: tuple(parts) for key, parts in where.items() if len(parts) >= FEWEST}
    agreed = sum(map(len, common.values()))
    common = _at_one_time(common)
    queues = [
        [key for key in mine if any(rank == number for rank, _ in common.get(key, ()))]
        for number, mine in enumerate(keys)
    ]
    order, unordered = _Merge(queues).order()
    refuted = agreed - sum(map(len, common.values()))
    return Matched(tuple(common[key] for key in order), unordered, "bytes" in known, "step" in known, refuted)


def _is_pairwise(one: Collective) -> bool:
    return one.kind in POINT_TO_POINT or (not one.kind and PAIRWISE_KERNEL.search(one.name) is not None)


def _at_one_time(common: Mapping[Hashable, _Parts]) -> dict[Hashable, _Parts]:
    """The collectives without kernels that cannot have run together with the first trace's."""
    apart: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for (first, one), *others in common.values():
        for rank, other in others:
            apart[first, rank].append(other.end_ns - one.end_ns)
    clocks = {pair: int(np.median(differences)) for pair, differences in apart.items() if len(differences) >= _FEW}
    remaining: dict[Hashable, _Parts] = {}
    for key, ((first, one), *others) in common.items():
        together = [(rank, other) for rank, other in others if _may_be_one(one, other, clocks.get((first, rank)))]
        if together:
            remaining[key] = ((first, one), *together)
    return remaining


def _may_be_one(one: Collective, other: Collective, clock_ns: int | None) -> bool:
    if clock_ns is None:
        return True
    drift_ns = _JITTER_NS + _DRIFT * max(one.end_ns, other.end_ns)
    return abs(other.end_ns - one.end_ns - clock_ns) <= max(one.dur_ns, other.dur_ns) + drift_ns


def numbered(keys: Iterable[_Key]) -> Iterator[tuple[_Key, int]]:
    """Each key with how often it was there before."""
    seen: Counter[_Key] = Counter()
    for key in keys:
        yield key, seen[key]
        seen[key] += 1


def _alike(one: Collective, known: Collection[str]) -> Hashable:
    if "sequence" in known and one.sequence is not None:
        return one.name, one.group, one.sequence
    # Ranks may send different amounts in an all_to_all.
    size = (one.kind, one.dtype, None if one.kind == "all_to_all" else one.bytes) if "bytes" in known else None
    return one.name, one.group, one.step if "step" in known else None, size


class _Merge:
    """Merges the keys of several queues into one order that keeps the order of each queue."""

    def __init__(self, queues: Sequence[Sequence[Hashable]]) -> None:
        self._queues = queues
        self._at = [0] * len(queues)
        self._awaited = Counter(key for queue in queues for key in queue)
        self._holders: defaultdict[Hashable, list[int]] = defaultdict(list)
        for number, queue in enumerate(queues):
            for key in queue:
                self._holders[key].append(number)
        self._ready: deque[Hashable] = deque()
        self._done: set[Hashable] = set()

    def order(self) -> tuple[list[Hashable], int]:
        """The merged keys, and how many were out of order in some queue."""
        order: list[Hashable] = []
        early = 0
        for number in range(len(self._queues)):
            self._advance(number)
        while len(order) < len(self._holders):
            if not self._ready:
                early += 1
                self._ready.append(next(key for key in map(self._head, range(len(self._queues))) if key is not None))
            key = self._ready.popleft()
            self._done.add(key)
            order.append(key)
            for number in self._holders[key]:
                if self._head(number) == key:
                    self._advance(number)
        return order, early

    def _head(self, number: int) -> Hashable:
        at, queue = self._at[number], self._queues[number]
        return queue[at] if at < len(queue) else None

    def _advance(self, number: int) -> None:
        """Go on to the next key of a queue that is not done."""
        while (key := self._head(number)) in self._done:
            self._at[number] += 1
        if key is not None:
            self._awaited[key] -= 1
            if not self._awaited[key]:
                self._ready.append(key)
