"""Collectives of a recorded trace in the terminal, and how ranks hold each other up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, cut, section, table_of, without_empty
from overhead_lens.report.text.plain import plain
from overhead_lens.report.text.recorded.counters import bandwidth
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.collectives.model import Collective, CollectiveCost
from overhead_lens.traces.collectives.stragglers import Stragglers, Transfer
from overhead_lens.units import format_bytes, format_ns

_TOP = 4
_NAME = 40


def collective_blocks(many: Sequence[Collective], costs: Sequence[CollectiveCost]) -> Iterator[RenderableType]:
    """The printed blocks: the most exposed collectives.

    Args:
        many: All of them.
        costs: The same by kind and size.
    """
    if not costs:
        return
    cells = without_empty(collective_cells(costs, _TOP), ("-",))
    total_ns, hidden_ns = sum(one.dur_ns for one in many), sum(one.hidden_ns for one in many)
    title = (
        f"collectives, the most exposed first; {format_ns(hidden_ns)} of {format_ns(total_ns)} hidden behind compute"
    )
    yield section(title, table_of(cells, left=("collective", "type")))


def collective_cells(costs: Sequence[CollectiveCost], most: int) -> Cells:
    """Collectives by kind and size."""
    heads = ("exposed", "hidden", "count", "size", "ranks", "algorithm", "bus", "bus, best", "collective", "type")
    return heads, [_row(cost) for cost in costs[:most]]


def _row(cost: CollectiveCost) -> Sequence[str]:
    return (
        format_ns(cost.exposed_ns),
        format_ns(cost.hidden_ns),
        f"{cost.count:,}",
        "-" if cost.bytes is None else format_bytes(cost.bytes),
        "-" if cost.group_size is None else f"{cost.group_size:,}",
        bandwidth(cost.algorithm_gb_s),
        bandwidth(cost.bus_gb_s),
        bandwidth(cost.best_bus_gb_s),
        called(cost),
        plain(cost.dtype) or "-",
    )


def called(cost: CollectiveCost) -> str:
    """Kind of a collective, else its kernel."""
    return cost.kind or cut(plain(kernel_name(cost.name)), _NAME)


def straggler_blocks(found: Stragglers) -> Iterator[RenderableType]:
    """The stragglers in a few lines."""
    lines = straggler_lines(found)
    if lines:
        yield Group(*(Text(line, overflow="fold") for line in lines))


def straggler_lines(found: Stragglers) -> list[str]:
    """The straggler, whether it is the same from step to step, and the propagated lag."""
    if not found.holders:
        return []
    first = found.holders[0]
    text = f"The others wait most for rank {plain(first.rank)}: it comes last {first.last:,} times and costs them "
    text += (
        f"{format_ns(first.lost_ns)} together; at most {format_ns(first.lead_ns)} sooner would these collectives end."
    )
    lines = [text]
    if found.pairs:
        stays = _stays(found.repeated, found.pairs)
        lines.append(f"{stays}: in {found.repeated} of {found.pairs} steps it is the rank of the step before.")
    passed_ns = sum(holder.passed_on_ns for holder in found.holders)
    if passed_ns:
        lost_ns = sum(holder.lost_ns for holder in found.holders)
        lines.append(
            f"{passed_ns / lost_ns:.0%} of all waiting is propagated: the last rank had itself waited in another group before."
        )
    return lines


def _stays(repeated: int, pairs: int) -> str:
    if repeated == pairs:
        return "It is the same rank throughout"
    return "The rank that holds the others up changes from step to step" if not repeated else "It changes now and then"


def step_cells(found: Stragglers, most: int) -> Cells:
    """Steps of all ranks: who held the others up."""
    rows = [
        (
            f"{step.step:,}",
            f"{step.collectives:,}",
            format_ns(step.lost_ns),
            plain(step.holder or "-"),
            format_ns(step.holder_ns),
            "-" if step.again is None else "yes" if step.again else "no",
        )
        for step in found.steps[:most]
    ]
    return ("step", "collectives", "all waits", "most for rank", "of it", "as before"), rows


def holder_cells(found: Stragglers, most: int) -> Cells:
    """Ranks that others waited for."""
    rows = [
        (plain(one.rank), f"{one.last:,}", *map(format_ns, (one.lost_ns, one.own_ns, one.passed_on_ns, one.lead_ns)))
        for one in found.holders[:most]
    ]
    return ("rank", "last in", "others wait", "by its own work", "propagated", "later than the last but one"), rows


def transfer_cells(transfers: Sequence[Transfer], most: int) -> Cells:
    """Collectives without the wait for each other."""
    rows = [
        (
            one.kind,
            plain(one.dtype) or "-",
            format_bytes(one.bytes),
            "-" if one.group_size is None else f"{one.group_size:,}",
            f"{one.count:,}",
            format_ns(one.transfer_ns),
            bandwidth(one.algorithm_gb_s),
            bandwidth(one.bus_gb_s),
        )
        for one in transfers[:most]
    ]
    return ("collective", "type", "size", "ranks", "count", "transfer", "algorithm", "bus"), rows
