"""The host's budget as a table: categories with their parts, bars and intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from overhead_lens.report.text.blocks import BAR_WIDTH, bar, bounds_cell, interval_text
from overhead_lens.report.text.figures import figures, plain_figures
from overhead_lens.report.text.plain import plain
from overhead_lens.stats.estimate import Measured
from overhead_lens.taxonomy.categories import COLORS
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.units import format_ns


def host_table(host: Sequence[HostCategory], wall: Measured, *, per: str = "call", units: int = 1) -> Table:
    """Categories that have time, and their sum.

    Args:
        host: Sums to the wall.
        wall: The whole, with its interval.
        per: What the times are of: ``call``, ``step``.
        units: Units of work in it; above 1 there is a column of time per unit.
    """
    unit = ("per unit",) if units > 1 else ()
    table = figures("where", "", "share", f"per {per}", *unit, "95 % interval", left=["where", "", "95 % interval"])
    table.columns[1].width = BAR_WIDTH
    for category in host:
        if category.ns or category.category == "unattributed":
            for row in _rows(category, wall.ns, units):
                table.add_row(*row)
    total: list[RenderableType] = [Text("sum = wall", style="bold"), "", "100 %", format_ns(wall.ns)]
    total += [format_ns(wall.ns / units)] if units > 1 else []
    table.add_row(*total, bounds_cell(wall))
    return table


def costliest_frames(host: Sequence[HostCategory], most: int) -> list[tuple[int, str, str]]:
    """Self time in ns, category and name of the frames with the most, at most ``most`` of them."""
    frames = [(frame.ns, category.category, frame.frame) for category in host for frame in category.top if frame.ns]
    return sorted(frames, key=lambda item: -item[0])[:most]


def frames_table(frames: Sequence[tuple[int, str, str]], wall_ns: int) -> Table:
    """Frames of ``costliest_frames`` with their shares of ``wall_ns``."""
    table = plain_figures()
    for justify in ("right", "right", "left", "left"):
        table.add_column(justify=justify, no_wrap=justify == "right")
    for ns, category, frame in frames:
        share = f"{ns / max(1, wall_ns):.1%}"
        table.add_row(format_ns(ns), share, Text(category, style=COLORS[category]), Text(plain(frame)))
    return table


def _rows(category: HostCategory, wall_ns: float, units: int) -> Iterator[Sequence[RenderableType]]:
    color = COLORS[category.category]
    mark = " (trace)" if category.evidence == "trace" else ""
    yield [
        Text(category.category + mark, style=f"bold {color}"),
        Text(bar(category.share), style=color),
        f"{category.share:.1%}",
        format_ns(category.ns),
        *([format_ns(category.ns / units)] if units > 1 else []),
        interval_text(category.ci95_ns),
    ]
    for part in category.parts:
        if part.ns:
            share = part.ns / wall_ns
            unit = [Text(format_ns(part.ns / units), style="dim")] if units > 1 else []
            name, size = Text(f"  {part.name}", style="dim"), Text(format_ns(part.ns), style="dim")
            yield [name, Text(bar(share), style=f"dim {color}"), Text(f"{share:.1%}", style="dim"), size, *unit, ""]
