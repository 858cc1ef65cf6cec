"""The terminal report of a difference in structure between two traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, cut, section
from overhead_lens.report.text.figures import figures, plain_figures
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.structure.model import KINDS, Divided, Side, StructureChange, StructureDelta
from overhead_lens.units import format_ns, format_signed_ns

_MOST = 12
_MOST_SWAPS = 8
_MOST_DEVICES = 2
_MOST_LEADING = 3
_COLUMNS = 58
_PLURALS = {"operator": "operators", "kernel": "kernels", "launch": "launches"}
LONGER, SHORTER = "red", "bright_blue"


def print_structure(console: Console, delta: StructureDelta) -> None:
    """Print a difference: how long a step takes, what makes the difference, then other counts of events."""
    console.print(Text(answer(delta), style="bold"))
    console.print(Text(f"base {in_words(delta.base)}\nnew  {in_words(delta.new)}"))
    width = max(20, console.width - _COLUMNS)
    for divided in delta.divided[: 1 + _MOST_DEVICES]:
        console.print()
        console.print(section(heading(divided, delta), _self_times(divided, delta, width)))
    console.print()
    console.print(Text(sentence(delta)))
    for title, changes in groups(delta):
        console.print()
        console.print(section(f"{title}, largest change of time first", _changes(delta, changes, width)))
    if delta.swaps:
        console.print()
        console.print(section(f"other kernels under the same operator{_unit(delta)}", _swaps(delta, console.width)))


def answer(delta: StructureDelta) -> str:
    """How long a step takes now, and what makes most of the difference."""
    base, new = delta.base.step_ns, delta.new.step_ns
    ratio = f" ({new / base:.2f}x)" if base else ""
    text = f"{'step' if delta.per_step else 'window'} {format_ns(base)} → {format_ns(new)}{ratio}"
    led = [each for each in delta.divided[0].names[:_MOST_LEADING] if each.delta_ns] if delta.divided else []
    most = ", ".join(f"{cut(plain(each.name))} {format_signed_ns(each.delta_ns)}" for each in led)
    return text + (f": {most}" if most else "")


def heading(divided: Divided, delta: StructureDelta) -> str:
    """Whose time it is, and what it sums to."""
    where = "busiest thread" if divided.where == "host" else f"device {divided.where}"
    return f"{where}: self time{_unit(delta)}, which sums to {format_signed_ns(delta.new.step_ns - delta.base.step_ns)}"


def self_time_cells(divided: Divided, delta: StructureDelta, most: int) -> Cells:
    """The largest differences, what the other names sum to, and the sum."""
    moved = [each for each in divided.names if each.delta_ns]
    rows = [_cells(each.name, each.base_ns, each.new_ns) for each in moved[:most]]
    shown = moved[:most]
    base_ns, new_ns = delta.base.step_ns, delta.new.step_ns
    if len(shown) < len(divided.names):
        others = (base_ns - sum(each.base_ns for each in shown), new_ns - sum(each.new_ns for each in shown))
        rows.append(_cells(f"({len(divided.names) - len(shown):,} others)", *others))
    rows.append(_cells("sum", base_ns, new_ns))
    return ("difference", "base", "new", "name"), rows


def _cells(name: str, base_ns: int, new_ns: int) -> Sequence[str]:
    return format_signed_ns(new_ns - base_ns), format_ns(base_ns), format_ns(new_ns), plain(name)


def _self_times(divided: Divided, delta: StructureDelta, width: int) -> Table:
    heads, rows = self_time_cells(divided, delta, _MOST)
    table = figures(*heads[:-1])
    table.add_column(heads[-1], no_wrap=True, overflow="ellipsis")
    for change, base, new, name in rows:
        table.add_row(
            Text(change, style=LONGER if change.startswith("+") else SHORTER), base, new, Text(cut(name, width))
        )
    return table


def groups(delta: StructureDelta) -> Iterator[tuple[str, list[StructureChange]]]:
    """Names of other counts, by kind; no empty ones."""
    for kind in KINDS:
        changes = [change for change in delta.changes if change.kind == kind and change.status != "same"]
        if changes:
            yield f"{kind}: other counts", changes


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


def in_words(side: Side) -> str:
    """A trace: its file and what it holds."""
    steps = f", {side.steps} steps" if side.steps else ""
    return plain(f"{side.path}   {format_ns(side.wall_ns)}, {side.events:,} events{steps}")


def _changes(delta: StructureDelta, changes: Sequence[StructureChange], width: int) -> Table:
    heads, rows = change_cells(delta, changes[:_MOST])
    table = figures(*heads[:2], left=[""])
    table.add_column("name", no_wrap=True, overflow="ellipsis")
    for counts, status, name in rows:
        table.add_row(counts, status, Text(cut(name, width)))
    if len(changes) > _MOST:
        table.add_row("", "", Text(f"{len(changes) - _MOST} more", style="dim"))
    return table


def change_cells(delta: StructureDelta, changes: Sequence[StructureChange]) -> Cells:
    """What changed of each name: count, status. Its time is of whole calls, which hold one another, and not told here."""
    base, new = _units(delta)
    rows = [
        (f"{_count(change.base_count / base)} → {_count(change.new_count / new)}", change.status, name_of(change))
        for change in changes
    ]
    return (f"count{_unit(delta)}", "", "name"), rows


def name_of(change: StructureChange) -> str:
    """The name as people read it."""
    return plain(kernel_name(change.name) if change.kind == "kernel" else change.name)


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
    for operator, mark, amount, kernel, more in swap_rows(delta, _MOST_SWAPS):
        table.add_row(Text(operator, style="bold"), amount, Text(f"{mark} {cut(kernel, width - 60)}{more}"))
    if len(delta.swaps) > _MOST_SWAPS:
        table.add_row(Text(f"{len(delta.swaps) - _MOST_SWAPS} more", style="dim"))
    return table


def swap_rows(delta: StructureDelta, most: int) -> Iterator[tuple[str, str, str, str, str]]:
    """Two rows a swap, before and after: operator, ``-`` or ``+``, count and time, a kernel, and how many more there are."""
    units = _units(delta)
    for swap in delta.swaps[:most]:
        for mark, kernels, count, ns in (
            ("-", swap.base_kernels, swap.base_count / units[0], swap.base_ns / units[0]),
            ("+", swap.new_kernels, swap.new_count / units[1], swap.new_ns / units[1]),
        ):
            more = f" and {len(kernels) - 1} more" if len(kernels) > 1 else ""
            operator = plain(swap.operator) if mark == "-" else ""
            yield operator, mark, f"{_count(count)}x {format_ns(ns)}", plain(kernel_name(kernels[0])), more


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
