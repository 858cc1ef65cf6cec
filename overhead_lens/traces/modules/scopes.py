"""Which module each instant of a thread belongs to: module calls, and nodes of the backward pass that are joined to one.

A module call is a place in a tree: what it was called as, below the call around it on its thread. A node of the backward pass
belongs to the module that was open where its operator ran in the forward pass::

    main       [Net_0 [Linear_0 aten::addmm 6 )  [ReLU_0 aten::relu 7 ) )
    autograd                                          [ReluBackward0 7) [AddmmBackward0 6) [AccumulateGrad)
    belongs to                                         Net_0/ReLU_0      Net_0/Linear_0     Net_0/Linear_0

``AccumulateGrad`` has no number. The engine runs it at once after the node that made the gradient (its priority is the highest:
torch/csrc/autograd/engine.cpp, ``CompareNodeTaskTime``), so it belongs to what that node belongs to. A module that a node of the
backward pass calls is computed again (activation checkpointing): it keeps the place of its first call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.stats.values import Bools, Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import passing
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.intervals import distinct_values
from overhead_lens.traces.modules.backward import Arguments, forward_operators, is_backward_node
from overhead_lens.traces.modules.model import EVENTS, MARKS
from overhead_lens.traces.timeline import Nesting, Segments, sweep

OUTSIDE = -1

_MARKS = (
    re.compile(r"## forward:(?P<name>.*\S) ##$", re.DOTALL),
    re.compile(r"(?P<name>[A-Z]\w*)\.forward$"),
    re.compile(r"<class '(?:.*\.)?(?P<name>[^.']+)'>$", re.DOTALL),
)
"""How programs mark modules: ``## forward:bottom_mlp ##``, ``DistributedDataParallel.forward``, ``<class 'models.Tower'>``."""


@dataclass(frozen=True, slots=True)
class Scopes:
    """Module calls and nodes of the backward pass of all threads, in order of start; arrays of shape ``(n,)``.

    Attributes:
        known_from: ``EVENTS`` or ``MARKS``.
        event: int64: position among the host events.
        parent: int64: the scope around it on its thread, -1 for none.
        is_module: bool: a module call; else a node.
        backward: bool: a node, or inside of one.
        module: int64: place in the tree of what it belongs to; ``OUTSIDE`` for none.
        joined: bool: a node that is joined to its forward.
        parents: Parent of each place in the tree, ``OUTSIDE`` for none; parents come first.
        open_at: For each thread that has any: the scope that each instant of the window belongs to.
    """

    known_from: str
    event: Ints
    parent: Ints
    is_module: Bools
    backward: Bools
    module: Ints
    joined: Bools
    parents: Sequence[int]
    names: Sequence[str]
    open_at: Mapping[int, Segments]

    def around(self, thread: Ints, instants_ns: Ints) -> Ints:
        """The scope that is open at each instant of a thread; -1 for none."""
        return _innermost(self.open_at, thread, instants_ns)


def scopes(host: HostEvents, sequence: Ints, arguments: Arguments, window: tuple[int, int]) -> Scopes | None:
    """The scopes of a trace; None if it names no module.

    Args:
        sequence: int64: autograd's number per host event; -1 for none.
    """
    known_from, labels = _labels(host)
    if not labels:
        return None
    names_module = np.zeros(len(host.names), dtype=bool)
    names_module[list(labels)] = True
    is_node = passing(host.names, is_backward_node)
    event = np.flatnonzero((names_module | is_node)[host.name])
    event = event[np.lexsort((host.thread[event], -host.dur_ns[event], host.start_ns[event]))]
    is_module = names_module[host.name[event]]
    parent, open_at = _nested(host, event, window)
    nodes = np.flatnonzero(~is_module)
    operator = forward_operators(host, sequence, event[nodes], arguments)
    growing = _Growing(host, event, is_module, parent, labels)
    growing.grow(nodes, operator, _innermost(open_at, host.thread[operator], host.start_ns[operator]))
    return Scopes(
        known_from,
        event,
        parent,
        is_module,
        np.array(growing.backward, dtype=bool),
        np.array(growing.module, dtype=np.int64),
        np.array(growing.joined, dtype=bool),
        growing.parents,
        growing.names,
        open_at,
    )


def _labels(host: HostEvents) -> tuple[str, dict[int, str]]:
    """What events are calls of, by the number of their names; annotations count where there are no events of modules."""
    is_used = np.zeros(len(host.names), dtype=bool)
    is_used[host.name] = True
    used = np.flatnonzero(is_used).tolist()
    for known_from, told in ((EVENTS, called_module), (MARKS, marked_module)):
        labels = {number: label for number in used if (label := told(host.names[number])) is not None}
        if labels:
            return known_from, labels
    return EVENTS, {}


