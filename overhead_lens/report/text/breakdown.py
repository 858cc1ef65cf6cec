"""The terminal report of a budget: one screen that a person reads at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from overhead_lens.budget.model import Breakdown, GuardGroup, Operator, Reading
from overhead_lens.report.text.blocks import (
    bar_row,
    bounds_text,
    call_title,
    cut,
    interval_text,
    print_footnotes,
    section,
)
from overhead_lens.report.text.figures import figures, plain_figures
from overhead_lens.report.text.host import host_table
from overhead_lens.report.text.plain import plain
from overhead_lens.samplers.py_spy import PySpy
from overhead_lens.taxonomy.categories import COLORS
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.units import format_ns, format_rate

_TOP = 5
_MOST_LAYERS = 3
_PLACES = {"root": "at the root", "inside": "below it", "python": "calling Python"}
_MOST_GUARDS = 6
_MOST_PUBLISHED = 5
_TREE_SHARE = 0.02
_TREE_DEPTH = 5


def summary(breakdown: Breakdown) -> RenderableType:
    """The headline, the categories with their parts, and what dominates."""
    table = host_table(breakdown.host, breakdown.wall, units=breakdown.units)
    return Group(_headline(breakdown), table, Text(sentence(breakdown), style="bold"))


def print_breakdown(console: Console, breakdown: Breakdown) -> None:
    """Print a budget: its summary, costliest frames, guards, operators, warnings."""
    console.print(summary(breakdown))
    for block in (
        _device(breakdown),
        _instructions(breakdown),
        _frames(breakdown),
        _guards(breakdown),
        _operators(breakdown),
        _checks(breakdown),
        _published(breakdown),
    ):
        if block is not None:
            console.print()
            console.print(block)
    print_footnotes(console, breakdown.warnings)
    if any(category.evidence == "samples" for category in breakdown.host):
        console.print(Text(f"samples: {PySpy.sees.sentence}", style="dim"), soft_wrap=True)
    if breakdown.capture:
        console.print(Text(f"capture: {plain(breakdown.capture)}", style="dim"), soft_wrap=True)


def sentence(breakdown: Breakdown) -> str:
    """What dominates, in words."""
    ranked = sorted(breakdown.host, key=lambda category: -category.ns)
    first = ranked[0]
    if first.ns == 0:
        return "Nothing was measured."
    text = f"{first.category} dominates: {first.share:.0%} of the call"
    biggest = max(first.parts, key=lambda part: part.ns, default=None)
    if biggest is not None and biggest.ns > 0.4 * first.ns:
        text += f", most of it {biggest.name} ({format_ns(biggest.ns)})"
    elif first.top:
        text += f", led by {plain(first.top[0].frame)} ({format_ns(first.top[0].ns)})"
    if ranked[1].share >= 0.1:
        text += f"; then {ranked[1].category} with {ranked[1].share:.0%}"
    floor = breakdown.wall.floor_ns
    if floor > 0:
        ratio = breakdown.wall.ns / floor
        times = f"{ratio:,.{0 if ratio >= 9.95 else 1}f}x"
        text += f". The work itself needs at least {format_ns(floor)}{_bound(breakdown)}: the call takes {times} that"
    return text + "."


def _bound(breakdown: Breakdown) -> str:
    """At which rates, and what binds."""
    floor = breakdown.wall.floor
    if floor is None:
        return ""
    rates = [format_rate(floor.flops_per_s, "FLOP")] if floor.flops_per_s else []
    rates += [format_rate(floor.bytes_per_s)] if floor.bound == "memory" else []
    binds = f"memory-bound in {plain(floor.level)}" if floor.bound == "memory" else "bound by arithmetic"
    return f" ({', '.join(rates)}, {binds})"


def _headline(breakdown: Breakdown) -> Text:
    wall = breakdown.wall
    text = Text(call_title(breakdown), style="bold")
    text.append(f"   {format_ns(wall.ns)} per call", style="bold")
    text.append(f"  [{bounds_text(wall)}]")
    if breakdown.units > 1:
        text.append(f"   {format_ns(wall.ns / breakdown.units)} per unit of work ({breakdown.units:,} units)")
    params = ", ".join(f"{plain(name)}={plain(str(value))}" for name, value in breakdown.subject.params.items())
    processes = "1 process" if wall.processes == 1 else f"{wall.processes} processes"
    measured = f"{processes}, {wall.blocks} blocks, {wall.calls:,} calls, unprofiled"
    return text.append(f"\n{'   '.join(filter(None, (params, measured)))}", style="dim")


def _device(breakdown: Breakdown) -> RenderableType | None:
    device = breakdown.device
    if device is None:
        return None
    table = plain_figures()
    for justify in ("left", "left", "right", "right", "left"):
        table.add_column(justify=justify, no_wrap=justify == "right")
    kinds = (("compute", device.compute_ns), ("communication", device.communication_ns), ("copy", device.copy_ns))
    launches = f"{device.launches_per_call:.3g} launches, latency median {format_ns(device.launch_median_ns)}"
    rows = [("busy", device.busy_ns, f"{device.events_per_call:.3g} kernels and copies")]
    rows += [(f"  {name}", ns, "") for name, ns in kinds if ns]
    rows += [("idle, due to", device.idle_ns, launches)]
    rows += [(f"  {name}", ns, "") for name, ns in sorted(device.idle_blame.items(), key=lambda item: -item[1]) if ns]
    for name, ns, remark in rows:
        style = "bold" if not name.startswith(" ") else COLORS.get(name.strip(), "default")
        table.add_row(*bar_row(name, style, ns, max(1, breakdown.wall.ns), remark))
    for kernel in device.top[:_TOP]:
        label = Text(
            f"{kernel.per_call:.3g}x {plain(kernel_name(kernel.name))}", style="dim", no_wrap=True, overflow="ellipsis"
        )
        table.add_row("", "", f"{kernel.ns / max(1, breakdown.wall.ns):.1%}", format_ns(kernel.ns), label)
    return section(f"device {device.device} ({plain(device.kind)}), of the same wall time: busy + idle = wall", table)


def _instructions(breakdown: Breakdown) -> RenderableType | None:
    """The same categories in instructions, beside their share of the time."""
    budget = breakdown.instructions
    if budget is None:
        return None
    table = figures("", "instructions", "share", "of the time", left=[""])
    table.add_column("most in", no_wrap=True, overflow="ellipsis")
    for category, timed in zip(budget.host, breakdown.host, strict=True):
        if category.count or timed.ns:
            top = f"{category.frames[0].count:,} {plain(category.frames[0].frame)}" if category.frames else ""
            table.add_row(
                Text(category.category, style=COLORS[category.category]),
                f"{category.count:,}",
                f"{category.count / max(1, budget.count):.1%}",
                f"{timed.share:.1%}",
                Text(top, style="dim"),
            )
    table.add_row(Text("sum", style="bold"), f"{budget.count:,}", "100 %", "100 %", "")
    return section(f"instructions per call (callgrind, {budget.calls:,} calls, one thread)", table)


def _frames(breakdown: Breakdown) -> RenderableType | None:
    frames = [
        (frame.ns, category.category, frame.frame) for category in breakdown.host for frame in category.top if frame.ns
    ]
    if not frames:
        return None
    table = _section_table()
    for ns, category, frame in sorted(frames, key=lambda item: -item[0])[:_TOP]:
        table.add_row(
            format_ns(ns), f"{ns / breakdown.wall.ns:.1%}", Text(category, style=COLORS[category]), Text(plain(frame))
        )
    return section("costliest frames (self time)", table)


def _guards(breakdown: Breakdown) -> RenderableType | None:
    """Guards by samples, which sum to the category, and timed alone: warm, and after a cache flush."""
    if not breakdown.guards:
        return None
    table = figures("in the call", "warm", "cold", "guard", left=["guard"], padding=(0, 2, 0, 0))
    table.add_column("needed by", style="dim", no_wrap=True)
    shown, rest = breakdown.guards[:_MOST_GUARDS], breakdown.guards[_MOST_GUARDS:]
    for guard in shown:
        times = (guard.sampled_ns, guard.warm_ns, guard.cold_ns)
        place = (guard.cause or "").partition(": ")[0]
        table.add_row(*map(_time, times), Text(cut(plain(guard.guard))), Text(cut(plain(place))))
    if rest:
        sums = [_sum([getattr(guard, name) for guard in rest]) for name in ("sampled_ns", "warm_ns")]
        table.add_row(*map(_time, sums), "", Text(f"{len(rest)} more", style="dim"), "")
    tree = breakdown.guard_tree
    if tree is not None:
        whole = (breakdown.category("guard").ns if breakdown.guards[0].sampled_ns is not None else None, tree.warm_ns)
        table.add_row(
            *map(_time, whole), _time(tree.cold_ns), Text("all of it; the whole tree, checked alone", style="dim"), ""
        )
    notes = [Text(plain(line)) for line in guard_lines(breakdown.guard_groups)]
    notes += [
        Text(plain(f"{note.kind} at {note.place}: {note.reason}"), style="yellow") for note in breakdown.compile_notes
    ]
    if not any(guard.cause for guard in breakdown.guards):
        notes.append(Text("this torch does not tell which line of the source needed a guard", style="dim"))
    return section("guards", Group(table, *notes))


def guard_lines(groups: Sequence[GuardGroup]) -> Iterator[str]:
    """Where guards are, what a layer of them costs, which call Python, what the ready filters leave out; little is not told."""
    found = {by: [group for group in groups if group.by == by] for by in ("place", "layer", "filter")}
    inside = [group for group in found["place"] if group.name != "root"]
    if inside:
        yield "; ".join(f"{_PLACES[group.name]}: {_told(group)}" for group in found["place"])
    for group in found["layer"][:_MOST_LAYERS]:
        yield f"each of {group.layers} {group.name}: {_told(group)}"
    if found["layer"] and found["filter"]:
        told = "; ".join(f"{group.name} {_told(group)}" for group in found["filter"])
        yield f"filters of torch.compiler leave out: {told} (advise measures what that spares)"


def _told(group: GuardGroup) -> str:
    return f"{group.count:,} guard{'s' * (group.count != 1)}, {format_ns(group.warm_ns)}"


def _time(ns: float | None) -> str:
    return "" if ns is None else format_ns(ns)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _section_table() -> Table:
    table = plain_figures()
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    return table


def _operators(breakdown: Breakdown) -> RenderableType | None:
    root = breakdown.operators
    if root is None or not root.children:
        return None
    tree = Tree(_operator_line(root, root.total_ns), guide_style="dim")
    _grow(tree, root, root.total_ns, _TREE_DEPTH)
    return section("operators (total, with its own time by category)", Padding(tree, (0, 0, 0, 1)))


def _grow(tree: Tree, node: Operator, whole_ns: int, depth: int) -> None:
    for child in node.children:
        if depth and child.total_ns >= _TREE_SHARE * whole_ns:
            _grow(tree.add(_operator_line(child, whole_ns)), child, whole_ns, depth - 1)


def _operator_line(node: Operator, whole_ns: int) -> Text:
    share = node.total_ns / whole_ns if whole_ns else 0.0
    text = Text(f"{plain(node.name)} ", style="bold").append(f"{format_ns(node.total_ns)} {share:.0%}", style="default")
    own = sorted(node.categories.items(), key=lambda item: -item[1])[:3]
    for category, ns in own:
        if ns >= _TREE_SHARE / 2 * whole_ns:
            text.append(f"  {category} {format_ns(ns)}", style=COLORS[category])
    return text.append(f"  from {plain(node.called_from)}", style="dim") if node.called_from else text


def _checks(breakdown: Breakdown) -> RenderableType | None:
    closure = breakdown.closure
    lines = []
    if closure.trace_sum_ns is not None and closure.trace_bare_ns:
        away = closure.trace_sum_ns / closure.trace_bare_ns - 1
        lines.append(
            f"checks: corrected trace {format_ns(closure.trace_sum_ns)} per call, {away:+.1%} of the bare call in its process"
        )
    if breakdown.cross_checks:
        names = ("checks", "samples", "trace", "ablation", "verdict")
        table = figures(*names, left=names, folded=("checks", "verdict"), padding=(0, 1, 0, 0))
        for check in breakdown.cross_checks:
            bound = {"upper": "≤ ", "lower": "≥ ", None: ""}[check.bound]
            samples, trace, ablation = map(_reading, (check.samples, check.trace, check.ablation))
            verdict = "agree" if check.agree else Text("DISAGREE", style="red")
            table.add_row(check.category, samples, trace, f"{bound}{ablation}" if ablation else "", verdict)
        return Group(*(Text(line, style="dim") for line in lines), table)
    return Text("; ".join(lines), style="dim") if lines else None


def _reading(reading: Reading | None) -> str:
    return "" if reading is None else f"{format_ns(reading.ns)} {interval_text(reading.ci95_ns)}"


def _published(breakdown: Breakdown) -> RenderableType | None:
    if not breakdown.published:
        return None
    table = _section_table()
    for figure in breakdown.published[:_MOST_PUBLISHED]:
        ratio = breakdown.wall.ns / figure.ns
        text = Text(plain(f"{figure.label} ({figure.source})"), style="dim", no_wrap=True, overflow="ellipsis")
        table.add_row(format_ns(figure.ns), f"{ratio:.2f}x", text)
    more = len(breakdown.published) - _MOST_PUBLISHED
    if more > 0:
        table.add_row("", "", Text(f"{more} more in the scenario's file", style="dim"))
    return section("published, beside this measurement (other machines: not a pass mark)", table)
