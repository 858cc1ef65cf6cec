"""Cost per guard of a compiled call, from the samples that fell into its check.

A guard's class is visible in the stack (``TENSOR_MATCH::check_nopybind``; torch/csrc/dynamo/guards.cpp); guards of one
class share its time equally, since the instance is not. The walk of the guard tree and the backend match are listed as
such, so that the rows sum to the guard category.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from overhead_lens.analysis.model import Guard
from overhead_lens.categories import Classified
from overhead_lens.stack import Stack, StackFrame

_CLASS = re.compile(r"torch::dynamo::\(anonymous namespace\)::([A-Z][A-Z0-9_]+)::")
BACKEND_MATCH = "BACKEND_MATCH"

_BY_HELPER = {"torch::dynamo::TensorCheck::check": "TENSOR_MATCH", "get_backend": BACKEND_MATCH}
_TREE = "cache lookup and walk of the guard tree"


def guard_costs(
    stacks: Sequence[Stack], verdicts: Sequence[Classified], listed: Sequence[Mapping[str, str]], ns_per_sample: float
) -> tuple[Guard, ...]:
    """Guards, costliest first.

    Args:
        stacks: Cut to the measured loop.
        verdicts: Their claims, in the same order.
        listed: The leaf guards of the cache entries: ``type``, ``text``, ``source``.
        ns_per_sample: What one sample stands for, in ns per call.
    """
    seen: Counter[str] = Counter()
    for stack, verdict in zip(stacks, verdicts, strict=True):
        if verdict.claim.category == "guard":
            seen[_guard_class(stack.frames)] += stack.count
    instances = Counter(each["type"] for each in listed)
    costs = [Guard(_label(each), seen[each["type"]] / instances[each["type"]] * ns_per_sample) for each in listed]
    costs += [Guard(name, count * ns_per_sample) for name, count in seen.items() if name not in instances]
    return tuple(sorted(costs, key=lambda guard: -guard.warm_ns))


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


def _label(guard: Mapping[str, str]) -> str:
    about = guard["source"] if guard["source"] not in ("", "L") else guard["text"]
    return f"{guard['type']} {about}".strip() if len(about) <= 100 else f"{guard['type']} {about[:99]}…"
