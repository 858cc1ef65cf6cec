"""The critical path over several ranks: if a rank waited in a collective for another, the path continues in the other rank.

A collective ends on all its ranks at once, whenever each of them joined it. The path of a step is followed back from its end on
the rank that ends it last. Within a rank it is that rank's own longest chain. At the end of a collective it continues in the rank
with the shortest duration, which came last: its kernel is on the path, then the chain that led to it::

    rank 0   works [ waits .............. | c ] works     ends last
    rank 1   works, and works on, and on  [ c ] works     came last

    path     rank 1 works                 [ c ] rank 0 works

Times are therefore only compared on one clock: the path changes ranks at ends that count as the same instant. Only which
rank ends a step last takes clocks of two ranks, and these are aligned at the collective that both left together
nearest to the end. The path is as long as the step of that rank on its own clock, and is cut off where that step began.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from overhead_lens.stats.values import Ints
from overhead_lens.traces.collectives.matching import Matched, numbered
from overhead_lens.traces.collectives.model import Collective
from overhead_lens.traces.critical_path.fragments import NOWHERE, PathFragments, StepEnd, through
from overhead_lens.traces.critical_path.model import KINDS, PathOverRanks, PathTime, RankOnPath, StepOverRanks
from overhead_lens.traces.timeline import sum_by

_MOST_NAMES = 10
_NAMED = ("operators", "kernels", "modules")


@dataclass(frozen=True, slots=True)
class RankPaths:
    """One rank of a job with its chains and collectives.

    Attributes:
        chains: What leads to its collectives and steps.
        collectives: In the order in which the chains number them.
    """

    label: str
    chains: PathFragments
    collectives: Sequence[Collective]


def path_over_ranks(ranks: Sequence[RankPaths], matched: Matched) -> PathOverRanks:
    """The paths of the steps that all ranks, given in order, have."""
    # A step is known by its number, and by how often its rank had had that number before.
    ends = [dict(zip(numbered(end.step for end in rank.chains.ends), rank.chains.ends, strict=True)) for rank in ranks]
    taking_part = [number for number, own in enumerate(ends) if own]
    first = ends[taking_part[0]] if taking_part else {}
    common = [key for key in first if all(key in ends[number] for number in taking_part)]
    lines = _lines(ranks, matched)
    clocks = _Clocks(taking_part, matched)
    walks = []
    for key in common:
        last = clocks.last({number: ends[number][key] for number in taking_part})
        walks.append(_Walk(lines, last, ends[last][key]))
    seen = {key for own in ends for key in own}
    return PathOverRanks(
        tuple(_steps(ranks, walks)), tuple(_notes(ranks, taking_part, len(seen) - len(common), clocks, walks))
    )


class _Line:
    """One rank's chains, to be walked back.

    Attributes:
        to_rank, to_number: Per collective: the rank that joined it last, and its number there; itself where nobody came later.
        order: Per collective: its place among those that several ranks share; -1 for one that no other rank has.
        is_alone: Per collective: whether the trace says that no other rank takes part.
    """

    def __init__(self, number: int, chains: PathFragments, collectives: Sequence[Collective]) -> None:
        count = len(chains.begins)
        self.chains = chains
        self.end_ns = chains.start_ns + chains.dur_ns
        self.to_rank, self.to_number = [number] * count, list(range(count))
        self.order = [-1] * count
        self.is_alone = [one.group_size == 1 for one in collectives]
        self._before, self._time_ns = chains.before.data, chains.time_ns.data

    def back(self, node: int, until_ns: int) -> tuple[list[int], int]:
        """The nodes from a node back to the end of a collective and their predecessors, only those after a given time."""
        nodes = []
        while node >= 0 and self._time_ns[node] > until_ns:
            nodes.append(node)
            node = self._before[node]
        return nodes, node

    def spans(self, nodes: Sequence[int]) -> tuple[Ints, Ints, Ints]:
        """Starts, durations and labels of the spans before some nodes."""
        chains, at = self.chains, np.array(nodes, dtype=np.int64)
        time_ns, before = chains.time_ns[at], chains.before[at].astype(np.int64)
        since_ns = time_ns.copy()
        led, joined = before >= 0, before < NOWHERE
        since_ns[led] = chains.time_ns[before[led]]
        since_ns[joined] = self.end_ns[through(before[joined])]
        return since_ns, time_ns - since_ns, chains.label[at].astype(np.int64)


def _lines(ranks: Sequence[RankPaths], matched: Matched) -> list[_Line]:
    lines = [_Line(number, rank.chains, rank.collectives) for number, rank in enumerate(ranks)]
    numbers = [{_identity(one): at for at, one in enumerate(rank.collectives)} for rank in ranks]
    for order, parts in enumerate(matched.shared):
        shortest_ns = min(one.dur_ns for _, one in parts)
        last, kernel = next((rank, one) for rank, one in parts if one.dur_ns == shortest_ns)
        for rank, one in parts:
            line, at = lines[rank], numbers[rank][_identity(one)]
            line.order[at] = order
            if one.dur_ns > shortest_ns:
                line.to_rank[at], line.to_number[at] = last, numbers[last][_identity(kernel)]
    return lines


def _identity(one: Collective) -> tuple[str, str, int]:
    return one.name, one.group, one.index


class _Walk:
    """The path of one step, from its end back; by the clock of the rank that ends it last.

    Attributes:
        last, end: That rank, and where its path ends.
        visits: The rank and the spans (starts, durations, labels) of each interval, the latest first.
        alone: Collectives on the path that no other trace has.
        contradicted: Those at which another rank came last and the ranks' orders contradict each other.
    """

    def __init__(self, lines: Sequence[_Line], last: int, end: StepEnd) -> None:
        self.last, self.end = last, end
        self.visits: list[tuple[int, Ints, Ints, Ints]] = []
        self.alone = self.contradicted = 0
        self._lines = lines
        self._rank, self._shift_ns = last, 0
        self._reached_ns = end.end_ns
        self._order: int | None = None
        before = self._begin()
        while before != NOWHERE and self._reached_ns > end.start_ns:
            before = self._back(before) if before >= 0 else self._through(through(before))
        if self._reached_ns > end.start_ns:
            self._add(*self._unexplained(end.start_ns, self._reached_ns))

    @property
    def changes(self) -> int:
        """How often the path goes from one rank to another."""
        ranks = [rank for rank, *_ in self.visits]
        return sum(one != other for one, other in pairwise(ranks))

    def _begin(self) -> int:
        """Add the span before the step's end."""
        end = self.end
        if end.collective >= 0:
            return through(end.collective)
        since_ns = int(self._line.chains.time_ns[end.node]) if end.node >= 0 else end.start_ns
        starts, durations, labels = self._unexplained(since_ns + end.weight_ns, end.end_ns)
        self._add(np.append(starts, since_ns), np.append(durations, end.weight_ns), np.append(labels, end.label))
        self._reached_ns = since_ns
        return end.node

    @property
    def _line(self) -> _Line:
        return self._lines[self._rank]

    def _back(self, node: int) -> int:
        nodes, before = self._line.back(node, self.end.start_ns - self._shift_ns)
        starts, durations, labels = self._line.spans(nodes)
        self._add(starts, durations, labels)
        self._reached_ns = int(starts.min()) + self._shift_ns
        return before

    def _through(self, number: int) -> int:
        """From the end of a collective to its start on the rank that joined it last."""
        line = self._line
        if line.to_rank[number] != self._rank:
            number = self._change(number)
        elif line.order[number] < 0 and not line.is_alone[number]:
            self.alone += 1
        chains = self._line.chains
        columns = chains.start_ns, chains.dur_ns, chains.own_label.astype(np.int64)
        self._add(*(column[number : number + 1] for column in columns))
        self._reached_ns = int(chains.start_ns[number]) + self._shift_ns
        return int(chains.begins[number])

    def _change(self, number: int) -> int:
        """Change to the rank that came last; returns the number of the collective there."""
        line, order = self._line, self._line.order[number]
        # Backwards in time the common order must decrease, or the path could run in a circle.
        if self._order is not None and order >= self._order:
            self.contradicted += 1
            return number
        self._order = order
        self._rank, there = line.to_rank[number], line.to_number[number]
        self._shift_ns += int(line.end_ns[number]) - int(self._line.end_ns[there])
        return there

    def _unexplained(self, start_ns: int, end_ns: int) -> tuple[Ints, Ints, Ints]:
        """One span by the rank's own clock, from times by that of the last."""
        columns = (start_ns - self._shift_ns, end_ns - start_ns, self._line.chains.unexplained)
        start, duration, label = (np.array([value], dtype=np.int64) for value in columns)
        return start, duration, label

    def _add(self, start_ns: Ints, dur_ns: Ints, label: Ints) -> None:
        """Add the parts of these spans inside the step."""
        low_ns, high_ns = self.end.start_ns - self._shift_ns, self.end.end_ns - self._shift_ns
        begin = np.clip(start_ns, low_ns, high_ns)
        inside_ns = np.clip(start_ns + dur_ns, low_ns, high_ns) - begin
        there = inside_ns > 0
        if there.any():
            self.visits.append((self._rank, begin[there] + self._shift_ns, inside_ns[there], label[there]))


