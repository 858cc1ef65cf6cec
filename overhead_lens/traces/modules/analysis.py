"""The budget per module: host time of threads, instant by instant; device time, launch by launch.

An instant of a thread belongs to the scope that is open then (``scopes.py``): the innermost module, or the module that a node of
the backward pass is joined to. A device event belongs to what is open on the launching thread when its launch is called. What no
scope is open for, and nodes of operators that ran outside of all modules, are outside. So the parts close: own times and
``outside`` sum to the budgets of the threads category by category, and with ``unlinked`` to the durations of the device events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Bools, Ints
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.traces.device import COMMUNICATION, device_kinds
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.host_budget import ThreadPieces
from overhead_lens.traces.launches import Linked
from overhead_lens.traces.modules.model import Layers, ModuleBudgets, ModuleClass, ModuleNode, ModuleTime
from overhead_lens.traces.modules.scopes import OUTSIDE, Scopes, class_and_number
from overhead_lens.traces.timeline import Segments, laid_over, sum_by

PHASES = ("forward", "again", "backward")
"""A call; a call in the backward pass, which computes again; a node of the backward pass that belongs to a module."""

_DISPATCHER, _KERNEL = (HOST_CATEGORIES.index(name) for name in ("dispatcher", "kernel"))
_COUNT = len(HOST_CATEGORIES)
_BUSIEST, _OTHERS = 0, 1
_BACKWARD = _COUNT
_COLUMNS = 2 * (_COUNT + 1) + 4
_FORWARD_DEVICE, _BACKWARD_DEVICE, _COMMUNICATION, _EVENTS = range(2 * (_COUNT + 1), _COLUMNS)


def module_budgets(
    scopes: Scopes, host: HostEvents, threads: Sequence[ThreadPieces], events: Events, linked: Linked
) -> ModuleBudgets:
    """Divide threads, the busiest first, and device work among the modules of a trace."""
    count = len(scopes.parents)
    # A row for each place and a last one for what is outside: categories and backward of the busiest thread, the same of the
    # others, device forward, device backward, of these two communication, device events.
    own = np.zeros((count + 1, _COLUMNS), dtype=np.int64)
    for number, pieces in enumerate(threads):
        column = (_BUSIEST if number == 0 else _OTHERS) * (_COUNT + 1)
        own[:, column : column + _COUNT + 1] += _thread_sums(scopes, pieces, count)
    unlinked = linked.launch < 0
    dur_ns = events["dur_ns"][linked.rows]
    communicates = device_kinds(events, linked.rows) == COMMUNICATION
    _add_device(own, scopes, host, linked.launch[~unlinked], dur_ns[~unlinked], communicates[~unlinked])
    total = own[:count].copy()
    for place in range(count - 1, -1, -1):
        if (parent := scopes.parents[place]) != OUTSIDE:
            total[parent] += total[place]
    nodes = _nodes(scopes, own, total)
    is_node = ~scopes.is_module
    return ModuleBudgets(
        known_from=scopes.known_from,
        nodes=nodes,
        classes=_classes(nodes, own, total),
        layers=_layers(nodes),
        outside=_time(own[count]),
        unlinked_ns=int(dur_ns[unlinked].sum()),
        unlinked_events=int(unlinked.sum()),
        backward_nodes=int(is_node.sum()),
        unjoined_nodes=int((is_node & ~scopes.joined).sum()),
    )


def _thread_sums(scopes: Scopes, pieces: ThreadPieces, count: int) -> Ints:
    """Time per place and category, and of it the backward pass: int64, shape ``(count + 1, categories + 1)``."""
    sums = np.zeros((count + 1, _COUNT + 1), dtype=np.int64)
    if not len(pieces.start_ns):
        return sums
    nothing = Segments(pieces.start_ns[:1], pieces.dur_ns[:1], np.array([-1]))
    starts, piece, scope = laid_over(pieces.start_ns, scopes.open_at.get(pieces.timeline.number, nothing))
    dur_ns = np.diff(np.append(starts, pieces.start_ns[-1] + pieces.dur_ns[-1]))
    place, backward = _belongs(scopes, scope, count)
    group = (2 * place + backward) * _COUNT + pieces.categories()[piece]
    by_phase = sum_by(group, dur_ns, 2 * (count + 1) * _COUNT).reshape(count + 1, 2, _COUNT)
    at, kernel_ns = pieces.kernels(pieces.owner[piece], dur_ns)
    moved_ns = sum_by(place[at], kernel_ns, count + 1)
    sums[:, :_COUNT] = by_phase.sum(axis=1)
    sums[:, _DISPATCHER] -= moved_ns
    sums[:, _KERNEL] += moved_ns
    sums[:, _BACKWARD] = by_phase[:, 1].sum(axis=1)
    return sums


def _belongs(scopes: Scopes, scope: Ints, count: int) -> tuple[Ints, Bools]:
    """The place of each scope, ``count`` for outside, and whether it is of a backward pass."""
    # The last entry is for -1, no scope.
    place = np.append(np.where(scopes.module == OUTSIDE, count, scopes.module), count)
    return place[scope], np.append(scopes.backward, False)[scope]


def _add_device(own: Ints, scopes: Scopes, host: HostEvents, launch: Ints, dur_ns: Ints, communicates: Bools) -> None:
    """Add device events with the rows of their launches."""
    count = len(own) - 1
    event = host.places(launch)
    place, backward = _belongs(scopes, scopes.around(host.thread[event], host.start_ns[event]), count)
    for column, chosen in ((_FORWARD_DEVICE, ~backward), (_BACKWARD_DEVICE, backward), (_COMMUNICATION, communicates)):
        own[:, column] += sum_by(place[chosen], dur_ns[chosen], count + 1)
    own[:, _EVENTS] += np.bincount(place, minlength=count + 1)


def _time(row: Ints) -> ModuleTime:
    values = row.tolist()
    busiest, others = values[: _COUNT + 1], values[_COUNT + 1 : 2 * (_COUNT + 1)]
    return ModuleTime(
        _by_category(busiest[:_COUNT]),
        busiest[_BACKWARD],
        _by_category(others[:_COUNT]),
        others[_BACKWARD],
        values[_FORWARD_DEVICE],
        values[_BACKWARD_DEVICE],
        values[_COMMUNICATION],
        values[_EVENTS],
    )


def _by_category(values: Sequence[int]) -> dict[str, int]:
    return {category: ns for category, ns in zip(HOST_CATEGORIES, values, strict=True) if ns}


def _nodes(scopes: Scopes, own: Ints, total: Ints) -> tuple[ModuleNode, ...]:
    count = len(scopes.parents)
    calls = np.bincount(scopes.module[scopes.is_module], minlength=count).tolist()
    again = np.bincount(scopes.module[scopes.is_module & scopes.backward], minlength=count).tolist()
    depths: list[int] = []
    nodes = []
    for place, (parent, name) in enumerate(zip(scopes.parents, scopes.names, strict=True)):
        depths.append(0 if parent == OUTSIDE else depths[parent] + 1)
        class_name, number = class_and_number(name)
        above = None if parent == OUTSIDE else parent
        nodes.append(
            ModuleNode(
                above, name, class_name, number, depths[-1], calls[place], again[place],
                _time(own[place]), _time(total[place]),
            )
        )  # fmt: skip
    return tuple(nodes)


def _classes(nodes: Sequence[ModuleNode], own: Ints, total: Ints) -> tuple[ModuleClass, ...]:
    """Sums by class, the most own time on host and device first."""
    numbers: dict[str, int] = {}
    kind = np.array([numbers.setdefault(node.class_name, len(numbers)) for node in nodes], dtype=np.int64)
    sums = np.zeros((2, len(numbers), own.shape[1]), dtype=np.int64)
    np.add.at(sums[0], kind, own[: len(nodes)])
    outermost = np.array(_outermost(nodes), dtype=np.int64)
    np.add.at(sums[1], kind[outermost], total[outermost])
    instances: Counter[str] = Counter(class_name for class_name, _ in {(node.class_name, node.name) for node in nodes})
    calls = sum_by(kind, np.array([node.calls for node in nodes], dtype=np.int64), len(numbers)).tolist()
    classes = [
        ModuleClass(name, instances[name], calls[number], _time(sums[0, number]), _time(sums[1, number]))
        for name, number in numbers.items()
    ]
    return tuple(sorted(classes, key=lambda each: -(each.own.host_ns + each.own.others_ns + each.own.device_ns)))


def _outermost(nodes: Sequence[ModuleNode]) -> list[int]:
    """Places that are below no module of their class."""
    around: dict[int | None, frozenset[str]] = {None: frozenset()}  # classes of a module and of those around it
    places = []
    for place, node in enumerate(nodes):
        if node.parent is not None and node.parent not in around:
            above = nodes[node.parent]
            around[node.parent] = around[above.parent] | {above.class_name}
        if node.class_name not in around[node.parent]:
            places.append(place)
    return places


def _layers(nodes: Iterable[ModuleNode]) -> tuple[Layers, ...]:
    groups: dict[tuple[int | None, str], list[int]] = {}
    for place, node in enumerate(nodes):
        groups.setdefault((node.parent, node.class_name), []).append(place)
    return tuple(Layers(parent, name, tuple(places)) for (parent, name), places in groups.items() if len(places) > 1)


def module_calls(scopes: Scopes, host: HostEvents) -> Events:
    """Every call of a module and every node of the backward pass that belongs to one, in order of start.

    Returns:
        ``thread`` (number in ``host.threads``), ``start_ns``, ``dur_ns``, ``node`` (place in the tree), ``phase`` (one of
        ``PHASES``). Nodes inside of nodes are left out.
    """
    inner = (scopes.parent >= 0) & scopes.backward[scopes.parent]
    chosen = np.flatnonzero((scopes.module != OUTSIDE) & (scopes.is_module | ~inner))
    event = scopes.event[chosen]
    phase = np.where(scopes.is_module[chosen], scopes.backward[chosen].astype(np.int64), PHASES.index("backward"))
    return {
        "thread": host.thread[event],
        "start_ns": host.start_ns[event],
        "dur_ns": host.dur_ns[event],
        "node": scopes.module[chosen],
        "phase": np.array(PHASES, dtype=object)[phase],
    }
