"""The terminal report of a difference: categories, what moved, factors of the ratio."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from overhead_lens.comparison.contributors import guard_kinds_in_words
from overhead_lens.comparison.factors import Factors, describe_kernel
from overhead_lens.comparison.instructions import InstructionDelta, signed_count, signed_share
from overhead_lens.comparison.model import CategoryChange, Delta
from overhead_lens.report.text.blocks import cut, interval_text, print_footnotes, section, side_titles
from overhead_lens.report.text.figures import figures
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.categories import COLORS
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.units import format_ns, format_signed_ns


def print_delta(console: Console, delta: Delta) -> None:
    """Print a difference of two budgets."""
    base, new = delta.base, delta.new
    console.print(Text("  →  ".join(side_titles(base, new)), style="bold"))
    ratio = "" if delta.ratio is None else f"  ({delta.ratio:.3f}x)"
    wall = f"wall {format_ns(base.wall.ns)} → {format_ns(new.wall.ns)}{ratio}, difference {interval_text(delta.wall_ci95_ns)}"
    console.print(Text(wall))
    console.print(Group(changes_table(delta.host, base.host, new.host), *_by_frames(delta)))
    console.print(Text(plain(delta.sentence), style="bold"))
    if kinds := guard_kinds_in_words(base, new):
        console.print(Text(f"guards: {plain(kinds)}"))
    if delta.factors is not None:
        console.print()
        console.print(_factors(delta.factors))
    if delta.instructions is not None:
        console.print()
        print_instruction_delta(console, delta.instructions)
    print_footnotes(console, delta.warnings)


def changes_table(
    changes: Sequence[CategoryChange], base: Sequence[HostCategory], new: Sequence[HostCategory]
) -> Table:
    """A row for each category that either side has, with what moved most in it."""
    left = ("category", "95 % interval", "verdict")
    table = figures("category", "base", "new", "difference", "95 % interval", "verdict", left=left)
    # The only one that gives way where the terminal is narrow: a figure that is cut is another figure.
    table.add_column("moved most", overflow="fold")
    for change, old, recent in zip(changes, base, new, strict=True):
        if old.ns == recent.ns == 0:
            continue
        largest = next(iter(change.contributors), None)
        moved = f"{format_signed_ns(largest.delta_ns)} {plain(largest.name)}" if largest else ""
        table.add_row(
            Text(change.category, style=COLORS[change.category]),
            format_ns(old.ns),
            format_ns(recent.ns),
            format_signed_ns(change.delta_ns),
            interval_text(change.ci95_ns),
            f"{change.verdict}*" if change.only_in_frames else change.verdict,
            Text(cut(moved), style="dim"),
        )
    return table


def _by_frames(delta: Delta) -> list[Text]:
    """What the mark beside a verdict means."""
    known = [
        f"{change.category} {format_signed_ns(change.in_frames_ns)}"
        for change in delta.host
        if change.only_in_frames and change.in_frames_ns is not None
    ]
    line = f"* not by its own interval, but by frames that are known to have moved: {', '.join(known)}"
    return [Text(line, style="dim")] if known else []


def print_instruction_delta(console: Console, delta: InstructionDelta) -> None:
    """Print a difference in instructions per call: categories, the function that moved most, a sentence."""
    table = figures("", "base", "new", "difference", "of the base", left=[""])
    table.add_column("moved most", overflow="fold")
    for change in delta.host:
        if not change.base_count and not change.new_count:
            continue
        moved = (
            f"{signed_count(change.contributors[0].delta_count)} {plain(change.contributors[0].name)}"
            if change.contributors
            else ""
        )
        table.add_row(
            Text(change.category, style=COLORS[change.category]),
            f"{change.base_count:,}",
            f"{change.new_count:,}",
            signed_count(change.delta_count),
            signed_share(change.delta_count, delta.base_count),
            Text(moved, style="dim"),
        )
    table.add_row(
        Text("sum", style="bold"),
        f"{delta.base_count:,}",
        f"{delta.new_count:,}",
        signed_count(delta.delta_count),
        signed_share(delta.delta_count, delta.base_count),
        "",
    )
    console.print(section("instructions per call (callgrind)", table))
    console.print(Text(delta.sentence, style="bold"))


def _factors(factors: Factors) -> RenderableType:
    table = figures("factor", "base", "new", "difference", "share", "ratio without it", left=["factor"])
    for part in factors.parts:
        if part.base_ns or part.new_ns:
            per_unit = [ns / factors.units for ns in (part.base_ns, part.new_ns)]
            ratio = factors.ratio_without(part)
            table.add_row(
                Text(f"{part.name}{' (estimate)' if part.estimate else ''}", style=COLORS[part.name.partition(":")[0]]),
                *(format_ns(ns) for ns in per_unit),
                format_signed_ns(part.delta_ns / factors.units),
                f"{factors.share(part):.0%}",
                "" if ratio is None else f"{ratio:.1f}x",
            )
    walls = (factors.base_ns / factors.units, factors.new_ns / factors.units)
    ratio = max(walls) / min(walls) if min(walls) else None
    whole = f"{ratio:.1f}x" if ratio else ""
    table.add_row(
        Text("sum = wall", style="bold"), *map(format_ns, walls), format_signed_ns(walls[1] - walls[0]), "100%", whole
    )
    lines = describe_kernel(factors.kernel) if factors.kernel is not None else []
    notes = [Text(plain(line), style="dim") for line in lines]
    return section(f"factors of the ratio, per unit of work ({factors.units:,} units)", Group(table, *notes))
