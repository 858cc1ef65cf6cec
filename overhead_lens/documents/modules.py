"""``modules`` of ``overhead-lens/analysis/1``: the budget per module of a recorded trace; durations in whole ns."""

from __future__ import annotations

from overhead_lens.documents.common import Row, fill
from overhead_lens.traces.modules.model import Layers, ModuleBudgets, ModuleClass, ModuleNode


class ModuleTimes(Row, frozen=True):
    """Time of a module: of the busiest thread and of all others by category (no zeros), of device events launched in it."""

    host_ns: int
    host: dict[str, int]
    host_backward_ns: int
    others_ns: int
    others: dict[str, int]
    others_backward_ns: int
    device_ns: int
    device_forward_ns: int
    device_backward_ns: int
    communication_ns: int
    device_events: int


class Module(Row, frozen=True):
    """A module as called from its parent, whose place in the list is ``parent``; ``again`` of its calls in a backward pass."""

    path: str
    parent: int | None
    name: str
    class_name: str
    number: int | None
    depth: int
    calls: int
    again: int
    own: ModuleTimes
    total: ModuleTimes


class OfClass(Row, frozen=True):
    """All modules of a class; ``total`` counts what is inside another one of the class once."""

    class_name: str
    instances: int
    calls: int
    own: ModuleTimes
    total: ModuleTimes


class LayersOf(Row, frozen=True):
    """Modules of one class below one parent, in order of their first call; places in the list of modules."""

    parent: int | None
    class_name: str
    nodes: list[int]


class Modules(Row, frozen=True):
    """The budget per module. Own times of all and ``outside`` sum to the threads, with ``unlinked_ns`` to the device events."""

    known_from: str
    nodes: list[Module]
    classes: list[OfClass]
    layers: list[LayersOf]
    outside: ModuleTimes
    unlinked_ns: int
    unlinked_events: int
    backward_nodes: int
    unjoined_nodes: int


def modules_row(modules: ModuleBudgets | None) -> Modules | None:
    """What the document says of the modules; None where the trace names none."""
    if modules is None:
        return None
    return fill(
        Modules,
        modules,
        nodes=[_node(modules, place, node) for place, node in enumerate(modules.nodes)],
        classes=[_class(each) for each in modules.classes],
        layers=[_layers(each) for each in modules.layers],
        outside=fill(ModuleTimes, modules.outside),
    )


def _node(modules: ModuleBudgets, place: int, node: ModuleNode) -> Module:
    return fill(
        Module,
        node,
        path=modules.path(place),
        own=fill(ModuleTimes, node.own),
        total=fill(ModuleTimes, node.total),
    )


def _class(each: ModuleClass) -> OfClass:
    return fill(OfClass, each, own=fill(ModuleTimes, each.own), total=fill(ModuleTimes, each.total))


def _layers(each: Layers) -> LayersOf:
    return fill(LayersOf, each)
