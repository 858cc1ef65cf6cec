"""Where memory was allocated and released: operator, module, Python function, and its kind as they imply it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Bools, Ints, taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import passing
from overhead_lens.traces.host import HostEvents, threads_of
from overhead_lens.traces.memory.blocks import Blocks
from overhead_lens.traces.memory.model import KINDS

_ALLOCATES = re.compile(r"aten::(_?empty\w*|new_empty\w*|resize_\w*|detach\w*)$")
_BUILDS = re.compile(r".*torch/nn/(modules/.*: (__init__|_apply|to|cuda|to_empty)|parameter\.py.*)$")


@dataclass(frozen=True, slots=True)
class Contexts:
    """Where each memory event happened; int64 arrays of shape ``(m,)``, -1 where unknown.

    Attributes:
        operator, module, line: Numbers in ``names``.
        scope: The outermost operator or compiled region.
        optimizer: The optimizer's step.
        backward: bool: inside a node of the backward pass.
        clears: bool: inside ``zero_grad``.
        builds: bool: a module was being built or moved.
    """

    operator: Ints
    module: Ints
    line: Ints
    scope: Ints
    optimizer: Ints
    backward: Bools
    clears: Bools
    builds: Bools
    names: Sequence[str]


def contexts(memory: Events, host: HostEvents) -> Contexts:
    """Follow every memory event of a trace up through the events that were open on its thread."""
    number, threads = threads_of(memory, np.arange(len(memory["start_ns"])))
    known = {key: at for at, key in enumerate(host.threads)}
    thread = np.array([known.get(key, -1) for key in threads] or [-1])[number]
    marks = {name: passing(host.names, test)[host.name] for name, test in _MARKS.items()}
    for name in ("operator", "inner", "scope"):
        marks[name] &= host.operator
    around = host.around
    first = around.open_at(thread, memory["start_ns"])
    nearest = {name: taken(around.nearest(mark, outermost=name == "scope"), first) for name, mark in marks.items()}
    operator = np.where(nearest["operator"] >= 0, nearest["operator"], nearest["inner"])
    return Contexts(
        operator=taken(host.name, operator),
        module=taken(host.name, nearest["module"]),
        line=taken(host.name, nearest["line"]),
        scope=nearest["scope"],
        optimizer=nearest["optimizer"],
        backward=nearest["backward"] >= 0,
        clears=nearest["clears"] >= 0,
        builds=nearest["builds"] >= 0,
        names=host.names,
    )


_MARKS: dict[str, Callable[[str], object]] = {
    "operator": lambda name: _ALLOCATES.match(name) is None and torch_names.PROFILER_STEP.match(name) is None,
    "inner": lambda name: torch_names.PROFILER_STEP.match(name) is None,
    "scope": torch_names.SCOPE.match,
    "module": lambda name: name.startswith(torch_names.MODULE_PREFIX),
    "line": torch_names.FUNCTION.match,
    "optimizer": torch_names.OPTIMIZER_STEP.match,
    "backward": lambda name: name.startswith(torch_names.BACKWARD_NODE_PREFIX),
    "clears": torch_names.ZERO_GRAD.match,
    "builds": _BUILDS.match,
}


_PARAMETER, _GRADIENT, _STATE, _ACTIVATION, _TEMPORARY, _UNKNOWN = range(len(KINDS))


def block_kinds(blocks: Blocks, where: Contexts, rows: Ints) -> Ints:
    """Number in ``KINDS`` of each block; ``where`` is of all memory events, ``rows`` are the device's, in order of time."""
    recorded, ends = blocks.recorded, blocks.last < len(rows)
    begun, ended = rows[np.maximum(blocks.first, 0)], rows[np.minimum(blocks.last, len(rows) - 1)]
    both = recorded & ends
    in_scope = both & (where.scope[begun] >= 0) & (where.scope[begun] == where.scope[ended])
    optimizes = recorded & (where.optimizer[begun] >= 0)
    in_step = both & optimizes & (where.optimizer[begun] == where.optimizer[ended])
    conditions = [
        recorded & where.builds[begun],
        ends & where.clears[ended],
        in_scope | in_step,
        optimizes,
        recorded & where.backward[begun],
        ends & where.backward[ended],
    ]
    return np.select(conditions, [_PARAMETER, _GRADIENT, _TEMPORARY, _STATE, _GRADIENT, _ACTIVATION], _UNKNOWN)
