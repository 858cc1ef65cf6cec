"""The terminal report of a difference in structure between two traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from overhead_lens.report.text.blocks import cut, section
from overhead_lens.report.text.figures import figures, plain_figures
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.structure.model import KINDS, Side, StructureChange, StructureDelta
from overhead_lens.units import format_ns

_MOST = 12
_MOST_SWAPS = 8
_COLUMNS = 58
_PLURALS = {"operator": "operators", "kernel": "kernels", "launch": "launches"}
_COLORS = {"appeared": "green", "vanished": "red", "changed": "yellow", "same": "bright_black"}


def print_structure(console: Console, delta: StructureDelta) -> None:
    """Print a difference."""
    console.print(Text(f"base {_side(delta.base)}\nnew  {_side(delta.new)}"))
    console.print(Text(sentence(delta), style="bold"))
    width = max(20, console.width - _COLUMNS)
    for kind in KINDS:
        moved = [change for change in delta.changes if change.kind == kind and change.status != "same"]
        slower = [
            change for change in delta.changes if change.kind == kind and change.status == "same" and change.delta_ns
        ]
        for title, changes in ((f"{kind}: other counts", moved), (f"{kind}: same counts, other times", slower)):
            if changes:
                console.print()
                console.print(section(f"{title}, largest change of time first", _changes(delta, changes, width)))
    if delta.swaps:
        console.print()
        console.print(section(f"other kernels under the same operator{_unit(delta)}", _swaps(delta, console.width)))


def sentence(delta: StructureDelta) -> str:
    """What changed, in words."""
    how = "per step" if delta.per_step else "in all (not both traces have steps: totals are compared)"
    if delta.is_same:
        return f"The same operators, kernels and launches {how}."
    parts = []
    for kind in KINDS:
        counts = Counter(change.status for change in delta.changes if change.kind == kind)
        told = [f"{counts[status]} {status}" for status in ("appeared", "vanished", "changed") if counts[status]]
        if told:
            parts.append(f"{_PLURALS[kind]}: {', '.join(told)}")
    return f"{'; '.join(parts)}; compared {how}."


def _side(side: Side) -> str:
    steps = f", {side.steps} steps" if side.steps else ""
    return plain(f"{side.path}   {format_ns(side.wall_ns)}, {side.events:,} events{steps}")


def _changes(delta: StructureDelta, changes: Sequence[StructureChange], width: int) -> Table:
    table = figures(f"time{_unit(delta)}", f"count{_unit(delta)}", "", left=[""])
    table.add_column("name", no_wrap=True, overflow="ellipsis")
    units = _units(delta)
    for change in changes[:_MOST]:
        sign = "+" if change.delta_ns >= 0 else "-"
        counts = f"{_count(change.base_count / units[0])} → {_count(change.new_count / units[1])}"
        name = kernel_name(change.name) if change.kind == "kernel" else change.name
        table.add_row(
            f"{sign}{format_ns(abs(change.delta_ns))}",
            counts,
            Text(change.status, style=_COLORS[change.status]),
            Text(cut(plain(name), width)),
        )
    if len(changes) > _MOST:
        table.add_row("", "", "", Text(f"{len(changes) - _MOST} more", style="dim"))
    return table


def _unit(delta: StructureDelta) -> str:
    return " per step" if delta.per_step else ""


def _units(delta: StructureDelta) -> tuple[int, int]:
    """What counts and times of either side are divided by: its steps."""
    return max(1, delta.base.steps), max(1, delta.new.steps)


def _swaps(delta: StructureDelta, width: int) -> Table:
    table = plain_figures()
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    units = _units(delta)
    for swap in delta.swaps[:_MOST_SWAPS]:
        for mark, kernels, count, ns in (
            ("-", swap.base_kernels, swap.base_count / units[0], swap.base_ns / units[0]),
            ("+", swap.new_kernels, swap.new_count / units[1], swap.new_ns / units[1]),
        ):
            more = f" and {len(kernels) - 1} more" if len(kernels) > 1 else ""
            style = _COLORS["vanished" if mark == "-" else "appeared"]
            table.add_row(
                Text(plain(swap.operator) if mark == "-" else "", style="bold"),
                f"{_count(count)}x {format_ns(ns)}",
                Text(f"{mark} {cut(plain(kernel_name(kernels[0])), width - 60)}{more}", style=style),
            )
    if len(delta.swaps) > _MOST_SWAPS:
        table.add_row(Text(f"{len(delta.swaps) - _MOST_SWAPS} more", style="dim"))
    return table


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
