"""The terminal report of a comparison of ranks."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, section, table_of
from overhead_lens.report.text.figures import figures
from overhead_lens.report.text.plain import plain
from overhead_lens.report.text.recorded.collectives import straggler_blocks
from overhead_lens.report.text.recorded.critical_path import over_ranks_blocks, over_ranks_notes
from overhead_lens.report.text.recorded.findings import finding_blocks
from overhead_lens.traces.ranks import RanksAnalysis, RankTime
from overhead_lens.units import format_ns

_MOST_RANKS = 16
_MOST_SPREADS = 8
_MOST_CAUSES = 3


def print_ranks(console: Console, ranks: RanksAnalysis) -> None:
    """Print a comparison."""
    console.print(Text(sentence(ranks), style="bold"))
    for block in finding_blocks(ranks.findings, whole=False):
        console.print(block)
    for block in straggler_blocks(ranks.stragglers) if ranks.stragglers is not None else ():
        console.print(block)
    for block in over_ranks_blocks(ranks.critical_path):
        console.print(block)
    console.print(section("ranks", _table(ranks)))
    console.print()
    console.print(section("spread over the ranks, widest first", _spreads(ranks)))
    for note in (*ranks.notes, *over_ranks_notes(ranks.critical_path)):
        console.print(Text(plain(note), style="yellow"), soft_wrap=True)


def sentence(ranks: RanksAnalysis) -> str:
    """The straggler and the reason, in a sentence."""
    waits = [rank.wait_ns for rank in ranks.ranks]
    if ranks.by_collectives and min(waits) == max(waits):
        return f"All {len(ranks.ranks)} ranks wait equally long for each other: none holds the others up."
    why = "the others wait for it in collectives" if ranks.by_collectives else "it has the longest window"
    name = f"Rank {ranks.slowest}" if ranks.slowest.isdecimal() else plain(ranks.slowest)
    text = f"{name} is the slowest of {len(ranks.ranks)} ranks: {why}"
    causes = [f"{excess.name} +{format_ns(excess.excess_ns)}" for excess in ranks.straggler[:_MOST_CAUSES]]
    if causes:
        text += f"; beyond the median of the others it spends {', '.join(causes)}"
    return text + "."


def _table(ranks: RanksAnalysis) -> Table:
    (_, *heads), rows = rank_cells(ranks)
    table = figures("rank", *heads, left=["rank"])
    for label, *cells in rows:
        table.add_row(Text(label, style="bold" if label == plain(ranks.slowest) else ""), *cells)
    if len(ranks.ranks) > _MOST_RANKS:
        table.add_row(Text(f"{len(ranks.ranks) - _MOST_RANKS} more that wait longer", style="dim"))
    return table


def rank_cells(ranks: RanksAnalysis, most: int = _MOST_RANKS) -> Cells:
    """Each rank's time in collectives and on its devices; at most ``most`` ranks, those that wait least."""
    shown = sorted(ranks.ranks, key=lambda rank: rank.wait_ns)[:most]
    heads = ("rank", "window", "collectives", "waiting in them", "transfer", "compute", "idle")
    return heads, [_rank(rank) for rank in ranks.ranks if rank in shown]


def _rank(rank: RankTime) -> Sequence[str]:
    return (
        plain(rank.label),
        format_ns(rank.wall_ns),
        f"{rank.collectives:,}",
        format_ns(rank.wait_ns),
        format_ns(rank.transfer_ns),
        format_ns(rank.quantities["device.compute"]),
        format_ns(rank.quantities["device.idle"]),
    )


def _spreads(ranks: RanksAnalysis) -> Table:
    return table_of(spread_cells(ranks), left=["", "of rank"])


def spread_cells(ranks: RanksAnalysis, most: int = _MOST_SPREADS) -> Cells:
    """The quantities in which the ranks differ most."""
    rows = [
        (spread.name, *map(format_ns, (spread.min_ns, spread.median_ns, spread.max_ns)), plain(spread.max_rank))
        for spread in ranks.spreads[:most]
    ]
    return ("", "min", "median", "max", "of rank"), rows
