"""Cost per guard of a compiled call: sampled inside the call, and timed alone.

A stack shows a guard's class (``TENSOR_MATCH::check_nopybind``; torch/csrc/dynamo/guards.cpp) and not its instance: guards of one
class share the class's time equally. The walk of the guard tree and the backend match have rows of their own, so that sampled
times sum to the guard category. Timed with warm caches, the rows sum to a check of the whole tree: its walk is the tree less the
leaves.

Groups sum them up by the expression that a guard looks at, its source::

    G['model']._modules['layers']._modules['3']._parameters['weight']     module  model.layers.3
                                                                          layer   model.layers[*]
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from overhead_lens.budget.model import CompileNote, GroupedBy, Guard, GuardGroup, GuardTree
from overhead_lens.instruments.guards.record import INBUILT, Guards, Leaf
from overhead_lens.stack import Stack, StackFrame
from overhead_lens.stats.values import Interval
from overhead_lens.taxonomy.classifier import Classified

_CLASS = re.compile(r"torch::dynamo::\(anonymous namespace\)::([A-Z][A-Z0-9_]+)::")
BACKEND_MATCH = "BACKEND_MATCH"

_CLASS_OF_FUNCTION = {"torch::dynamo::TensorCheck::check": "TENSOR_MATCH", "get_backend": BACKEND_MATCH}
_TREE = "cache lookup and walk of the guard tree"

PYTHON = "LAMBDA_GUARD"
"""Kinds that begin so call a Python function at each check."""

_ROOT = re.compile(r"(L|G)?(\[[^\[\]]*\])?$")
_MODULE = re.compile(r"\b[LG]\['(?P<name>[^']*)'\](?P<path>(\._modules\['[^']*'\])*)")
_CHILD = re.compile(r"\._modules\['([^']*)'\]")
_OF_MODULE = re.compile(r"\.(_modules|_parameters|_buffers|training|__dict__)\b")

_GLOBAL = re.compile(r"\bG\[")
_PARAMETER = re.compile(r", \w*Parameter, DispatchKeySet")
_NO_ALIASING = "NO_TENSOR_ALIASING"

# What Dynamo makes of one guard on a tensor; the last two in earlier versions of torch.
_OF_A_TENSOR = {"TENSOR_MATCH", _NO_ALIASING, "DIMENSION_DYNAMIC_MARKING_GUARD", "DYNAMIC_INDICES", "NO_HASATTR"}

_FILTERS: Mapping[str, Callable[[Leaf, AbstractSet[str]], bool]] = {
    "skip_guard_on_inbuilt_nn_modules_unsafe": lambda leaf, _: leaf.owner == INBUILT,
    "skip_guard_on_all_nn_modules_unsafe": lambda leaf, _: leaf.owner != "",
    "keep_tensor_guards_unsafe": lambda leaf, tensors: leaf.type not in _OF_A_TENSOR or leaf.source not in tensors,
    "skip_guard_on_globals_unsafe": lambda leaf, _: _GLOBAL.search(_guarded(leaf)) is not None,
}
"""Whether a filter of torch.compiler (torch/compiler/__init__.py) drops a guard, given the tensors that are not parameters."""


def guard_costs(
    stacks: Sequence[Stack], verdicts: Sequence[Classified], recorded: Guards, ns_per_sample: float
) -> tuple[Guard, ...]:
    """Guards, costliest first.

    Args:
        verdicts: The stacks' attributions, in the same order.
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
    warm_ns = max(0.0, statistics.median(warm)) if warm else None
    return Guard(_label(leaf), sampled_ns, warm_ns, _interval(warm) if warm else None, leaf.cold_ns, leaf.cause)


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


def guard_groups(recorded: Guards, guards: Sequence[Guard]) -> tuple[GuardGroup, ...]:
    """Groups, one way of putting together after the other, each by time; ``guards`` hold sampled times, alike for one kind."""
    if not recorded.guards:
        return ()
    sampled = {guard.guard.partition(" ")[0]: guard.sampled_ns for guard in guards}
    ways: Mapping[GroupedBy, Callable[[Leaf], str]] = {
        "kind": lambda leaf: leaf.type,
        "place": _place,
        "module": _module,
    }
    groups = [group for by, name in ways.items() for group in _grouped(by, recorded.guards, name, sampled)]
    return (*groups, *_layers(recorded.guards, sampled), *_filtered(recorded.guards, sampled))


