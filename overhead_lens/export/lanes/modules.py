"""Modules over time: calls inside each other, and the backward pass as intervals of its modules.

Nodes of the backward pass that follow one another in one module are one slice, and so are those of the modules around it; all end
where a module is called in a forward pass::

    nodes        [ReluBackward0) [AddmmBackward0) [AccumulateGrad)
    slices       Net_0--------------------------------------------
                 ReLU_0--------- Linear_0-------------------------
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from overhead_lens.export.lanes.model import Lane, Section, Slice, Value
from overhead_lens.export.names import readable, thread_title
from overhead_lens.stats.values import Ints
from overhead_lens.traces.modules.analysis import PHASES
from overhead_lens.traces.modules.model import MOST_PATH_NAMES, ModuleBudgets
from overhead_lens.traces.pieces import Analyzed

_FORWARD, _AGAIN, _BACKWARD = PHASES


def module_sections(analyzed: Analyzed) -> Iterator[Section]:
    """A lane for the thread that calls most modules, with the other threads below; empty without named modules."""
    modules, calls = analyzed.analysis.modules, analyzed.pieces.module_calls
    if modules is None or not len(calls):
        return
    slices = _Slices(modules, calls[calls["phase"] == _FORWARD]["start_ns"].to_numpy())
    names = analyzed.trace.thread_names
    lanes: list[tuple[int, Lane]] = []
    for key, mine in calls.groupby(["pid", "tid"], sort=False, observed=True):
        pid, tid = map(str, key)
        name = thread_title(tid, names.get((pid, tid), ""))
        lane = Lane(f"Modules of {name}", slices.of(mine), description=f"{_EXPLAINED} This is {name}.")
        lanes.append((int((mine["phase"] == _FORWARD).sum()), lane))
    top, *below = [lane for _, lane in sorted(lanes, key=lambda item: -item[0])]
    yield Section(Lane("Modules", top.slices, description=top.description), tuple(below))


_EXPLAINED = (
    "Calls of modules inside each other, and the modules that nodes of the backward pass belong to. Their arguments tell the "
    "time of the module in the whole trace."
)


_Placed = tuple[int, Slice]
"""A slice and its module's place in the tree, which comes after that of the module around it."""


class _Slices:
    """Slices of the modules of one trace."""

    def __init__(self, modules: ModuleBudgets, forward_ns: Ints) -> None:
        self._modules = modules
        self._forward_ns = np.sort(forward_ns)
        self._arguments = [_arguments(modules, place) for place in range(len(modules.nodes))]
        # Places from the outermost module that is drawn to each one.
        self._paths: list[tuple[int, ...]] = []
        for place, node in enumerate(modules.nodes):
            around = () if node.parent is None else self._paths[node.parent]
            self._paths.append((*around, place)[-MOST_PATH_NAMES:])

    def of(self, calls: Any) -> Sequence[Slice]:
        """The slices of one thread, ordered."""
        starts, node, phase = calls["start_ns"].to_numpy(), calls["node"].to_numpy(), calls["phase"].to_numpy()
        ends = starts + calls["dur_ns"].to_numpy()
        called = np.flatnonzero(phase != _BACKWARD)
        slices = [
            self._slice(int(node[at]), int(starts[at]), int(ends[at]), "" if phase[at] == _FORWARD else "again: ")
            for at in called.tolist()
        ]
        nodes = np.flatnonzero(phase == _BACKWARD)
        slices += self._stretches(starts[nodes], ends[nodes], node[nodes].tolist())
        # Intervals of nested modules may be equally long.
        slices.sort(key=lambda pair: (pair[1].start_ns, -pair[1].end_ns, pair[0]))
        return [piece for _, piece in slices]

    def _stretches(self, starts: Ints, ends: Ints, nodes: Sequence[int]) -> Iterator[_Placed]:
        """The open modules are a stack of pairs: module, and where its interval began."""
        begun = np.searchsorted(self._forward_ns, starts).tolist()
        ended = np.searchsorted(self._forward_ns, ends).tolist()
        times = list(zip(starts.tolist(), ends.tolist(), strict=True))
        stack: list[tuple[int, int]] = []
        for at, node in enumerate(nodes):
            path = self._paths[node]
            same = 0
            if at and begun[at] == ended[at - 1]:
                while same < min(len(path), len(stack)) and path[same] == stack[same][0]:
                    same += 1
            yield from self._closed(stack, same, times[at - 1][1])
            stack += [(place, times[at][0]) for place in path[same:]]
        if nodes:
            yield from self._closed(stack, 0, times[-1][1])

    def _closed(self, stack: list[tuple[int, int]], depth: int, end_ns: int) -> Iterator[_Placed]:
        while len(stack) > depth:
            place, start_ns = stack.pop()
            yield self._slice(place, start_ns, max(start_ns, end_ns), "backward: ")

    def _slice(self, place: int, start_ns: int, end_ns: int, prefix: str) -> _Placed:
        name = f"{prefix}{readable(self._modules.nodes[place].name)}"
        kind = "module" if not prefix else "module, backward"
        return place, Slice(start_ns, end_ns, name, kind, self._arguments[place])


def _arguments(modules: ModuleBudgets, place: int) -> Mapping[str, Value]:
    node = modules.nodes[place]
    arguments: dict[str, Value] = {"path": readable(modules.path(place)), "calls": node.calls}
    for which, time in (("own", node.own), ("with inner ones", node.total)):
        times = {
            "busiest thread ns": time.host_ns,
            "other threads ns": time.others_ns,
            "device forward ns": time.device_forward_ns,
            "device backward ns": time.device_backward_ns,
        }
        arguments |= {f"{which}, {name}": ns for name, ns in times.items() if ns}
    return arguments
