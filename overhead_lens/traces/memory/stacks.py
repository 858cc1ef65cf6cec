"""Where memory was allocated and released, from the stacks of a snapshot."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from overhead_lens.readers.kineto.model import Events, StackFrame
from overhead_lens.stats.values import taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import passing
from overhead_lens.traces.memory.context import Contexts

# Not an environment that is called torch: Python's library and other packages lie in that.
_TORCH = re.compile(r"(^|/)torch/(?!.*(lib/python\d|-packages/))|^<|^$|^\?")
_MODULES = re.compile(r"(^|/)torch/nn/modules/\w+\.py$")
_BUILDING = frozenset({"__init__", "_apply", "to", "cuda", "to_empty", "reset_parameters"})
_OPTIMIZERS = re.compile(r"(^|/)torch/optim/")
_BACKWARD = re.compile(r"evaluate_function|_engine_run_backward")
_NATIVE = re.compile(r"\.(c|cc|cpp|cu|h|hpp|cuh)$|^\?\?$|^$")


def stack_contexts(memory: Events, stacks: Sequence[Sequence[StackFrame]]) -> Contexts:
    """Where each memory event, with a column ``stack``, of a snapshot happened; a stack's innermost frame is first."""
    names: dict[str, int] = {}

    def number(text: str) -> int:
        return names.setdefault(text, len(names)) if text else -1

    operator, line = (np.array([number(text_of(stack)) for stack in stacks] or [-1]) for text_of in (_operator, _line))
    optimizes = passing(stacks, lambda stack: any(_OPTIMIZERS.search(frame.file) for frame in stack))
    backward = passing(stacks, lambda stack: any(_BACKWARD.search(frame.function) for frame in stack))
    clears = passing(stacks, lambda stack: any(frame.function == "zero_grad" for frame in stack))
    builds = passing(
        stacks, lambda stack: any(frame.function in _BUILDING and _MODULES.search(frame.file) for frame in stack)
    )
    at = memory["stack"]
    known = at >= 0

    return Contexts(
        operator=taken(operator, at),
        module=np.full(len(at), -1),
        line=taken(line, at),
        scope=np.full(len(at), -1),
        # One number for all: memory allocated and released in an optimizer is temporary.
        optimizer=np.where(known & optimizes[at], 0, -1),
        backward=known & backward[at],
        clears=known & clears[at],
        builds=known & builds[at],
        names=list(names),
    )


def _line(stack: Sequence[StackFrame]) -> str:
    """The innermost line of Python outside of torch."""
    for frame in stack:
        if not _NATIVE.search(frame.file) and not _TORCH.search(frame.file):
            return f"{frame.file}({frame.line}): {frame.function}"
    return ""


def _operator(stack: Sequence[StackFrame]) -> str:
    """The innermost operator that is called in C++; where the stack has none, the innermost function of torch in Python."""
    for frame in stack:
        match = torch_names.OPERATOR_ENTRY.search(frame.function)
        if match is not None and not match["name"].startswith(("empty", "resize_", "new_empty")):
            return torch_names.operator_of_entry(match["name"])
    return next((frame.function for frame in stack if not _NATIVE.search(frame.file) and _TORCH.search(frame.file)), "")
