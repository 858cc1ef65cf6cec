"""Stragglers in collectives, step by step, and how a delay spreads from group to group.

A collective that several traces share ends on all its ranks together. The rank with the shortest duration came last, and every
other rank waited for it as much longer as its own duration is. No clocks of two machines are compared.

Where ranks are in several groups, the last rank may itself have been kept waiting, in another group, since the two ranks last
left a collective together; then it only propagates the delay::

    rank 0  [..wait..|AB]  works  [..wait.........|BC]
    rank 1  works    [AB]  works     [.wait.......|BC]   AB: rank 1 blocks rank 0, by its own work
    rank 2  works, and works on, and on           [BC]   BC: rank 2 blocks both, by its own work

If rank ``p`` waits for rank ``l``, the time that ``l`` itself waited in between beyond what ``p`` did (at most the whole wait) is
*propagated*; the rest is ``l``'s *own*. This is the split of Boehme et al., Identifying the root causes of wait states in
large-scale parallel applications (ACM TOPC 3.2, 2016), into direct and indirect wait states, with durations in place of
synchronized clocks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.errors import require
from overhead_lens.stats.values import Ints
from overhead_lens.traces.collectives.matching import Matched
from overhead_lens.traces.collectives.model import Collective, bandwidths
from overhead_lens.traces.intervals import union

_LONG_AGO = -(2**62)


@dataclass(frozen=True, slots=True)
class Holder:
    """A straggler: how long the other ranks waited for it.

    Attributes:
        last: Collectives in which it came last, and another waited.
        lost_ns: Time that all others together waited for it.
        own_ns, passed_on_ns: Parts of it: by its own work, and because it had waited in another group; they sum to it.
        lead_ns: Its lag behind the second-to-last rank, summed, in several collectives at once counted once: how much earlier
            these collectives could end at most if only this rank were faster.
    """

    rank: str
    last: int
    lost_ns: int
    own_ns: int
    passed_on_ns: int
    lead_ns: int

    def __post_init__(self) -> None:
        require(self.own_ns + self.passed_on_ns == self.lost_ns, f"rank {self.rank}: own and propagated lag do not sum")
        require(min(self.own_ns, self.passed_on_ns, self.lead_ns) >= 0, f"rank {self.rank} saves negative time")


@dataclass(frozen=True, slots=True)
class StepDelay:
    """One step of all ranks.

    Attributes:
        collectives: Those matched in it.
        lost_ns: Time that ranks waited for each other, summed over them.
        holder: Label of the rank that the others waited longest for; None if nobody waited.
        holder_ns: How long they waited for it.
        again: Whether the straggler was the same in the previous step; None for the first step, or without a straggler in either.
    """

    step: int
    collectives: int
    lost_ns: int
    holder: str | None
    holder_ns: int
    again: bool | None


@dataclass(frozen=True, slots=True)
class Transfer:
    """Collectives of one kind, group, type and size over the ranks, without the wait for each other.

    Attributes:
        transfer_ns: Shortest duration over the ranks, summed.
        algorithm_gb_s, bus_gb_s: As NCCL-tests define them, from that; None if size or group are unknown.
    """

    kind: str
    group: str
    group_size: int | None
    dtype: str
    bytes: int
    count: int
    transfer_ns: int
    algorithm_gb_s: float | None
    bus_gb_s: float | None


@dataclass(frozen=True, slots=True)
class Stragglers:
    """How ranks wait for each other over time.

    Attributes:
        holders: Ranks that others waited for, the most first.
        steps: In order; empty where traces have no steps.
        repeated, pairs: Pairs of consecutive steps with the same straggler, and all pairs.
        transfers: The largest time first.
        unordered: Collectives that ranks ran in different orders: their propagated lag may be wrong.
    """

    holders: tuple[Holder, ...]
    steps: tuple[StepDelay, ...]
    repeated: int
    pairs: int
    transfers: tuple[Transfer, ...]
    unordered: int


@dataclass(frozen=True, slots=True)
class _Shared:
    """A collective that several ranks took part in.

    Attributes:
        ranks: int64, ascending: numbers of these.
        dur_ns: int64: their durations.
        waits_ns: int64: how long they waited for the last; what a rank waits in several collectives at once counts in the first.
        joined_ns: When the last joined, by its own clock.
    """

    first: Collective
    ranks: Ints
    dur_ns: Ints
    waits_ns: Ints
    joined_ns: int
    step: int | None

    @property
    def last(self) -> int:
        """The rank that came last."""
        return int(self.ranks[self.dur_ns.argmin()])


def rank_name(label: str) -> str:
    """A rank in words; a path where the trace does not say which it is."""
    return f"rank {label}" if label.isdecimal() else label


def stragglers(labels: Sequence[str], matched: Matched) -> Stragglers | None:
    """Compare the collectives that ranks share; None if they share none."""
    waited_until = [_LONG_AGO] * len(labels)
    shared = [_shared(parts, waited_until) for parts in matched.shared]
    if not shared:
        return None
    own, passed = _lost(shared, len(labels))
    last = np.array([one.last for one in shared])
    lead = np.array([int(np.partition(one.dur_ns, 1)[1] - one.dur_ns.min()) for one in shared])
    steps = _steps(labels, shared, last)
    same = [step.again for step in steps if step.again is not None]
    return Stragglers(
        holders=_holders(labels, shared, own, passed, lead),
        steps=steps,
        repeated=sum(same),
        pairs=len(same),
        transfers=_transfers(shared),
        unordered=matched.unordered,
    )


def _shared(parts: Sequence[tuple[int, Collective]], waited_until: list[int]) -> _Shared:
    """One collective, after those before it on all its ranks; ``waited_until`` of each rank is moved on."""
    steps = (one.step for _, one in parts if one.step is not None)
    numbers = np.array([rank for rank, _ in parts], dtype=np.int64)
    durations = np.array([one.dur_ns for _, one in parts], dtype=np.int64)
    waits = []
    for rank, one in parts:
        joined_ns = one.end_ns - int(durations.min())
        waits.append(max(0, joined_ns - max(one.start_ns, waited_until[rank])))
        waited_until[rank] = max(joined_ns, waited_until[rank])
    described = next((one for _, one in parts if one.bytes is not None), parts[0][1])
    joined_ns = parts[int(durations.argmin())][1].start_ns
    return _Shared(described, numbers, durations, np.array(waits), joined_ns, min(steps, default=None))


def _lost(shared: Sequence[_Shared], rank_count: int) -> tuple[Ints, Ints]:
    """Time that the others waited for the last rank of each collective: by its own work, and propagated; int64."""
    waited = np.zeros(rank_count, dtype=np.int64)
    together = np.zeros((rank_count, rank_count), dtype=np.int64)
    """What the row's rank had waited when it last left a collective together with the column's."""
    own, passed = [], []
    for one in shared:
        waits, last = one.waits_ns, one.last
        mine = waited[last] - together[last, one.ranks]
        theirs = waited[one.ranks] - together[one.ranks, last]
        handed = np.minimum(waits, np.maximum(0, mine - theirs))
        passed.append(int(handed.sum()))
        own.append(int(waits.sum()) - passed[-1])
        waited[one.ranks] += waits
        together[np.ix_(one.ranks, one.ranks)] = waited[one.ranks][:, None]
    return np.array(own, dtype=np.int64), np.array(passed, dtype=np.int64)


def _holders(
    labels: Sequence[str], shared: Sequence[_Shared], own: Ints, passed: Ints, lead: Ints
) -> tuple[Holder, ...]:
    # It is a straggler if another rank came before it.
    last = np.array([one.last if np.ptp(one.dur_ns) else -1 for one in shared])
    joined_ns = np.array([one.joined_ns for one in shared])
    made = []
    for number, label in enumerate(labels):
        mine = np.flatnonzero(last == number)
        if len(mine):
            own_ns, passed_ns = (int(part[mine].sum()) for part in (own, passed))
            lead_ns = union(joined_ns[mine] - lead[mine], lead[mine]).total_ns
            made.append(Holder(label, len(mine), own_ns + passed_ns, own_ns, passed_ns, lead_ns))
    return tuple(sorted(made, key=lambda holder: -holder.lost_ns))


def _steps(labels: Sequence[str], shared: Sequence[_Shared], last: Ints) -> tuple[StepDelay, ...]:
    by_step: defaultdict[int, list[int]] = defaultdict(list)
    for at, one in enumerate(shared):
        if one.step is not None:
            by_step[one.step].append(at)
    made: list[StepDelay] = []
    for step, places in sorted(by_step.items()):
        lost: defaultdict[int, int] = defaultdict(int)
        for at in places:
            lost[int(last[at])] += int(shared[at].waits_ns.sum())
        most = max(lost, key=lambda rank: lost[rank])
        holder = labels[most] if lost[most] else None
        before = made[-1].holder if made else None
        again = None if holder is None or before is None else holder == before
        made.append(StepDelay(step, len(places), sum(lost.values()), holder, lost[most], again))
    return tuple(made)


def _transfers(shared: Sequence[_Shared]) -> tuple[Transfer, ...]:
    alike: defaultdict[tuple[str, str, int | None, str, int], list[int]] = defaultdict(list)
    for one in shared:
        about = one.first
        if about.bytes is not None:
            key = (about.kind, about.group, about.group_size, about.dtype, about.bytes)
            alike[key].append(int(one.dur_ns.min()))
    made = []
    for (kind, group, size, dtype, count_bytes), durations in alike.items():
        total_ns = sum(durations)
        rates = bandwidths(kind, count_bytes * len(durations), size, total_ns)
        made.append(Transfer(kind, group, size, dtype, count_bytes, len(durations), total_ns, *rates))
    return tuple(sorted(made, key=lambda transfer: -transfer.transfer_ns))
