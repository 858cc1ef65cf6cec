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

from overhead_lens.readers.kineto.columns import Decode
from overhead_lens.stats.values import Bools, Ints, numbered_rows, taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import passing
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.intervals import distinct_values
from overhead_lens.traces.modules.backward import forward_operators, is_backward_node
from overhead_lens.traces.modules.model import EVENTS, MARKS
from overhead_lens.traces.timeline import Nesting, Segments, ends_of, sweep

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


def scopes(host: HostEvents, sequence: Ints, arguments: Decode, window: tuple[int, int]) -> Scopes | None:
    """The scopes of a trace, None if it names no module; ``sequence``: autograd's int64 number per host event, -1 for none."""
    known_from, labels = _labels(host)
    if not labels:
        return None
    label_of_name, texts = _numbered(labels, len(host.names))
    is_node = passing(host.names, is_backward_node)
    event = np.flatnonzero(((label_of_name >= 0) | is_node)[host.name])
    event = event[np.lexsort((host.thread[event], -host.dur_ns[event], host.start_ns[event]))]
    label = label_of_name[host.name[event]]
    is_module = label >= 0
    parent, open_at = _nested(host, event, window)
    nodes = np.flatnonzero(~is_module)
    operator = forward_operators(host, sequence, event[nodes], arguments)
    known = np.flatnonzero(operator >= 0)
    forward = nodes[known], _innermost(open_at, host.thread[operator[known]], host.start_ns[operator[known]])
    accumulates = passing(host.names, lambda name: name.endswith(torch_names.ACCUMULATES))[host.name[event]]
    before = np.where(accumulates, _node_before(nodes, host.thread[event], parent), -1)
    call = ends_of(_references(parent, is_module, label, forward, before))
    place, parents, named = _tree(parent, call, label)
    own = np.arange(len(event))
    return Scopes(
        known_from,
        event,
        parent,
        is_module,
        ends_of(np.where(is_module, parent, own)) >= 0,
        place,
        _joined(is_module, forward[0], before),
        parents,
        [texts[number] for number in named],
        open_at,
    )


def _labels(host: HostEvents) -> tuple[str, dict[int, str]]:
    """What events are calls of, by the number of their names; annotations count where there are no events of modules."""
    is_used = np.zeros(len(host.names), dtype=bool)
    is_used[host.name] = True
    used = np.flatnonzero(is_used).tolist()
    for known_from, module_of in ((EVENTS, called_module), (MARKS, marked_module)):
        labels = {number: label for number in used if (label := module_of(host.names[number])) is not None}
        if labels:
            return known_from, labels
    return EVENTS, {}


def _numbered(labels: Mapping[int, str], name_count: int) -> tuple[Ints, list[str]]:
    """Per name the number of its label, -1 for none; and the labels by number."""
    numbers: dict[str, int] = {}
    of_name = np.full(name_count, -1, dtype=np.int64)
    of_name[list(labels)] = [numbers.setdefault(label, len(numbers)) for label in labels.values()]
    return of_name, list(numbers)


def _nested(host: HostEvents, event: Ints, window: tuple[int, int]) -> tuple[Ints, dict[int, Segments]]:
    """The scope around each on its thread, -1 for none; and for each thread the scope of each instant."""
    parent = np.full(len(event), -1, dtype=np.int64)
    open_at = {}
    for thread in distinct_values(host.thread[event]).tolist():
        mine = np.flatnonzero(host.thread[event] == thread)
        start_ns, dur_ns = host.start_ns[event[mine]], host.dur_ns[event[mine]]
        above = Nesting(start_ns, dur_ns).parent
        parent[mine] = taken(mine, above)
        segments = sweep(start_ns, dur_ns, window)
        open_at[thread] = Segments(segments.start_ns, segments.dur_ns, taken(mine, segments.owner))
    return parent, open_at


def _innermost(open_at: Mapping[int, Segments], thread: Ints, instants_ns: Ints) -> Ints:
    innermost = np.full(len(thread), -1, dtype=np.int64)
    for number, segments in open_at.items():
        mine = np.flatnonzero(thread == number)
        if len(mine) and len(segments.start_ns):
            at = np.searchsorted(segments.start_ns, instants_ns[mine], "right") - 1
            inside = (at >= 0) & (instants_ns[mine] < segments.start_ns[at] + segments.dur_ns[at])
            innermost[mine] = np.where(inside, segments.owner[at], -1)
    return innermost


def _node_before(nodes: Ints, thread: Ints, parent: Ints) -> Ints:
    """For each node the last node before it inside of the same scope of the same thread; -1 for none."""
    around = np.where(parent[nodes] >= 0, parent[nodes], -1 - thread[nodes])
    order = np.argsort(around, kind="stable")
    again = np.flatnonzero(around[order[1:]] == around[order[:-1]])
    before = np.full(len(parent), -1, dtype=np.int64)
    before[nodes[order[again + 1]]] = nodes[order[again]]
    return before


def _references(parent: Ints, is_module: Bools, label: Ints, forward: tuple[Ints, Ints], before: Ints) -> Ints:
    """For each scope an earlier one that belongs where it does; itself for a call that has a place of its own, -1 for none.

    Args:
        label: Number of the module's name, -1 for a node.
        forward: Nodes that are joined to their forward, and the scope of each.
        before: Of an accumulation, the node before it.
    """
    steps = np.where(is_module, np.arange(len(parent)), np.where(before >= 0, before, parent))
    steps[forward[0]] = forward[1]
    modules = np.flatnonzero(is_module)
    first = np.zeros(int(label.max(initial=-1)) + 1, dtype=np.int64)
    first[label[modules[::-1]]] = modules[::-1]
    again = modules[(parent[modules] >= 0) & ~is_module[parent[modules]]]
    steps[again] = first[label[again]]
    return steps


def _joined(is_module: Bools, joined: Ints, before: Ints) -> Bools:
    """Whether each node is joined to its forward, or accumulates what such a node has made."""
    steps = np.where(is_module, -1, before)
    steps[joined] = joined
    return ends_of(steps) >= 0


def _tree(parent: Ints, call: Ints, label: Ints) -> tuple[Ints, list[int], list[int]]:
    """Place of each scope, and parent and label of each place; places are numbered by their first call.

    Args:
        call: The module call that each scope belongs to, ``OUTSIDE`` for none.
    """
    around = np.append(call, OUTSIDE)[parent]
    calls = np.flatnonzero(call == np.arange(len(call)))
    above = np.append(around, OUTSIDE)
    depth = (above >= 0).astype(np.int64)
    while (above >= 0).any():
        depth += depth[above]
        above = above[above]
    order = calls[np.argsort(depth[calls], kind="stable")]
    place = np.full(len(call) + 1, OUTSIDE, dtype=np.int64)
    count = 0
    for level in np.split(order, np.flatnonzero(np.diff(depth[order])) + 1):
        number, first = numbered_rows(place[around[level]], label[level])
        place[level] = count + number
        count += len(first)
    first = np.zeros(count, dtype=np.int64)
    first[place[calls[::-1]]] = calls[::-1]
    by_call = np.argsort(first)
    number = np.full(count + 1, OUTSIDE, dtype=np.int64)
    number[by_call] = np.arange(count)
    outer = number[place[around[first[by_call]]]]
    return number[place[call]], outer.tolist(), label[first[by_call]].tolist()


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
