"""What moved inside a category: frames, guards by kind, operators, kernels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from overhead_lens.budget.make import Budget
from overhead_lens.budget.model import Breakdown, Operator
from overhead_lens.comparison.frames import FrameShifts
from overhead_lens.comparison.model import Move

_MOST = 5

Times = Mapping[tuple[str, str], float]


def moves(category: str, base: Budget, new: Budget, walls_ns: tuple[int, int], shifts: FrameShifts) -> tuple[Move, ...]:
    """The largest moves in one category, in ns per call, new less base; those that are known to have moved come first.

    Args:
        category: Of the taxonomy.
        base: One budget.
        new: The other.
        walls_ns: The wall times that the two are compared at.
        shifts: What is known of single frames.
    """
    sides = [_times(category, budget, wall_ns) for budget, wall_ns in zip((base, new), walls_ns, strict=True)]
    found = []
    for kind, name in {*sides[0], *sides[1]}:
        delta_ns = round(sides[1].get((kind, name), 0.0) - sides[0].get((kind, name), 0.0))
        shift = None if kind == "operator" else shifts.get((category, name))
        found.append(
            Move(kind, name, delta_ns) if shift is None else Move(kind, name, delta_ns, shift.interval(), shift.verdict)
        )
    if category == "guard":
        found += _guards_by_kind(base, new, walls_ns)
    found = [move for move in found if move.delta_ns]
    return tuple(sorted(found, key=lambda move: (not move.clear, -abs(move.delta_ns), move.kind, move.name))[:_MOST])


def more_guards(base: Breakdown, new: Breakdown) -> list[tuple[str, int]]:
    """Kinds of guards of which the new call checks more or fewer, the largest change first."""
    before, after = _kinds(base), _kinds(new)
    changes = [(kind, after[kind] - before[kind]) for kind in {*before, *after} if after[kind] != before[kind]]
    return sorted(changes, key=lambda change: (-abs(change[1]), change[0]))


def _guards_by_kind(base: Budget, new: Budget, walls_ns: tuple[int, int]) -> list[Move]:
    """One move per kind, named ``36 more TENSOR_MATCH`` where their number changed."""
    counts = dict(more_guards(base.breakdown, new.breakdown))
    sides = []
    for budget, wall_ns in zip((base, new), walls_ns, strict=True):
        times: defaultdict[str, float] = defaultdict(float)
        for guard in budget.breakdown.guards:
            times[_kind(guard.guard)] += (guard.sampled_ns or 0.0) * _scale(budget, wall_ns)
        sides.append(times)
    return [
        Move("guard", count_in_words(kind, counts.get(kind, 0)), round(sides[1][kind] - sides[0][kind]))
        for kind in {*sides[0], *sides[1]}
    ]


def count_in_words(kind: str, count: int) -> str:
    """``36 more TENSOR_MATCH``; the kind alone where there are as many as before."""
    return f"{abs(count)} {'more' if count > 0 else 'fewer'} {kind}" if count else kind


def _times(category: str, budget: Budget, wall_ns: int) -> Times:
    scale = _scale(budget, wall_ns)
    kind = "kernel" if category == "kernel" else "frame"
    found = {(kind, name): ns * scale for name, ns in budget.frames.get(category, {}).items()}
    operators: Counter[str] = Counter()
    if budget.breakdown.operators is not None:
        for child in budget.breakdown.operators.children:
            _add_operators(child, category, operators)
    found |= {("operator", name): ns * scale for name, ns in operators.items()}
    if category == "wait" and budget.breakdown.device is not None:
        found |= {("kernel", kernel.name): float(kernel.ns) for kernel in budget.breakdown.device.top}
    return found


def _add_operators(node: Operator, category: str, found: Counter[str]) -> None:
    """Self time of every operator below and of this one; the root is the call, not an operator."""
    found[node.name] += node.categories.get(category, 0)
    for child in node.children:
        _add_operators(child, category, found)


def _scale(budget: Budget, wall_ns: int) -> float:
    return wall_ns / budget.breakdown.wall.ns if budget.breakdown.wall.ns else 0.0


def _kinds(breakdown: Breakdown) -> Counter[str]:
    return Counter(kind for guard in breakdown.guards if (kind := _kind(guard.guard)).isupper())


def _kind(guard: str) -> str:
    """``TENSOR_MATCH`` of ``TENSOR_MATCH L['x']``; what is not a guard's class stays whole."""
    first = guard.partition(" ")[0]
    return first if first.isupper() else guard