def _place(leaf: Leaf) -> str:
    if leaf.type.startswith(PYTHON):
        return "python"
    return "root" if _ROOT.fullmatch(leaf.source) else "inside"


def _module(leaf: Leaf) -> str:
    """Path of the module that it looks at; empty for none."""
    found = _MODULE.search(leaf.source)
    if found is None or (not leaf.owner and _OF_MODULE.search(leaf.source) is None):
        return ""
    return ".".join((found["name"], *_CHILD.findall(found["path"])))


def _layer(leaf: Leaf) -> tuple[str, str]:
    """The outermost numbered container of a guard (``model.layers[*]``) and the index in it; empty for none."""
    names = _module(leaf).split(".")
    at = next((at for at, name in enumerate(names) if name.isdecimal()), None)
    return ("", "") if at is None else (f"{'.'.join(names[:at])}[*]", names[at])


def _layers(leaves: Sequence[Leaf], sampled: Mapping[str, float | None]) -> Iterator[GuardGroup]:
    """Mean guard cost of one layer, for each container with several layers."""
    for name, mine in _by_name(leaves, lambda leaf: _layer(leaf)[0]).items():
        count = len({_layer(leaf) for leaf in mine})
        if name and count > 1:
            whole = _group("layer", name, mine, sampled)
            sampled_ns = None if whole.sampled_ns is None else whole.sampled_ns / count
            yield GuardGroup("layer", name, round(len(mine) / count), sampled_ns, whole.warm_ns / count, count)


def _filtered(leaves: Sequence[Leaf], sampled: Mapping[str, float | None]) -> Iterator[GuardGroup]:
    matched = [leaf for leaf in leaves if leaf.type == "TENSOR_MATCH"]
    tensors = {leaf.source for leaf in matched if _PARAMETER.search(leaf.text) is None}
    for name, drops in _FILTERS.items():
        dropped = [leaf for leaf in leaves if drops(leaf, tensors)]
        unaliased = [leaf for leaf in leaves if leaf.type == _NO_ALIASING and not drops(leaf, tensors)]
        if len({leaf.source for leaf in unaliased}) == 1:
            dropped += unaliased  # one tensor alone has no alias to be checked for
        if dropped:
            yield _group("filter", name, dropped, sampled)


def _guarded(leaf: Leaf) -> str:
    """The source; of ``b is a``, which has none, what Dynamo guards: ``a``."""
    return leaf.source or leaf.text.partition(" is ")[2]


def _grouped(
    by: GroupedBy, leaves: Sequence[Leaf], name: Callable[[Leaf], str], sampled: Mapping[str, float | None]
) -> list[GuardGroup]:
    groups = [_group(by, each, mine, sampled) for each, mine in _by_name(leaves, name).items() if each]
    return sorted(groups, key=lambda group: (-(group.sampled_ns or 0.0), -group.warm_ns, group.name))


def _by_name(leaves: Sequence[Leaf], name: Callable[[Leaf], str]) -> Mapping[str, list[Leaf]]:
    leaves_by_name: defaultdict[str, list[Leaf]] = defaultdict(list)
    for leaf in leaves:
        leaves_by_name[name(leaf)].append(leaf)
    return leaves_by_name


def _group(by: GroupedBy, name: str, leaves: Sequence[Leaf], sampled: Mapping[str, float | None]) -> GuardGroup:
    times = [sampled.get(leaf.type) for leaf in leaves]
    known = [ns for ns in times if ns is not None]
    warm_ns = sum(max(0.0, statistics.median(leaf.warm_ns)) for leaf in leaves if leaf.warm_ns)
    return GuardGroup(by, name, len(leaves), sum(known) if known else None, warm_ns, 0)
