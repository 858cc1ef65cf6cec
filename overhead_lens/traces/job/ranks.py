"""Several ranks of one job: who is slow, by what, and who waits for whom.

A collective ends on all ranks together, whenever each of them joined it. So the rank that joins last spends only the
transfer in it, and every other rank spends that and its wait; no clocks of two machines are compared::

    rank 0   [--- wait ---|transfer]
    rank 1          [wait-|transfer]
    rank 2                [transfer]     joins last: its duration is the transfer's

Which kernels are of one collective, ``collectives/matching.py`` says. Transfer is the shortest duration over the ranks
and an upper bound of the true one: a clock that cuts a kernel short, or a send that waits for its receive, is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

import numpy as np

from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.traces.collectives.matching import Matched, matched
from overhead_lens.traces.collectives.model import Collective
from overhead_lens.traces.collectives.stragglers import Stragglers, rank_name, stragglers
from overhead_lens.traces.critical_path.model import PathOverRanks
from overhead_lens.traces.critical_path.over_ranks import RankPaths, path_over_ranks
from overhead_lens.traces.findings.model import Evidence, Finding
from overhead_lens.traces.findings.recorded import MOST_EVIDENCE
from overhead_lens.traces.intervals import union
from overhead_lens.traces.job.batches import Batches, compare_batches
from overhead_lens.traces.model import TraceAnalysis, TraceFailure
from overhead_lens.units import format_ns

_BEGUN_APART_SHARE = 0.1
_MOST_FINDINGS = 20


@dataclass(frozen=True, slots=True)
class RankTime:
    """One rank.

    Attributes:
        label: Its rank as text; the path where the trace does not say.
        collectives: Matched collectives in which it took part.
        wait_ns: Time that it spent in them before the last rank had joined.
        transfer_ns: The rest of its time in them.
        quantities: Time per host category (``host.python``, ...) and device quantity (``device.compute``, ...).
    """

    label: str
    path: str
    wall_ns: int
    collectives: int
    wait_ns: int
    transfer_ns: int
    quantities: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Spread:
    """A quantity over the ranks.

    Attributes:
        median_ns: Lower median.
        max_rank: Label of the rank with the most.
    """

    name: str
    min_ns: int
    median_ns: int
    max_ns: int
    max_rank: str


@dataclass(frozen=True, slots=True)
class Excess:
    """How much more time the straggler spends in something than the median of the other ranks."""

    name: str
    excess_ns: int


@dataclass(frozen=True, slots=True)
class RanksAnalysis:
    """What a comparison of ranks found.

    Attributes:
        slowest: Label of the straggler: with matched collectives the rank whose own work the others wait for longest;
            without, the rank with the longest window.
        by_collectives: Whether collectives decided.
        spreads: Per quantity, widest first.
        straggler: What the straggler spends more time in than the median of the others, largest first; host categories but
            ``wait``, and device work but communication.
        stragglers: Who blocks whom, step by step; None if no collective is in two traces.
        critical_path: The path over ranks; None if it was not asked for.
        findings: Who holds the job up: what the collectives would end sooner at most if that rank alone were faster.
    """

    ranks: tuple[RankTime, ...]
    slowest: str
    by_collectives: bool
    spreads: tuple[Spread, ...]
    straggler: tuple[Excess, ...]
    notes: tuple[str, ...]
    stragglers: Stragglers | None = None
    critical_path: PathOverRanks | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """The traces of one command, in the order given, and the comparison of their ranks.

    Attributes:
        ranks: None for a single trace, and for traces that are not ranks of a job.
        batches: Traces of one model at several batch sizes; None unless it was said that they are.
    """

    results: tuple[TraceAnalysis | TraceFailure, ...]
    ranks: RanksAnalysis | None
    batches: Batches | None = None

    @property
    def detailed(self) -> TraceAnalysis | None:
        """The trace that tells most: of the slowest rank, of the largest batch, else the first; None if all failed."""
        analyses = [result for result in self.results if isinstance(result, TraceAnalysis)]
        path = None
        if self.ranks is not None:
            path = next(rank.path for rank in self.ranks.ranks if rank.label == self.ranks.slowest)
        elif self.batches is not None and self.batches.points:
            path = max(self.batches.points, key=lambda point: point.batch or 0).path
        return next((each for each in analyses if each.path == path), next(iter(analyses), None))

    @property
    def by_weight(self) -> list[TraceAnalysis | TraceFailure]:
        """The results, the most informative first."""
        detailed = self.detailed
        return sorted(self.results, key=lambda result: result is not detailed)

    @classmethod
    def of_batches(cls, results: Sequence[TraceAnalysis | TraceFailure], sizes: Sequence[int] | None) -> Job:
        """Compare traces of one model; ``sizes`` are the batch sizes of all results, None for what their shapes say."""
        analyses = [result for result in results if isinstance(result, TraceAnalysis)]
        if sizes is not None:
            sizes = [size for size, one in zip(sizes, results, strict=True) if isinstance(one, TraceAnalysis)]
        return cls(tuple(results), None, compare_batches(analyses, sizes))

    @classmethod
    def of(cls, results: Sequence[TraceAnalysis | TraceFailure]) -> Job:
        """Compare the traces that could be analyzed, if there are several."""
        analyses = [result for result in results if isinstance(result, TraceAnalysis)]
        return cls(tuple(results), compare_ranks(analyses) if len(analyses) > 1 else None)


def compare_ranks(analyses: Sequence[TraceAnalysis]) -> RanksAnalysis:
    """Compare two or more traces as ranks of one job."""
    ordered = sorted(analyses, key=lambda analysis: (analysis.rank is None, analysis.rank or 0, analysis.path))
    matches = matched([analysis.collectives for analysis in ordered])
    transfers = _transfers(matches, len(ordered))
    ranks = tuple(_rank(*row) for row in zip(ordered, _labels(ordered), transfers, strict=True))
    by_collectives = any(rank.collectives for rank in ranks)
    delays = stragglers([rank.label for rank in ranks], matches)
    # What a rank passes on is another one's doing.
    own_ns = {holder.rank: holder.own_ns for holder in delays.holders} if delays is not None else {}
    slowest = max(
        ranks,
        key=lambda rank: (own_ns.get(rank.label, 0), -rank.wait_ns) if by_collectives else (rank.wall_ns, 0),
    )
    return RanksAnalysis(
        ranks,
        slowest.label,
        by_collectives,
        _spreads(ranks),
        _straggler(slowest, ranks),
        _notes(ordered, ranks, matches),
        delays,
        _path(ordered, ranks, matches),
        _findings(ranks, delays),
    )


def _findings(ranks: Sequence[RankTime], delays: Stragglers | None) -> tuple[Finding, ...]:
    """A finding for each rank that comes last in collectives, the longest lead first, thinned."""
    findings = []
    holders = sorted(delays.holders if delays is not None else (), key=lambda holder: -holder.lead_ns)
    for holder in holders[:_MOST_FINDINGS]:
        rank = next(rank for rank in ranks if rank.label == holder.rank)
        if not holder.lead_ns or not holder.lost_ns:
            continue
        more = _straggler(rank, ranks)
        share = holder.lead_ns / rank.wall_ns if rank.wall_ns else 0.0
        led = f", which spends {format_ns(more[0].excess_ns)} more in {more[0].name} than their median" if more else ""
        findings.append(
            Finding(
                "straggler",
                more[0].name if more else "unattributed",
                "",
                "a rank comes last in collectives, and all others wait for it",
                holder.lead_ns,
                tuple(Evidence(each.name, 1, each.excess_ns) for each in more[:MOST_EVIDENCE]),
                "",
                "what this rank does more of is listed: its share of data, its host, its device's clock",
                share=round(share, 5),
                sentence=f"the others wait {format_ns(holder.lead_ns)} ({share:.0%}) for {rank_name(rank.label)}{led}",
            )
        )
    return tuple(findings)


def _path(analyses: Sequence[TraceAnalysis], ranks: Sequence[RankTime], matches: Matched) -> PathOverRanks | None:
    chains = [
        RankPaths(rank.label, analysis.chains, analysis.collectives)
        for rank, analysis in zip(ranks, analyses, strict=True)
        if analysis.chains is not None
    ]
    return path_over_ranks(chains, matches) if len(chains) == len(ranks) else None


def _labels(analyses: Sequence[TraceAnalysis]) -> list[str]:
    """The rank; the path where there is none, or where two traces claim the same."""
    numbers = [analysis.rank for analysis in analyses]
    return [
        analysis.path if analysis.rank is None or numbers.count(analysis.rank) > 1 else str(analysis.rank)
        for analysis in analyses
    ]


def _transfers(matches: Matched, count: int) -> list[list[tuple[Collective, int]]]:
    """Per trace its collectives that another trace has too, each with its transfer time."""
    by_trace: list[list[tuple[Collective, int]]] = [[] for _ in range(count)]
    for parts in matches.shared:
        shortest_ns = min(one.dur_ns for _, one in parts)
        for number, one in parts:
            by_trace[number].append((one, shortest_ns))
    return by_trace


def _rank(analysis: TraceAnalysis, label: str, own: Sequence[tuple[Collective, int]]) -> RankTime:
    quantities = {f"host.{category.category}": category.ns for category in analysis.host}
    quantities |= dict.fromkeys((f"device.{name}" for name in ("compute", "communication", "copy", "idle")), 0)
    for device in analysis.devices:
        quantities["device.compute"] += device.kinds.compute_ns
        quantities["device.communication"] += device.kinds.communication_ns
        quantities["device.copy"] += device.kinds.copy_ns
        quantities["device.idle"] += device.idle_ns
    times = [(one.start_ns, one.dur_ns, one.dur_ns - transfer_ns) for one, transfer_ns in own]
    start_ns, dur_ns, waits_ns = np.array(times, dtype=np.int64).reshape(-1, 3).T
    # Collectives of two groups may run at one time.
    wait_ns, in_collectives = (union(start_ns, lasting_ns).total_ns for lasting_ns in (waits_ns, dur_ns))
    return RankTime(
        label, analysis.path, analysis.window.wall_ns, len(own), wait_ns, in_collectives - wait_ns, quantities
    )


def _begun_apart(analyses: Sequence[TraceAnalysis], ranks: Sequence[RankTime], matches: Matched) -> list[str]:
    """A note if recordings that begin at different times explain much of the waiting.

    The first collective of all ranks ends on them together, so it shows their beginnings and no clocks are compared.
    """
    parts = next((parts for parts in matches.shared if len(parts) == len(analyses)), ())
    if not parts:
        return []
    durations = np.array([one.dur_ns for _, one in parts], dtype=np.int64)
    before = np.array([one.end_ns - analyses[number].window.start_ns for number, one in parts], dtype=np.int64)
    earlier = np.maximum(before - before[durations.argmin()], 0)
    apart_ns, wait_ns = int(before.max() - before.min()), int(np.minimum(durations - durations.min(), earlier).sum())
    if not wait_ns or wait_ns < _BEGUN_APART_SHARE * sum(rank.wait_ns for rank in ranks):
        return []
    note = (
        f"the recordings begin up to {format_ns(apart_ns)} apart, and {format_ns(wait_ns)} of the waiting, in the first "
        "collective that all share, may be that alone: record several steps, or begin behind a barrier"
    )
    return [note]


def _spreads(ranks: Sequence[RankTime]) -> tuple[Spread, ...]:
    hosts = (f"host.{category}" for category in HOST_CATEGORIES)
    columns = {"wall": [rank.wall_ns for rank in ranks], "wait in collectives": [rank.wait_ns for rank in ranks]}
    columns |= {name: [rank.quantities.get(name, 0) for rank in ranks] for name in (*hosts, *ranks[0].quantities)}
    spreads = [
        Spread(name, min(times), median_low(times), max(times), ranks[times.index(max(times))].label)
        for name, times in columns.items()
        if max(times)
    ]
    return tuple(sorted(spreads, key=lambda spread: spread.min_ns - spread.max_ns))


def _straggler(slowest: RankTime, ranks: Sequence[RankTime]) -> tuple[Excess, ...]:
    excesses = [
        Excess(name, ns - median_low(rank.quantities.get(name, 0) for rank in ranks if rank is not slowest))
        for name, ns in slowest.quantities.items()
        if name not in ("host.wait", "device.communication", "device.idle")
    ]
    return tuple(sorted((excess for excess in excesses if excess.excess_ns > 0), key=lambda excess: -excess.excess_ns))


def _notes(analyses: Sequence[TraceAnalysis], ranks: Sequence[RankTime], matches: Matched) -> tuple[str, ...]:
    notes = []
    numbers = [analysis.rank for analysis in analyses if analysis.rank is not None]
    repeated = sorted({number for number in numbers if numbers.count(number) > 1})
    if repeated:
        notes.append(f"rank {', '.join(map(str, repeated))} is claimed by several traces: are they of one run?")
    if len(numbers) < len(analyses):
        notes.append(f"{len(analyses) - len(numbers)} traces do not say which rank they are")
    sizes = {analysis.world_size for analysis in analyses if analysis.world_size is not None}
    if len(sizes) > 1:
        notes.append(f"the traces are of jobs of different sizes ({', '.join(map(str, sorted(sizes)))} ranks)")
    elif sizes and len(set(numbers)) < (size := min(sizes)):
        notes.append(f"{len(set(numbers))} of {size} ranks are here: a rank that is missing may be the slowest")
    if len({rank.collectives for rank in ranks}) > 1:
        notes.append("the ranks took part in different numbers of collectives: were all of them recorded to the end?")
    collectives = [collective for analysis in analyses for collective in analysis.collectives]
    if collectives and not any(collective.group for collective in collectives):
        by = ", ".join(["name", *["size"] * matches.by_size, *["step"] * matches.by_step])
        notes.append(f"the traces do not name process groups: collectives are matched by {by} and order alone")
    notes += _begun_apart(analyses, ranks, matches)
    if matches.refuted:
        notes.append(
            f"{matches.refuted} kernels agree in all that the traces say with a collective of another rank "
            "and never ran together with it: they are taken for none; do the traces lack events?"
        )
    if matches.unordered:
        notes.append(
            f"{matches.unordered} collectives stand in another order on other ranks: some may be matched wrong"
        )
    if not any(rank.collectives for rank in ranks):
        notes.append("no collective is in two traces: the slowest rank has the longest window")
    return tuple(notes)