class _Clocks:
    """Which rank ends a step last, by the collectives that ranks left together.

    Attributes:
        aligned: The largest set of ranks whose clocks can be aligned with each other.
    """

    def __init__(self, ranks: Sequence[int], matched: Matched) -> None:
        self._ranks = list(ranks)
        apart: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        self._steps: list[int | None] = []
        for order, ((first, one), *others) in enumerate(matched.shared):
            steps = (part.step for _, part in ((first, one), *others) if part.step is not None)
            self._steps.append(min(steps, default=None))
            for rank, other in others:
                apart[first, rank].append((order, other.end_ns - one.end_ns))
        self._apart: Mapping[tuple[int, int], list[tuple[int, int]]] = apart
        # Per step the last collective in it, by its place in the common order.
        self._latest = {step: order for order, step in enumerate(self._steps) if step is not None}
        self.aligned = 0

    def last(self, ends: Mapping[int, StepEnd]) -> int:
        """The rank that ends the step last; of ranks that share no collective with others, the longest step counts."""
        sets = self._sets(self._before(next(iter(ends.values())).step))
        most = max(len(members) for members in sets)
        self.aligned = most
        latest = [
            max(sorted(members), key=lambda rank: ends[rank].end_ns - members[rank])
            for members in sets
            if len(members) == most
        ]
        return max(latest, key=lambda rank: ends[rank].wall_ns)

    def _before(self, step: int | None) -> int:
        """How many collectives are over at the end of a step, in the common order."""
        if step is None:
            return len(self._steps)
        return max((order + 1 for number, order in self._latest.items() if number <= step), default=0)

    def _sets(self, over: int) -> list[dict[int, int]]:
        """Sets of ranks that share collectives, each rank with how far its clock is ahead of its set's."""
        nearest = []
        for pair, shared in self._apart.items():
            at = max(0, bisect_left(shared, over, key=lambda each: each[0]) - 1)
            order, apart_ns = shared[at]
            nearest.append((over - order if order < over else order + 1, order >= over, pair, apart_ns))
        of_rank = {rank: {rank: 0} for rank in self._ranks}
        for _, _, (one, other), apart_ns in sorted(nearest, key=lambda each: (each[1], each[0], each[2])):
            if one in of_rank and other in of_rank and of_rank[one] is not of_rank[other]:
                _join(of_rank, one, other, apart_ns)
        return [members for rank, members in of_rank.items() if min(members) == rank]