def _nested(host: HostEvents, event: Ints, window: tuple[int, int]) -> tuple[Ints, dict[int, Segments]]:
    """The scope around each on its thread, -1 for none; and for each thread the scope of each instant."""
    parent = np.full(len(event), -1, dtype=np.int64)
    open_at = {}
    for thread in distinct_values(host.thread[event]).tolist():
        mine = np.flatnonzero(host.thread[event] == thread)
        start_ns, dur_ns = host.start_ns[event[mine]], host.dur_ns[event[mine]]
        above = Nesting(start_ns, dur_ns).parent
        parent[mine] = np.where(above >= 0, mine[above], -1)
        segments = sweep(start_ns, dur_ns, window)
        owner = np.where(segments.owner >= 0, mine[segments.owner], -1)
        open_at[thread] = Segments(segments.start_ns, segments.dur_ns, owner)
    return parent, open_at


def _innermost(open_at: Mapping[int, Segments], thread: Ints, instants_ns: Ints) -> Ints:
    found = np.full(len(thread), -1, dtype=np.int64)
    for number, segments in open_at.items():
        mine = np.flatnonzero(thread == number)
        if len(mine) and len(segments.start_ns):
            at = np.searchsorted(segments.start_ns, instants_ns[mine], "right") - 1
            inside = (at >= 0) & (instants_ns[mine] < segments.start_ns[at] + segments.dur_ns[at])
            found[mine] = np.where(inside, segments.owner[at], -1)
    return found


class _Growing:
    """The tree under construction, and what each scope belongs to."""

    def __init__(
        self, host: HostEvents, event: Ints, is_module: Bools, parent: Ints, labels: Mapping[int, str]
    ) -> None:
        self._label = [labels.get(name) for name in host.name[event].tolist()]
        accumulates = passing(host.names, lambda name: name.endswith(torch_names.ACCUMULATES))
        self._accumulates = accumulates[host.name[event]].tolist()
        self._thread = host.thread[event].tolist()
        self._is_module, self._parent = is_module.tolist(), parent.tolist()
        self._places: dict[tuple[int, str], int] = {}
        self._first: dict[str, int] = {}
        self._before: dict[tuple[int, int], int] = {}
        self.parents: list[int] = []
        self.names: list[str] = []
        self.module = [OUTSIDE] * len(event)
        self.backward = (~is_module).tolist()
        self.joined = [False] * len(event)

    def grow(self, nodes: Ints, operator: Ints, scope: Ints) -> None:
        """Go through the scopes in order of start: what a scope refers to has started before it."""
        forward = dict(zip(nodes.tolist(), zip(operator.tolist(), scope.tolist(), strict=True), strict=True))
        for at, above in enumerate(self._parent):
            around = self.module[above] if above >= 0 else OUTSIDE
            label = self._label[at]
            if label is not None and self._is_module[at]:
                self.backward[at] = above >= 0 and self.backward[above]
                self.module[at] = self._place(label, around, again=above >= 0 and not self._is_module[above])
            else:
                self.module[at] = self._of_node(at, around, *forward[at])
                self._before[self._thread[at], above] = at

    def _place(self, label: str, around: int, *, again: bool) -> int:
        if again and label in self._first:
            return self._first[label]
        place = self._places.setdefault((around, label), len(self.parents))
        if place == len(self.parents):
            self.parents.append(around)
            self.names.append(label)
            self._first.setdefault(label, place)
        return place

    def _of_node(self, at: int, around: int, operator: int, scope: int) -> int:
        if operator >= 0:
            self.joined[at] = True
            return self.module[scope] if scope >= 0 else OUTSIDE
        before = self._before.get((self._thread[at], self._parent[at]), -1)
        if self._accumulates[at] and before >= 0:
            self.joined[at] = self.joined[before]
            return self.module[before]
        return around


def called_module(event: str) -> str | None:
    """Class and number of the module whose call an event is: ``Linear_3``; None for other events."""
    return event.removeprefix(torch_names.MODULE_PREFIX) if event.startswith(torch_names.MODULE_PREFIX) else None


def marked_module(event: str) -> str | None:
    """What an annotation calls the module that it marks; None for other events."""
    matches = (pattern.match(event) for pattern in _MARKS)
    return next((match["name"] for match in matches if match is not None), None)


def class_and_number(name: str) -> tuple[str, int | None]:
    """``Linear`` and 3 of ``Linear_3``; None for a name without a number."""
    class_name, _, number = name.rpartition("_")
    is_numbered = bool(class_name) and number.isdecimal() and number.isascii() and len(number) <= 18
    return (class_name, int(number)) if is_numbered else (name, None)
