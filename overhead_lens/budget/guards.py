"""Cost per guard of a compiled call: sampled inside the call, and timed alone.

A stack shows a guard's class (``TENSOR_MATCH::check_nopybind``; torch/csrc/dynamo/guards.cpp) and not its instance: guards of one
class share the class's time equally. The walk of the guard tree and the backend match have rows of their own, so that sampled
times sum to the guard category. Timed with warm caches, the rows sum to a check of the whole tree: its walk is the tree less the
leaves.
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

_CLASS_OF_FUNCTION = {"torch::dynamo::TensorCheck::check": "TENSOR_MATCH", "get_backend": BACKEND_MATCH}
_TREE = "cache lookup and walk of the guard tree"


def guard_costs(
    stacks: Sequence[Stack], verdicts: Sequence[Classified], recorded: Guards, ns_per_sample: float
) -> tuple[Guard, ...]:
    """Guards, costliest first.

    Args:
        stacks: Cut to the measured loop; none without samples.
        verdicts: The stacks' attributions, in the same order.
        recorded: Guards as the worker listed and timed them.
        ns_per_sample: Time of one sample, in ns per call.
    """
    samples: Counter[str] = Counter()
    for stack, verdict in zip(stacks, verdicts, strict=True):
        if verdict.attribution.category == "guard":
            samples[_guard_class(stack.frames)] += stack.count
    instances = Counter(leaf.type for leaf in recorded.guards)
    costs = [
        _leaf_cost(leaf, samples[leaf.type] / instances[leaf.type] * ns_per_sample if stacks else None)
        for leaf in recorded.guards
    ]
    tree = guard_tree(recorded)
    if tree is not None:
        walk_ns = max(0.0, tree.warm_ns - sum(guard.warm_ns or 0.0 for guard in costs))
        costs.append(Guard(_TREE, samples.pop(_TREE, 0) * ns_per_sample if stacks else None, walk_ns))
    costs += [Guard(name, count * ns_per_sample) for name, count in samples.items() if name not in instances]
    return tuple(sorted(costs, key=lambda guard: (-(guard.sampled_ns or 0.0), -(guard.warm_ns or 0.0))))


def backend_match_ns(guards: Sequence[Guard]) -> float:
    """Sampled time of the backend match, ns per call."""
    return sum(guard.sampled_ns or 0.0 for guard in guards if guard.guard == BACKEND_MATCH)


def guard_tree(recorded: Guards) -> GuardTree | None:
    """The timed check of the whole tree; None if it was not timed."""
    tree = recorded.tree
    if tree is None or not tree.warm_ns:
        return None
    return GuardTree(statistics.median(tree.warm_ns), _interval(tree.warm_ns), tree.cold_ns)


def compile_notes(recorded: Guards) -> tuple[CompileNote, ...]:
    """Recompilations, then graph breaks, both in the order in which they happened, without repetitions."""
    recompilations = [
        CompileNote("recompiled", frame.place, frame.reason) for frame in recorded.compilations if frame.reason
    ]
    breaks = [CompileNote("graph break", graph.place or "", graph.reason) for graph in recorded.graph_breaks]
    return tuple(dict.fromkeys((*recompilations, *breaks)))


def _leaf_cost(leaf: Leaf, sampled_ns: float | None) -> Guard:
    warm = leaf.warm_ns
    return Guard(
        _label(leaf),
        sampled_ns,
        max(0.0, statistics.median(warm)) if warm else None,
        _interval(warm) if warm else None,
        leaf.cold_ns,
        leaf.cause,
    )


def _interval(values: Sequence[float]) -> Interval:
    """Order-statistic interval of the median: at least 95 % from 9 values on."""
    ordered = sorted(values)
    rank = max(0, round(len(ordered) / 2 - 0.98 * len(ordered) ** 0.5) - 1)
    return ordered[rank], ordered[-1 - rank]


def _guard_class(frames: Sequence[StackFrame]) -> str:
    name = _TREE
    for frame in frames:
        if frame.native:
            match = _CLASS.match(frame.function)
            name = _CLASS_OF_FUNCTION.get(frame.function, match[1] if match else name)
    return name


def _label(leaf: Leaf) -> str:
    guarded = leaf.source if leaf.source not in ("", "L") else leaf.text
    return f"{leaf.type} {guarded}".strip() if len(guarded) <= 100 else f"{leaf.type} {guarded[:99]}…"
