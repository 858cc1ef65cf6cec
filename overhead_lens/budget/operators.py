"""Builds the per-operator tree from sampled stacks: callers, callees and their times.

An operator is entered at ``at::_ops::NAME::call`` (torchgen, Operators.cpp); ``redispatch`` is the same operator at its next
dispatch key. The calling C++ function is kept: ``aten::to`` under ``aten::add`` comes from ``TensorIteratorBase::compute_types``.
Hand-written kernels, as MKL's, leave a sampler no way back to their caller: their operator is ``UNKNOWN``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from overhead_lens.budget.model import Operator
from overhead_lens.stack import Stack, StackFrame
from overhead_lens.taxonomy import torch_names
from overhead_lens.taxonomy.classifier import Classified
from overhead_lens.units import round_to_sum

_FORWARDERS = re.compile(
    r"at::(_ops::|Tensor::|TensorBase::|[a-z]\w*$|native::to$|redispatch::)|c10::(impl|Dispatcher|Boxed|Kernel)|torch::|std::"
)

UNKNOWN = "operator unknown"

Step = tuple[str, str]


@dataclass(slots=True)
class _Node:
    weights: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    children: dict[Step, _Node] = field(default_factory=dict)


def operator_tree(
    stacks: Sequence[Stack],
    verdicts: Sequence[Classified],
    wall_ns: int,
    known_names: frozenset[str],
    root: str,
    fault_share: float = 0.0,
) -> Operator:
    """The tree of all stacks, scaled to ``wall_ns``.

    Args:
        verdicts: The stacks' attributions, in the same order.
        wall_ns: Time of one call.
        known_names: Operator names in the capture's trace (``aten::add``), which tell name from overload.
        fault_share: Share of the kernel's time that page faults took; it counts as allocation in every node.
    """
    top = _Node()
    for stack, verdict in zip(stacks, verdicts, strict=True):
        node = top
        path = operator_path(stack.frames, known_names) or _of_a_kernel_alone(stack.frames, verdict)
        for step in path:
            node = node.children.setdefault(step, _Node())
        faults = fault_share * stack.count if verdict.attribution.category == "kernel" else 0.0
        node.weights[verdict.attribution.category] += stack.count - faults
        if faults:
            node.weights["allocation"] += faults
    return _freeze((root, ""), top, wall_ns)


def operator_path(frames: Sequence[StackFrame], known_names: frozenset[str]) -> list[Step]:
    """Operators on the stack, outermost first, as (operator, C++ function that called it)."""
    path: list[Step] = []
    entries: list[str] = []
    caller = ""
    for frame in frames:
        match = torch_names.OPERATOR_ENTRY.match(frame.function) if frame.native else None
        if match is None:
            if frame.native and frame.function and not _FORWARDERS.match(frame.function):
                caller = frame.function
            continue
        if not (match["how"] == "redispatch" and entries and entries[-1] == match["name"]):
            path.append((operator_name(match["name"], known_names), caller if path else ""))
            entries.append(match["name"])
        caller = ""
    return path


def _of_a_kernel_alone(frames: Sequence[StackFrame], verdict: Classified) -> list[Step]:
    """``UNKNOWN`` where the only native frame is a kernel in torch's library, which no Python calls by itself."""
    if verdict.attribution.category != "kernel" or len(frames) < 2:
        return []
    above, kernel = frames[-2:]
    return [(UNKNOWN, "")] if not above.native and kernel.native and kernel.location.startswith("libtorch") else []


def operator_name(entry: str, known_names: frozenset[str]) -> str:
    """``add_Tensor`` as ``aten::add.Tensor``: the longest traced operator that the entry's name begins with."""
    candidates = (name for name in known_names if entry == name[6:] or entry.startswith(f"{name[6:]}_"))
    name = max(candidates, key=len, default=None)
    if name is None:
        return f"{torch_names.OPERATOR_PREFIX}{entry}"
    overload = entry[len(name) - 5 :]
    return f"{name}.{overload}" if overload else name


def _freeze(step: Step, node: _Node, total_ns: int) -> Operator:
    """The node as an operator: its categories and children share ``total_ns`` without remainder."""
    categories, children = list(node.weights), sorted(node.children, key=lambda key: -_weight(node.children[key]))
    weights = [*(float(node.weights[name]) for name in categories), *(_weight(node.children[key]) for key in children)]
    scale = total_ns / sum(weights) if weights else 0.0
    shares = round_to_sum([weight * scale for weight in weights], total_ns) if weights else []
    own = dict(zip(categories, shares, strict=False))
    below = tuple(
        _freeze(key, node.children[key], share_ns)
        for key, share_ns in zip(children, shares[len(categories) :], strict=True)
    )
    return Operator(step[0], total_ns, sum(own.values()), own, below, step[1])


def _weight(node: _Node) -> float:
    return float(sum(node.weights.values()) + sum(_weight(child) for child in node.children.values()))
