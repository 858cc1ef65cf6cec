"""Where memory was allocated and released: operator, module, Python function, and what these tell of its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overhead_lens.stats.values import Bools, Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import passing
from overhead_lens.traces.host import HostEvents, threads_of
from overhead_lens.traces.memory.blocks import Blocks
from overhead_lens.traces.memory.model import KINDS
from overhead_lens.traces.timeline import Nesting

_ALLOCATES = re.compile(r"aten::(_?empty\w*|new_empty\w*|resize_\w*|detach\w*)$")
SCOPE = re.compile(rf"\w+::|{torch_names.COMPILED_REGION_PREFIX}")
_OPTIMIZER_STEP = re.compile(r"Optimizer\.step#")
_ZERO_GRAD = re.compile(r"Optimizer\.zero_grad#|.*: zero_grad$")
MODULE_PREFIX = "nn.Module: "
_BUILDS = re.compile(r".*torch/nn/(modules/.*: (__init__|_apply|to|cuda|to_empty)|parameter\.py.*)$")
FUNCTION = re.compile(r"(?!.*(^|/)torch/)(?!<frozen)(?!<string>)[^:]*\(\d+\): ")
"""A Python function outside of torch: ``train.py(12): forward``."""


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


def contexts(memory: pd.DataFrame, host: HostEvents) -> Contexts:
    """Follow every memory event of a trace up through the events that were open on its thread."""
    nearest = {name: np.full(len(memory), -1, dtype=np.int64) for name in _MARKS}
    number, threads = threads_of(memory, np.arange(len(memory)))
    marks = {name: passing(host.names, test)[host.name] for name, test in _MARKS.items()}
    for name in ("operator", "inner", "scope"):
        marks[name] &= host.operator
    start_ns = memory["start_ns"].to_numpy()
    for at, key in enumerate(threads):
        if key in host.threads:
            events = np.flatnonzero(host.thread == host.threads.index(key))
            instants = np.flatnonzero(number == at)
            around = _around(host.start_ns[events], host.dur_ns[events], start_ns[instants])
            for name, mark in marks.items():
                found = _climbed(*around, mark[events], outermost=name == "scope")
                nearest[name][instants] = np.where(found >= 0, events[found] if len(events) else -1, -1)
    operator = np.where(nearest["operator"] >= 0, nearest["operator"], nearest["inner"])
    return Contexts(
        operator=_names_of(operator, host),
        module=_names_of(nearest["module"], host),
        line=_names_of(nearest["line"], host),
        scope=nearest["scope"],
        optimizer=nearest["optimizer"],
        backward=nearest["backward"] >= 0,
        clears=nearest["clears"] >= 0,
        builds=nearest["builds"] >= 0,
        names=host.names,
    )


def _names_of(events: Ints, host: HostEvents) -> Ints:
    return np.where(events >= 0, host.name[events], -1) if len(host.name) else events


def _is(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda name: pattern.match(name) is not None


_MARKS: dict[str, Callable[[str], bool]] = {
    "operator": lambda name: _ALLOCATES.match(name) is None and torch_names.PROFILER_STEP.match(name) is None,
    "inner": lambda name: torch_names.PROFILER_STEP.match(name) is None,
    "scope": _is(SCOPE),
    "module": lambda name: name.startswith(MODULE_PREFIX),
    "line": _is(FUNCTION),
    "optimizer": _is(_OPTIMIZER_STEP),
    "backward": lambda name: name.startswith(torch_names.BACKWARD_NODE_PREFIX),
    "clears": _is(_ZERO_GRAD),
    "builds": _is(_BUILDS),
}


def _around(start_ns: Ints, dur_ns: Ints, instants_ns: Ints) -> tuple[Ints, Ints]:
    """For each instant the innermost open event, and for each event the one around it; -1 for none."""
    count = len(start_ns)
    starts = np.concatenate((start_ns, instants_ns))
    parent = Nesting(starts, np.concatenate((dur_ns, np.zeros(len(instants_ns), dtype=np.int64)))).parent
    return parent[count:], parent[:count]


def _climbed(first: Ints, parent: Ints, mark: Bools, *, outermost: bool) -> Ints:
    """From each of ``first`` upwards the nearest or the outermost marked event; -1 for none."""
    begun, number = np.unique(first, return_inverse=True)
    found, now = np.full(len(begun), -1, dtype=np.int64), begun.copy()
    asking = np.flatnonzero(now >= 0)
    while len(asking):
        hit = mark[now[asking]]
        found[asking[hit]] = now[asking[hit]]
        asking = asking if outermost else asking[~hit]
        now[asking] = parent[now[asking]]
        asking = asking[now[asking] >= 0]
    return found[number]


_PARAMETER, _GRADIENT, _STATE, _ACTIVATION, _TEMPORARY, _UNKNOWN = range(len(KINDS))


def block_kinds(blocks: Blocks, where: Contexts, rows: Ints) -> Ints:
    """Number in ``KINDS`` of each block.

    Args:
        blocks: Of one device.
        where: Of all memory events.
        rows: Those of the device, in order of time.
    """
    recorded, ends = blocks.recorded, blocks.last < len(rows)
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    begun, ended = rows[np.maximum(blocks.first, 0)], rows[np.minimum(blocks.last, len(rows) - 1)]
    both = recorded & ends
    in_scope = both & (where.scope[begun] >= 0) & (where.scope[begun] == where.scope[ended])
    optimizes = recorded & (where.optimizer[begun] >= 0)
    in_step = both & optimizes & (where.optimizer[begun] == where.optimizer[ended])
    told = [
        recorded & where.builds[begun],
        ends & where.clears[ended],
        in_scope | in_step,
        optimizes,
        recorded & where.backward[begun],
        ends & where.backward[ended],
    ]
    return np.select(told, [_PARAMETER, _GRADIENT, _TEMPORARY, _STATE, _GRADIENT, _ACTIVATION], _UNKNOWN)