def _join(of_rank: dict[int, dict[int, int]], one: int, other: int, apart_ns: int) -> None:
    """Merge the sets of two ranks, given how far the other's clock is ahead."""
    base, added = of_rank[one], of_rank[other]
    ahead_ns = base[one] + apart_ns - added[other]
    if len(base) < len(added):
        base, added, ahead_ns = added, base, -ahead_ns
    for rank, own_ns in added.items():
        base[rank] = own_ns + ahead_ns
        of_rank[rank] = base


def _sums(ranks: Sequence[RankPaths], walk: _Walk) -> tuple[dict[int, Counter[int]], dict[str, Counter[str]]]:
    """The time of one walk: per rank by number in ``KINDS``, and over all ranks by each of ``_NAMED``."""
    kinds: defaultdict[int, Counter[int]] = defaultdict(Counter)
    named: dict[str, Counter[str]] = {which: Counter() for which in _NAMED}
    for rank, label, ns in _by_label(walk):
        labels = ranks[rank].chains.labels
        kinds[rank][int(labels.kind[label])] += ns
        for times, codes in zip(named.values(), (labels.operator, labels.name, labels.module), strict=True):
            if codes[label] >= 0:
                times[labels.text(int(codes[label]))] += ns
    return kinds, named


def _by_label(walk: _Walk) -> Iterator[tuple[int, int, int]]:
    """Rank, label and time of all spans on the path."""
    for rank in sorted({rank for rank, *_ in walk.visits}):
        mine = [visit for visit in walk.visits if visit[0] == rank]
        durations, labels = (np.concatenate([visit[at] for visit in mine]) for at in (2, 3))
        used, number = np.unique(labels, return_inverse=True)
        sums = sum_by(number, durations, len(used))
        yield from zip([rank] * len(used), used.tolist(), sums.tolist(), strict=True)


