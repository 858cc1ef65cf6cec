"""The terminal report of a comparison of ranks."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from overhead_lens.report.text.blocks import section
from overhead_lens.report.text.figures import figures
from overhead_lens.report.text.plain import plain
from overhead_lens.traces.ranks import RanksAnalysis
from overhead_lens.units import format_ns

_MOST_RANKS = 16
_MOST_SPREADS = 8
_MOST_CAUSES = 3


def print_ranks(console: Console, ranks: RanksAnalysis) -> None:
    """Print a comparison."""
    console.print()
    console.print(Text(sentence(ranks), style="bold"))
    console.print(section("ranks", _table(ranks)))
    console.print()
    console.print(section("spread over the ranks, widest first", _spreads(ranks)))
    for note in ranks.notes:
        console.print(Text(plain(note), style="yellow"), soft_wrap=True)


def sentence(ranks: RanksAnalysis) -> str:
    """Who is slow and why, in words."""
    waits = [rank.wait_ns for rank in ranks.ranks]
    if ranks.by_collectives and min(waits) == max(waits):
        return f"All {len(ranks.ranks)} ranks wait equally long for each other: none holds the others up."
    why = "the others wait for it in collectives" if ranks.by_collectives else "it has the longest window"
    text = f"{plain(ranks.slowest)} is the slowest of {len(ranks.ranks)} ranks: {why}"
    causes = [f"{excess.name} +{format_ns(excess.excess_ns)}" for excess in ranks.straggler[:_MOST_CAUSES]]
    if causes:
        text += f"; beyond the median of the others it spends {', '.join(causes)}"
    return text + "."


def _table(ranks: RanksAnalysis) -> Table:
    names = ("rank", "window", "collectives", "waiting in them", "transfer", "compute", "idle")
    table = figures(*names, left=["rank"])
    shown = sorted(ranks.ranks, key=lambda rank: rank.wait_ns)[:_MOST_RANKS]
    for rank in filter(shown.__contains__, ranks.ranks):
        table.add_row(
            Text(plain(rank.label), style="bold" if rank.label == ranks.slowest else ""),
            format_ns(rank.wall_ns),
            f"{rank.collectives:,}",
            format_ns(rank.wait_ns),
            format_ns(rank.transfer_ns),
            format_ns(rank.quantities["device.compute"]),
            format_ns(rank.quantities["device.idle"]),
        )
    if len(ranks.ranks) > _MOST_RANKS:
        table.add_row(Text(f"{len(ranks.ranks) - _MOST_RANKS} more that wait longer", style="dim"))
    return table


def _spreads(ranks: RanksAnalysis) -> Table:
    table = figures("", "min", "median", "max", "of rank", left=["", "of rank"])
    for spread in ranks.spreads[:_MOST_SPREADS]:
        times = (format_ns(ns) for ns in (spread.min_ns, spread.median_ns, spread.max_ns))
        table.add_row(spread.name, *times, Text(plain(spread.max_rank)))
    return table
