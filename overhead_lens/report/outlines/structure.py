"""A difference in structure between two traces in words: how long a step takes, what makes the difference, other counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from overhead_lens.report.cells import heads, length, row, signed, text, time
from overhead_lens.report.looks import LONGER, SHORTER
from overhead_lens.report.outline import Notes, Outline, Reach, Row, Section, Table, Tone
from overhead_lens.report.text.blocks import capitalized, counted, cut, left_out, three_digits
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.structure.model import KINDS, Divided, StructureDelta
from overhead_lens.units import format_ns, format_signed_ns

_MOST, _BRIEF = 25, 12
_MOST_SWAPS, _BRIEF_SWAPS = 40, 8
_MOST_DEVICES, _MOST_LEADING = 2, 3
_PLURALS = {"operator": "operators", "kernel": "kernels", "launch": "launches"}


def structure_outline(delta: StructureDelta) -> Outline:
    """The outline."""
    sides = (("base", delta.base), ("new", delta.new))
    summaries = {}
    for name, side in sides:
        steps = f", {counted(side.steps, 'step')}" if side.steps else ""
        summaries[name] = f"{format_ns(side.wall_ns)}, {counted(side.events, 'event')}{steps}"
    return Outline(
        f"{delta.base.path} → {delta.new.path}",
        answer(delta),
        Section.filled(
            *(_self_times(each, delta, at) for at, each in enumerate(delta.divided)),
            Section("Other counts of events", [Notes([_counts(delta)])]),
            *(_changes(delta, kind) for kind in KINDS),
            _swaps(delta),
        ),
        about=[f"{name}: {summary}" for name, summary in summaries.items()],
        origin=lambda: [(name, f"{side.path}, {summaries[name]}") for name, side in sides],
    )


def answer(delta: StructureDelta) -> str:
    """The new length of a step, and the largest part of the difference."""
    base, new = delta.base.step_ns, delta.new.step_ns
    ratio = f" ({new / base:.2f}x)" if base else ""
    words = f"{'step' if delta.per_step else 'window'} {format_ns(base)} → {format_ns(new)}{ratio}"
    led = [each for each in delta.divided[0].names[:_MOST_LEADING] if each.delta_ns] if delta.divided else []
    most = ", ".join(f"{cut(each.name)} {format_signed_ns(each.delta_ns)}" for each in led)
    return words + (f": {most}" if most else "")


def _self_times(divided: Divided, delta: StructureDelta, at: int) -> Section:
    """The largest differences, what the other names sum to, and the sum; bars reach to the left where it takes less."""
    base_ns, new_ns = delta.base.step_ns, delta.new.step_ns
    moved = [each for each in divided.names if each.delta_ns]
    shown = moved[:_MOST]
    least = min([0, *(each.delta_ns for each in shown)])
    whole = max([0, *(each.delta_ns for each in shown)]) - least
    rows = []
    for each in shown:
        look = LONGER if each.delta_ns > 0 else SHORTER
        moved_by = text(format_signed_ns(each.delta_ns), look), length(each.delta_ns, whole, None, look, -least)
        rows.append(row(*moved_by, time(each.base_ns), time(each.new_ns), each.name))
    if len(shown) < len(divided.names):
        others = (base_ns - sum(each.base_ns for each in shown), new_ns - sum(each.new_ns for each in shown))
        rows.append(_rest(f"({counted(len(divided.names) - len(shown), 'other')})", *others))
    rows.append(_rest("sum", base_ns, new_ns, "bold"))
    columns = heads(">difference | ~2 | >base ~1 | >new ~1 | name")
    where = "busiest thread" if divided.where == "host" else f"device {divided.where}"
    heading = f"{where}: self time{_unit(delta)}, which sums to {format_signed_ns(new_ns - base_ns)}"
    table = Table(columns, rows, "each instant belongs to the event that began last", _BRIEF)
    reach: Reach = "everywhere" if at == 0 else "report" if at <= _MOST_DEVICES else "page"
    return Section(capitalized(heading), [table], reach)


def _rest(name: str, base_ns: int, new_ns: int, tone: Tone = "dim") -> Row:
    return row(signed(new_ns - base_ns), "", time(base_ns), time(new_ns), name, tone=tone, is_sum=True)


def _counts(delta: StructureDelta) -> str:
    how = "per step" if delta.per_step else "in all, because not both traces have steps"
    if delta.is_same:
        return f"The same operators, kernels and launches {how}."
    parts = []
    for kind in KINDS:
        counts = Counter(change.status for change in delta.changes if change.kind == kind)
        by_status = [f"{counts[status]} {status}" for status in ("appeared", "vanished", "changed") if counts[status]]
        if by_status:
            parts.append(f"{_PLURALS[kind]}: {', '.join(by_status)}")
    return f"{'; '.join(parts)}; compared {how}."


def _changes(delta: StructureDelta, kind: str) -> Section:
    """The change in count of each name. Times are omitted, because they are of whole calls, which contain one another."""
    changes = [change for change in delta.changes if change.kind == kind and change.status != "same"]
    units = _units(delta)
    rows = []
    for change in changes[:_MOST]:
        counts = f"{three_digits(change.base_count / units[0])} → {three_digits(change.new_count / units[1])}"
        rows.append(row(counts, change.status, kernel_name(change.name) if kind == "kernel" else change.name))
    columns = heads(f">count{_unit(delta)} | ~1 | name")
    notes = Notes(left_out(len(changes) - len(rows), "smaller change"))
    heading = f"{kind}: other counts, largest change of time first"
    return Section(heading, [Table(columns, rows, brief=_BRIEF), notes], is_open=False)


def _unit(delta: StructureDelta) -> str:
    return " per step" if delta.per_step else ""


def _units(delta: StructureDelta) -> tuple[int, int]:
    """The divisors of counts and times on either side: its steps."""
    return max(1, delta.base.steps), max(1, delta.new.steps)


def _swaps(delta: StructureDelta) -> Section:
    """Other kernels under the same operator: two rows each, before and after."""
    columns = heads("operator | | >events and time | kernel")
    table = Table(columns, list(_swap_rows(delta)), brief=2 * _BRIEF_SWAPS, more="more rows")
    notes = Notes(left_out(len(delta.swaps) - _MOST_SWAPS, "smaller change"))
    return Section(f"Other kernels under the same operator{_unit(delta)}", [table, notes], is_open=False)


def _swap_rows(delta: StructureDelta) -> Iterator[Row]:
    units = _units(delta)
    for swap in delta.swaps[:_MOST_SWAPS]:
        for mark, kernels, number, ns in (
            ("-", swap.base_kernels, swap.base_count / units[0], swap.base_ns / units[0]),
            ("+", swap.new_kernels, swap.new_count / units[1], swap.new_ns / units[1]),
        ):
            operator = text(swap.operator if mark == "-" else "", tone="bold")
            more = f" and {len(kernels) - 1} more" if len(kernels) > 1 else ""
            yield row(operator, mark, f"{three_digits(number)}x {format_ns(ns)}", kernel_name(kernels[0]) + more)
