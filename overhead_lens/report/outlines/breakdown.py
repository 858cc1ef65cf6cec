"""The budget of a call in words: where its time goes, device, instructions, frames, guards, operators, checks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from overhead_lens.budget.model import Breakdown, GuardGroup, InstructionBudget, Operator, Reading
from overhead_lens.captures.directory import fields_of
from overhead_lens.report.cells import bounds, heads, row, share, sum_row, text, time
from overhead_lens.report.outline import Block, Cell, Drawing, Notes, Outline, Row, Section, Table
from overhead_lens.report.outlines.host import device_section, frames_section, host_blocks, most_of
from overhead_lens.report.page.charts.calls import call_stacks, processes
from overhead_lens.report.text.blocks import bounds_text, call_title, counted, left_out, origin
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.units import format_ns, format_rate

_TOP = 5
_MOST_FRAMES, _MOST_GUARDS, _MOST_OPERATORS = 20, 40, 60
_BRIEF_GUARDS = 6
_MOST_LAYERS = 3
_PLACES = {"root": "at the root", "inside": "below it", "python": "calling Python"}
_GROUPS = {"kind": "kind", "place": "place", "layer": "layer", "module": "module", "filter": "left out by the filter"}
_LEAST_OPERATOR, _MINOR_OPERATOR = 0.005, 0.02
_MOST_OWN = 3


def breakdown_outline(breakdown: Breakdown) -> Outline:
    """The outline."""
    wall, stored = breakdown.wall, breakdown.capture
    figure = f"{format_ns(wall.ns)} per call [{bounds_text(wall)}]"
    if breakdown.units > 1:
        figure += f", {format_ns(wall.ns / breakdown.units)} per unit of work ({breakdown.units:,} units)"
    where = host_blocks(breakdown.host, wall, "per call", units=breakdown.units)
    named = [("measured", call_title(breakdown)), ("parameters", _parameters(breakdown))]
    return Outline(
        call_title(breakdown),
        sentence(breakdown),
        Section.filled(
            Section("Where the time of a call goes", where, reach="everywhere"),
            None if breakdown.device is None else device_section(breakdown.device, wall.ns, "per call"),
            _instructions(breakdown.instructions, breakdown.host),
            frames_section(breakdown.host, wall.ns, _MOST_FRAMES, _TOP),
            Section("Sampled stacks", [Drawing(partial(call_stacks, breakdown))], reach="page"),
            *_guards(breakdown),
            _operators(breakdown.operators),
            _checks(breakdown),
            Section.folded("Wall time per process", Drawing(partial(processes, breakdown))),
        ),
        figure=figure,
        about=[_how(breakdown)],
        warnings=breakdown.warnings,
        ends=[f"capture: {stored}", *_tries(stored, breakdown.subject.kind)] if stored else [],
        origin=partial(origin, stored, breakdown.environment, named),
    )


def _tries(stored: str, kind: str) -> list[str]:
    """How to try what makes the call faster; arguments from Python are not stored, and a lambda is of this process alone."""
    if kind == "callable":
        return []
    if fields_of(Path(stored)).get("has_arguments"):
        return ["try: ol.advise with the same function and arguments"]
    return [f"try: overhead-lens advise {shlex.quote(stored)}"]


def _how(breakdown: Breakdown) -> str:
    wall = breakdown.wall
    counts = ((wall.processes, "process"), (wall.blocks, "block"), (wall.calls, "call"))
    measured = ", ".join([*(counted(*each) for each in counts), "unprofiled"])
    return " · ".join(filter(None, (_parameters(breakdown), measured)))


def _parameters(breakdown: Breakdown) -> str:
    return ", ".join(f"{name}={value}" for name, value in breakdown.subject.params.items())


def sentence(breakdown: Breakdown) -> str:
    """The dominant category in a sentence."""
    first, second, *_ = sorted(breakdown.host, key=lambda category: -category.ns)
    if first.ns == 0:
        return "Nothing was measured."
    words = f"{first.category} dominates: {first.share:.0%} of the call{most_of(first)}"
    if second.share >= 0.1:
        words += f"; then {second.category} with {second.share:.0%}"
    floor = breakdown.wall.floor_ns
    if 0 < floor < 1:
        words += ". The work itself needs less than 1 ns"
    elif floor > 0:
        ratio = breakdown.wall.ns / floor
        times = f"{ratio:,.{0 if ratio >= 9.95 else 1}f}x"
        words += f". The work itself needs at least {format_ns(floor)}{_bound(breakdown)}: the call takes {times} that"
    return words + "."


def _bound(breakdown: Breakdown) -> str:
    """The peak rates that the floor is computed from, and which of them bounds it."""
    floor = breakdown.wall.floor
    if floor is None:
        return ""
    rates = [format_rate(floor.flops_per_s, "FLOP")] if floor.flops_per_s else []
    rates += [format_rate(floor.bytes_per_s)] if floor.bound == "memory" else []
    binds = f"memory-bound in {floor.level}" if floor.bound == "memory" else "bound by arithmetic"
    return f" ({', '.join(rates)}, {binds})"


def _instructions(budget: InstructionBudget | None, host: Sequence[HostCategory]) -> Section | None:
    """The same categories in instructions, beside their share of the time."""
    if budget is None:
        return None
    columns = heads("category | >instructions | >share | >of the time ~1 | most in ~2")
    rows = []
    for each, timed in zip(budget.host, host, strict=True):
        if each.count or timed.ns:
            figures = (each.count, share(each.count / max(1, budget.count)), share(timed.share))
            most = text(f"{each.frames[0].count:,} {each.frames[0].frame}" if each.frames else "", tone="dim")
            rows.append(row(text(each.category, each.category), *figures, most))
    total = sum_row("sum", budget.count, "100 %", "100 %", "")
    heading = f"Instructions per call (callgrind, {counted(budget.calls, 'call')}, one thread)"
    return Section(heading, [Table(columns, [*rows, total])])


def _guards(breakdown: Breakdown) -> list[Section]:
    """Guards by samples, which sum to the category, and timed alone: warm, and after a cache flush; then grouped."""
    guards, tree = breakdown.guards, breakdown.guard_tree
    if not guards:
        return []
    rows = []
    for guard in guards[:_MOST_GUARDS]:
        times = map(time, (guard.sampled_ns, guard.warm_ns, guard.cold_ns))
        rows.append(row(*times, guard.guard, text((guard.cause or "").partition(": ")[0], tone="dim")))
    if tree is not None:
        whole_ns = breakdown.category("guard").ns if guards[0].sampled_ns is not None else None
        whole_tree = text("all of it; the whole tree, checked alone")
        rows.append(row(*map(time, (whole_ns, tree.warm_ns, tree.cold_ns)), whole_tree, "", tone="dim", is_sum=True))
    table = Table(heads(">in the call | >warm | >cold ~1 | guard | needed by ~2"), rows, brief=_BRIEF_GUARDS)
    cheaper = left_out(len(guards) - _MOST_GUARDS, "cheaper guard")
    notes: list[Block] = [Notes([*cheaper, *guard_lines(breakdown.guard_groups)])]
    notes.append(Notes([f"{note.kind} at {note.place}: {note.reason}" for note in breakdown.compile_notes], "warning"))
    if not breakdown.subject.compile:
        own = "the call brings compiled code of its own, whose guards are not listed one by one"
        notes.append(Notes([f"{own}: measure the uncompiled function with --compile (compile=True)"], "dim"))
    elif not any(guard.cause for guard in guards):
        notes.append(Notes(["this torch does not tell which line of the source needed a guard"], "dim"))
    groups = [_grouped([each for each in breakdown.guard_groups if each.by == by], _GROUPS[by]) for by in _GROUPS]
    return [Section("Guards", [table, *notes]), Section.folded("Guards put together", *groups)]


def _grouped(groups: Sequence[GuardGroup], heading: str) -> Table:
    rows = []
    for group in groups[:_MOST_GUARDS]:
        name = group.name + (f", each of {group.layers}" if group.layers else "")
        rows.append(row(name, group.count, time(group.sampled_ns), time(group.warm_ns)))
    return Table(heads(f"{heading} | >guards | >in the call | >warm"), rows, f"by {heading}")


def guard_lines(groups: Sequence[GuardGroup]) -> Iterator[str]:
    """Places of guards, cost of a layer, guards that call Python, guards that ready filters remove; small figures are omitted."""
    by_kind = {by: [group for group in groups if group.by == by] for by in ("place", "layer", "filter")}
    inside = [group for group in by_kind["place"] if group.name != "root"]
    if inside:
        yield "; ".join(f"{_PLACES[group.name]}: {_cost(group)}" for group in by_kind["place"])
    for group in by_kind["layer"][:_MOST_LAYERS]:
        yield f"each of {group.layers} {group.name}: {_cost(group)}"
    if by_kind["layer"] and by_kind["filter"]:
        filters = "; ".join(f"{group.name} {_cost(group)}" for group in by_kind["filter"])
        yield f"filters of torch.compiler leave out: {filters} (advise measures what that saves)"


def _cost(group: GuardGroup) -> str:
    return f"{counted(group.count, 'guard')}, {format_ns(group.warm_ns)}"


def _operators(root: Operator | None) -> Section | None:
    """The tree of operators, without those of little time."""
    if root is None or not root.children:
        return None
    columns = heads("operator | >total | >share ~1 | >self ~2 | self time by category ~3 | called from ~4")
    totals = sorted(_totals(root), reverse=True)
    # A share of the whole, and the time of the last of the costliest.
    least_ns = max(totals[:_MOST_OPERATORS][-1], _LEAST_OPERATOR * max(1, totals[0]))
    table = Table(columns, list(_operator_rows(root, root, 0, least_ns)), more="with less time")
    rest = len(totals) - len(table.rows)
    less = [f"Without {counted(rest, 'operator')} of still less time."] if rest else []
    return Section("Operators, by samples", [table, Notes(less)], is_open=False)


def _totals(node: Operator) -> Iterator[int]:
    """Times of an operator and of all below it in ns."""
    yield node.total_ns
    for child in node.children:
        yield from _totals(child)


def _operator_rows(node: Operator, root: Operator, depth: int, least_ns: float) -> Iterator[Row]:
    whole_ns = max(1, root.total_ns)
    own = sorted(((ns, name) for name, ns in node.categories.items() if ns), reverse=True)[:_MOST_OWN]
    own_text = ", ".join(f"{name} {format_ns(ns)}" for ns, name in own)
    cells = [text(node.name), time(node.total_ns), share(node.total_ns / whole_ns), time(node.self_ns)]
    cells += [text(own_text, own[0][1] if own else ""), text(node.called_from, tone="dim")]
    yield Row(cells, depth, is_minor=node.total_ns < _MINOR_OPERATOR * whole_ns)
    for child in node.children:
        if child.total_ns >= least_ns:
            yield from _operator_rows(child, root, depth + 1, least_ns)


def _checks(breakdown: Breakdown) -> Section:
    closure = breakdown.closure
    blocks: list[Block] = []
    if closure.trace_sum_ns is not None and closure.trace_bare_ns:
        away = closure.trace_sum_ns / closure.trace_bare_ns - 1
        trace = f"corrected trace {format_ns(closure.trace_sum_ns)} per call"
        blocks.append(Notes([f"{trace}, {away:+.1%} of the bare call in its process"]))
    if breakdown.cross_checks:
        rows = []
        for check in breakdown.cross_checks:
            ablation = _reading(check.ablation, {"upper": "≤ ", "lower": "≥ ", None: ""}[check.bound])
            readings = (*_reading(check.samples), *_reading(check.trace), *ablation)
            verdict: Cell | str = "agree" if check.agree else text("DISAGREE", tone="warning")
            rows.append(row(text(check.category, check.category), *readings, verdict))
        columns = heads("category | >samples | ~1 | >trace | ~1 | >ablation | ~1 | verdict")
        blocks.append(Table(columns, rows))
    return Section("Checks by independent evidence", blocks, is_open=False)


def _reading(reading: Reading | None, bound: str = "") -> list[Cell]:
    if reading is None:
        return [Cell(), Cell()]
    return [text(f"{bound}{format_ns(reading.ns)}"), bounds(reading.ci95_ns)]