def _steps(ranks: Sequence[RankPaths], walks: Sequence[_Walk]) -> Iterator[StepOverRanks]:
    sums = [_sums(ranks, walk) for walk in walks]
    chosen = {which: _costliest([named[which] for _, named in sums]) for which in _NAMED}
    for walk, (kinds, named) in zip(walks, sums, strict=True):
        on_path = [RankOnPath(ranks[rank].label, own.total(), _kinds(own)) for rank, own in sorted(kinds.items())]
        yield StepOverRanks(
            walk.end.step,
            ranks[walk.last].label,
            walk.end.start_ns,
            walk.end.wall_ns,
            walk.changes,
            tuple(sorted(on_path, key=lambda rank: -rank.ns)),
            _kinds(sum(kinds.values(), Counter())),
            **{which: _named(named[which], chosen[which]) for which in _NAMED},
        )


def _kinds(kinds: Counter[int]) -> tuple[PathTime, ...]:
    return tuple(PathTime(KINDS[kind], ns) for kind, ns in sorted(kinds.items()))


def _costliest(steps: Sequence[Counter[str]]) -> frozenset[str]:
    totals = sum(steps, Counter[str]())
    return frozenset(sorted(totals, key=lambda name: (-totals[name], name))[:_MOST_NAMES])


def _named(times: Counter[str], chosen: frozenset[str]) -> tuple[PathTime, ...]:
    path_times = [PathTime(name, ns) for name, ns in times.items() if name in chosen]
    return tuple(sorted(path_times, key=lambda time: (-time.ns, time.name)))


def _notes(
    ranks: Sequence[RankPaths], taking_part: Sequence[int], left_out: int, clocks: _Clocks, walks: Sequence[_Walk]
) -> Iterator[str]:
    others = [rank.label for number, rank in enumerate(ranks) if number not in taking_part]
    if others:
        yield f"rank {', '.join(others)}: the trace holds no work and has no critical path"
    if left_out:
        yield f"{left_out:,} steps are not in the traces of all ranks: they have no path over ranks"
    if walks and clocks.aligned < len(taking_part):
        yield (
            "no collective is in two traces: the longest step of all ranks counts, and its path stays in that rank"
            if clocks.aligned <= 1
            else f"{clocks.aligned} of {len(taking_part)} ranks are joined by collectives: the others cannot be on the paths"
        )
    if any(walk.changes for walk in walks):
        yield "a collective is taken to end on all its ranks at one instant, which is how clocks of ranks are aligned"
    if alone := sum(walk.alone for walk in walks):
        yield f"{alone:,} collectives on the paths are in no other trace: who was waited for in them is not known"
    if contradicted := sum(walk.contradicted for walk in walks):
        yield f"at {contradicted:,} collectives the orders of ranks contradict each other: there the path stays in its rank"
