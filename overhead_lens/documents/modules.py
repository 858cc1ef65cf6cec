"""``modules`` of ``overhead-lens/analysis/1``: the budget per module of a recorded trace; durations in whole ns."""

from __future__ import annotations

from overhead_lens.documents.common import Row, fill
from overhead_lens.traces.modules.model import Layers, ModuleBudgets


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


class Modules(Row, frozen=True):
    """The budget per module. Own times of all and ``outside`` sum to the threads, with ``unlinked_ns`` to the device events."""

    known_from: str
    nodes: list[Module]
    classes: list[OfClass]
    layers: list[Layers]
    outside: ModuleTimes
    unlinked_ns: int
    unlinked_events: int
    backward_nodes: int
    unjoined_nodes: int


def modules_row(modules: ModuleBudgets | None) -> Modules | None:
    """What the document says of the modules; None where the trace names none."""
    if modules is None:
        return None
    nodes = [fill(Module, node, path=modules.path(place)) for place, node in enumerate(modules.nodes)]
    return fill(Modules, modules, nodes=nodes)
