"""``modules`` of ``overhead-lens/analysis/1``: the budget per module of a recorded trace; durations in whole ns."""

from __future__ import annotations

from overhead_lens.documents.common import Row, fill
from overhead_lens.traces.modules.model import Layers, ModuleBudgets, ModuleClass, ModuleTime


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
    own: ModuleTime
    total: ModuleTime


class Modules(Row, frozen=True):
    """The budget per module. Own times of all and ``outside`` sum to the threads, with ``unlinked_ns`` to the device events."""

    known_from: str
    nodes: list[Module]
    classes: list[ModuleClass]
    layers: list[Layers]
    outside: ModuleTime
    unlinked_ns: int
    unlinked_events: int
    backward_nodes: int
    unjoined_nodes: int


def modules_row(modules: ModuleBudgets | None) -> Modules | None:
    """What the document says of the modules; None if the trace names none."""
    if modules is None:
        return None
    nodes = [fill(Module, node, path=modules.path(place)) for place, node in enumerate(modules.nodes)]
    return fill(Modules, modules, nodes=nodes)
