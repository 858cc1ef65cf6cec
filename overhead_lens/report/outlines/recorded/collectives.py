"""Collectives of a recorded trace in words, and how ranks hold each other up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.cells import heads, row, time
from overhead_lens.report.outline import Block, Notes, Row, Section, Table
from overhead_lens.report.outlines.recorded.counters import rate
from overhead_lens.report.text.blocks import counted, cut
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.collectives.model import Collective, CollectiveCost
from overhead_lens.traces.collectives.stragglers import Stragglers, rank_name
from overhead_lens.units import format_bytes, format_ns

_MOST_ROWS = 50
_NAME = 40
_DEFINED = (
    "Size and bandwidth as NCCL-tests define them (doc/PERFORMANCE.md). A kernel's duration holds its wait for the other ranks: "
    "on one rank bandwidths are lower bounds. Hidden is time in which compute runs on the same device."
)


def collective_section(many: Sequence[Collective], costs: Sequence[CollectiveCost]) -> Section | None:
    """Collectives by kind and size (``costs``), the most exposed first."""
    if not costs:
        return None
    total_ns, hidden_ns = sum(one.dur_ns for one in many), sum(one.hidden_ns for one in many)
    hidden = f"{format_ns(hidden_ns)} of {format_ns(total_ns)} hidden behind compute"
    heading = f"Collectives, the most exposed first; {hidden}"
    columns = heads(">exposed | >hidden | >count | >size | >ranks ~3")
    columns += heads(">algorithm ~2 | >bus | >bus, best ~1 | collective | type ~4")
    table = Table(columns, list(map(_row, costs[:_MOST_ROWS])))
    return Section.folded(heading, table, Notes([_DEFINED]))


def _row(cost: CollectiveCost) -> Row:
    bandwidths = map(rate, (cost.algorithm_gb_s, cost.bus_gb_s, cost.best_bus_gb_s))
    size = "-" if cost.bytes is None else format_bytes(cost.bytes)
    of_ranks = "-" if cost.group_size is None else cost.group_size
    named = cost.kind or cut(kernel_name(cost.name), _NAME)
    times = map(time, (cost.exposed_ns, cost.hidden_ns))
    return row(*times, cost.count, size, of_ranks, *bandwidths, named, cost.dtype or "-")


def straggler_lines(stragglers: Stragglers) -> list[str]:
    """Who holds the others up, whether it stays the same from step to step, and what is propagated."""
    if not stragglers.holders:
        return []
    first, repeated, pairs = stragglers.holders[0], stragglers.repeated, stragglers.pairs
    costs = f"it comes last {counted(first.last, 'time')}, and their waits for it sum to {format_ns(first.lost_ns)}"
    sooner = f"If only it were faster, these collectives would end at most {format_ns(first.lead_ns)} sooner"
    lines = [f"The others wait most for {rank_name(first.rank)}: {costs}. {sooner}."]
    if pairs:
        lines.append(
            f"{_stays(repeated, pairs)}: in {repeated} of {counted(pairs, 'step')} it is the rank of the step before."
        )
    if passed_ns := sum(holder.passed_on_ns for holder in stragglers.holders):
        passed = f"{passed_ns / sum(holder.lost_ns for holder in stragglers.holders):.0%} of all waiting is propagated"
        lines.append(f"{passed}: the last rank had itself waited in another group before.")
    return lines


def _stays(repeated: int, pairs: int) -> str:
    if repeated == pairs:
        return "It is the same rank throughout"
    return "The rank that holds the others up changes from step to step" if not repeated else "It changes now and then"


def straggler_blocks(stragglers: Stragglers) -> Iterator[Block]:
    """Who holds the ranks up, step by step; collectives without the wait for each other."""
    holders = [
        row(one.rank, one.last, *map(time, (one.lost_ns, one.own_ns, one.passed_on_ns, one.lead_ns)))
        for one in stragglers.holders[:_MOST_ROWS]
    ]
    columns = heads("rank | >last in | >others wait | >by its own work | >propagated | >later than the last but one")
    yield Table(columns, holders, "ranks that others wait for")
    steps = []
    for step in stragglers.steps[:_MOST_ROWS]:
        most = (step.holder or "-", time(step.holder_ns), {None: "-", True: "yes", False: "no"}[step.again])
        steps.append(row(step.step, step.collectives, time(step.lost_ns), *most))
    columns = heads(">step | >collectives | >all waits | most for rank | >of it | as before")
    yield Table(columns, steps, "waiting in collectives, step by step")
    transfers = []
    for one in stragglers.transfers[:_MOST_ROWS]:
        of = (one.kind, one.dtype or "-", format_bytes(one.bytes), "-" if one.group_size is None else one.group_size)
        rates = (rate(one.algorithm_gb_s), rate(one.bus_gb_s))
        transfers.append(row(*of, one.count, time(one.transfer_ns), *rates))
    columns = heads("collective | type | >size | >ranks | >count | >transfer | >algorithm | >bus")
    yield Table(columns, transfers, "collectives by the rank that came last, without waits")
