"""Ranks what contributes to a category's difference: frames, guards by kind, operators, kernels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from overhead_lens.budget.make import Budget
from overhead_lens.budget.model import Breakdown, Operator
from overhead_lens.budget.thresholds import LISTED_KERNELS
from overhead_lens.comparison.frames import FrameShifts
from overhead_lens.comparison.instructions import changed
from overhead_lens.comparison.model import Contributor

_MOST = 5

Times = Mapping[tuple[str, str], float]


def contributors(
    category: str, base: Budget, new: Budget, walls_ns: tuple[int, int], shifts: FrameShifts
) -> tuple[Contributor, ...]:
    """The largest contributors to a category's difference at these walls, in ns per call, significant ones first."""
    old, recent = (_times(category, budget, wall_ns) for budget, wall_ns in zip((base, new), walls_ns, strict=True))
    rows = []
    for kind, name in {*old, *recent}:
        delta_ns = round(recent.get((kind, name), 0.0) - old.get((kind, name), 0.0))
        shift = None if kind == "operator" else shifts.get((category, name))
        significance = () if shift is None else (shift.interval(), shift.verdict)
        rows.append(Contributor(kind, name, delta_ns, *significance))
    if category == "wait":
        rows += _kernels_waited_for(base, new, walls_ns)
    if category == "guard":
        rows += _guards_by_kind(base, new, walls_ns)
    rows = [row for row in rows if row.delta_ns]
    return tuple(sorted(rows, key=lambda row: (not row.clear, -abs(row.delta_ns), row.kind, row.name))[:_MOST])


def more_guards(base: Breakdown, new: Breakdown) -> list[tuple[str, int]]:
    """Kinds of guards whose number changed, with the change, the largest first; none where only stacks show a side's guards."""
    before, after = _kinds(base), _kinds(new)
    is_known = (before or not base.guards) and (after or not new.guards)
    return changed(before, after) if is_known else []


def guard_kinds_in_words(base: Breakdown, new: Breakdown) -> str:
    """Kinds of guards that came, that went, and whose number changed; empty unless both sides have guards."""
    before, after = _kinds(base), _kinds(new)
    if not before or not after:
        return ""
    came = [f"{count} {kind}" for kind, count in sorted(after.items()) if kind not in before]
    went = [f"{count} {kind}" for kind, count in sorted(before.items()) if kind not in after]
    both = [count_in_words(kind, count) for kind, count in more_guards(base, new) if kind in before and kind in after]
    clauses = (("new kinds", came), ("kinds that are gone", went), ("", both))
    return "; ".join(f"{what}{': ' * bool(what)}{', '.join(kinds)}" for what, kinds in clauses if kinds)


def _guards_by_kind(base: Budget, new: Budget, walls_ns: tuple[int, int]) -> list[Contributor]:
    """One contributor per kind, named ``36 more TENSOR_MATCH`` where the number of guards changed."""
    counts = dict(more_guards(base.breakdown, new.breakdown))
    sides = []
    for budget, wall_ns in zip((base, new), walls_ns, strict=True):
        times: defaultdict[str, float] = defaultdict(float)
        for guard in budget.breakdown.guards:
            times[_kind(guard.guard)] += guard.sampled_ns or 0.0
        sides.append(defaultdict(float, _sharing(_whole_ns("guard", budget, wall_ns), times)))
    return [
        Contributor("guard", count_in_words(kind, counts.get(kind, 0)), round(sides[1][kind] - sides[0][kind]))
        for kind in {*sides[0], *sides[1]}
    ]


def count_in_words(kind: str, count: int) -> str:
    """``36 more TENSOR_MATCH``; the kind alone for a count of 0."""
    return f"{abs(count)} {'more' if count > 0 else 'fewer'} {kind}" if count else kind


def _times(category: str, budget: Budget, wall_ns: int) -> Times:
    scale = _scale(budget, wall_ns)
    kind = "kernel" if category == "kernel" else "frame"
    times = {(kind, name): ns * scale for name, ns in budget.frames.get(category, {}).items()}
    operators: Counter[str] = Counter()
    root = budget.breakdown.operators
    if root is not None:
        _add_self_times(root, category, operators)
        shared = _sharing(sum(times.values()), operators)
        # The root is the call, not an operator.
        times |= {("operator", name): ns for name, ns in shared.items() if name != root.name}
    return times


def _whole_ns(category: str, budget: Budget, wall_ns: int) -> float:
    return sum(budget.frames.get(category, {}).values()) * _scale(budget, wall_ns)


def _kernels_waited_for(base: Budget, new: Budget, walls_ns: tuple[int, int]) -> list[Contributor]:
    """The device's kernels, each changed by at most what the host's waiting changed by."""
    old_ns, recent_ns = (_whole_ns("wait", budget, wall) for budget, wall in zip((base, new), walls_ns, strict=True))
    least_ns, most_ns = sorted((0.0, recent_ns - old_ns))
    old, recent = _kernels(base, new), _kernels(new, base)
    return [
        Contributor("kernel", name, round(min(max(recent.get(name, 0.0) - old.get(name, 0.0), least_ns), most_ns)))
        for name in {*old, *recent}
    ]


def _sharing(whole_ns: float, recorded_ns: Mapping[str, float]) -> dict[str, float]:
    """The time of a category in proportion to recorded times, which are not taken to one speed of the machine."""
    total_ns = sum(recorded_ns.values())
    return {name: ns * whole_ns / total_ns if total_ns else 0.0 for name, ns in recorded_ns.items()}


def _kernels(budget: Budget, other: Budget) -> Mapping[str, float]:
    """The device's costliest kernels in ns per call, and the most that kernels which only the other side lists may take.

    A kernel missing from a full list takes at most as long as the last one in it. Only the time beyond that has surely changed.
    """
    own, others = (each.breakdown.device.top if each.breakdown.device else () for each in (budget, other))
    most_ns = own[-1].ns if len(own) == LISTED_KERNELS else 0
    lacking = {kernel.name: float(min(kernel.ns, most_ns)) for kernel in others}
    return {**lacking, **{kernel.name: float(kernel.ns) for kernel in own}}


def _add_self_times(node: Operator, category: str, times: Counter[str]) -> None:
    times[node.name] += node.categories.get(category, 0)
    for child in node.children:
        _add_self_times(child, category, times)


def _scale(budget: Budget, wall_ns: int) -> float:
    return wall_ns / budget.breakdown.wall.ns if budget.breakdown.wall.ns else 0.0


def _kinds(breakdown: Breakdown) -> Counter[str]:
    """Numbers of recorded guards by kind. Rows without the guarded value come from stacks, which do not show a number."""
    return Counter(kind for guard in breakdown.guards if (kind := _kind(guard.guard)).isupper() and kind != guard.guard)


def _kind(guard: str) -> str:
    """``TENSOR_MATCH`` of ``TENSOR_MATCH L['x']``; a text without a guard's class stays whole."""
    first = guard.partition(" ")[0]
    return first if first.isupper() else guard
