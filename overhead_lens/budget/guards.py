"""Cost per guard of a compiled call: by samples inside the call, and by timing each guard on its own.

A guard's class is visible in the stack (``TENSOR_MATCH::check_nopybind``; torch/csrc/dynamo/guards.cpp); guards of one
class share its time equally, since the instance is not. The walk of the guard tree and the backend match are listed as
such, so that the rows sum to the guard category. Timed in a loop with warm caches, the same rows sum to a check of the whole
tree: what the leaves leave of it is the walk.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Sequence

from overhead_lens.budget.model import CompileNote, Guard, GuardTree
from overhead_lens.instruments.guards.evidence import Guards, Leaf
from overhead_lens.stack import Stack, StackFrame
from overhead_lens.stats.values import Interval
from overhead_lens.taxonomy.classifier import Classified

_CLASS = re.compile(r"torch::dynamo::\(anonymous namespace\)::([A-Z][A-Z0-9_]+)::")
BACKEND_MATCH = "BACKEND_MATCH"

_BY_HELPER = {"torch::dynamo::TensorCheck::check": "TENSOR_MATCH", "get_backend": BACKEND_MATCH}
_TREE = "cache lookup and walk of the guard tree"


def guard_costs(
    stacks: Sequence[Stack], verdicts: Sequence[Classified], found: Guards, ns_per_sample: float
) -> tuple[Guard, ...]:
    """Guards, costliest first.

    Args:
        stacks: Cut to the measured loop; none without samples.
        verdicts: Their claims, in the same order.
        found: The guards as they were listed and timed.
        ns_per_sample: What one sample stands for, in ns per call.
    """
    seen: Counter[str] = Counter()
    for stack, verdict in zip(stacks, verdicts, strict=True):
        if verdict.attribution.category == "guard":
            seen[_guard_class(stack.frames)] += stack.count
    instances = Counter(each.type for each in found.guards)
    costs = [
        _listed(each, seen[each.type] / instances[each.type] * ns_per_sample, bool(stacks)) for each in found.guards
    ]
    tree = guard_tree(found)
    walk_ns = None if tree is None else max(0.0, tree.warm_ns - sum(each.warm_ns or 0.0 for each in costs))
    if walk_ns is not None:
        costs.append(Guard(_TREE, seen.pop(_TREE, 0) * ns_per_sample if stacks else None, walk_ns))
    costs += [Guard(name, count * ns_per_sample) for name, count in seen.items() if name not in instances]
    return tuple(sorted(costs, key=lambda guard: (-(guard.sampled_ns or 0.0), -(guard.warm_ns or 0.0))))


def backend_match_ns(guards: Sequence[Guard]) -> float:
    """Sampled time of the backend match, ns per call."""
    return sum(each.sampled_ns or 0.0 for each in guards if each.guard == BACKEND_MATCH)


def guard_tree(found: Guards) -> GuardTree | None:
    """The timed check of the whole tree; None where it was not timed."""
    tree = found.tree
    if tree is None or not tree.warm_ns:
        return None
    return GuardTree(statistics.median(tree.warm_ns), _interval(tree.warm_ns), tree.cold_ns)


def compile_notes(found: Guards) -> tuple[CompileNote, ...]:
    """Why frames were compiled again and why graphs broke, in the order in which it happened."""
    again = [CompileNote("recompiled", each.place, each.reason) for each in found.compilations if each.reason]
    broken = [CompileNote("graph break", each.place or "", each.reason) for each in found.graph_breaks]
    return tuple(dict.fromkeys((*again, *broken)))


def _listed(guard: Leaf, sampled_ns: float, is_sampled: bool) -> Guard:
    warm = guard.warm_ns
    return Guard(
        _label(guard),
        sampled_ns if is_sampled else None,
        max(0.0, statistics.median(warm)) if warm else None,
        _interval(warm) if warm else None,
        guard.cold_ns,
        guard.cause,
    )


def _interval(values: Sequence[float]) -> Interval:
    """Of the median of repetitions, by order statistics: at least 95 % from 9 of them on (96.5 % of 15)."""
    ordered = sorted(values)
    out = max(0, round(len(ordered) / 2 - 0.98 * len(ordered) ** 0.5) - 1)
    return ordered[out], ordered[-1 - out]


def _guard_class(frames: Sequence[StackFrame]) -> str:
    found = _TREE
    for frame in frames:
        if not frame.native:
            continue
        match = _CLASS.match(frame.function)
        if match is not None:
            found = match[1]
        found = _BY_HELPER.get(frame.function, found)
    return found


def _label(guard: Leaf) -> str:
    about = guard.source if guard.source not in ("", "L") else guard.text
    return f"{guard.type} {about}".strip() if len(about) <= 100 else f"{guard.type} {about[:99]}…"
