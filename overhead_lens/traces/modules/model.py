"""What a trace says of its modules: frozen values whose constructors check that they close. Durations are integer ns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from overhead_lens.contract import derive
from overhead_lens.errors import require

EVENTS, MARKS = "events", "annotations"
"""Where modules are known from: ``nn.Module`` events, or annotations of the program."""

MOST_PATH_NAMES = 32


@dataclass(frozen=True, slots=True)
class ModuleTime:
    """Time of a module: of the busiest thread and of all others by category (no zeros), of device events launched in it."""

    host_ns: int = field(init=False)
    host: Mapping[str, int]
    host_backward_ns: int  # In nodes of the backward pass.
    others_ns: int = field(init=False)
    others: Mapping[str, int]
    others_backward_ns: int
    # Durations summed; those of different streams may run at once.
    device_ns: int = field(init=False)
    device_forward_ns: int
    device_backward_ns: int
    # A gradient's all-reduce is launched in the module whose gradient filled the bucket, and runs until the last rank has come.
    communication_ns: int
    device_events: int

    def __post_init__(self) -> None:
        derive(self, host_ns=sum(self.host.values()), others_ns=sum(self.others.values()))
        derive(self, device_ns=self.device_forward_ns + self.device_backward_ns)
        require(0 <= self.host_backward_ns <= self.host_ns, "a module's backward pass takes more than all of it")
        require(0 <= self.others_backward_ns <= self.others_ns, "a module's backward pass takes more than all of it")
        require(0 <= self.communication_ns <= self.device_ns, "a module communicates for more than its device time")

    @property
    def categories(self) -> list[tuple[str, int]]:
        """Host time of all threads by category, the most first."""
        sums = {name: self.host.get(name, 0) + self.others.get(name, 0) for name in (*self.host, *self.others)}
        return sorted(sums.items(), key=lambda item: -item[1])


@dataclass(frozen=True, slots=True)
class ModuleNode:
    """A module as called from its parent.

    Attributes:
        parent: Place of its parent in the tree, before its own; None for a module that no other calls.
        name: Class and number of the instance: ``Linear_3``.
        number: 3; None if the trace numbers no instances.
        depth: Modules around it.
        calls: Of these, ``again`` in a backward pass (activation checkpointing).
    """

    parent: int | None
    name: str
    class_name: str
    number: int | None
    depth: int
    calls: int
    again: int
    own: ModuleTime
    total: ModuleTime


@dataclass(frozen=True, slots=True)
class ModuleClass:
    """All modules of a class; ``total`` counts what is inside another one of the class once."""

    class_name: str
    instances: int
    calls: int
    own: ModuleTime
    total: ModuleTime


@dataclass(frozen=True, slots=True)
class Layers:
    """Modules of one class below one parent: the layers of a model.

    Attributes:
        parent: Place of the parent; None for modules that no other calls.
        nodes: Their places, at least two, in order of their first call.
    """

    parent: int | None
    class_name: str
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModuleBudgets:
    """The budget per module: own times of all nodes and ``outside`` sum to the threads, and to the device with ``unlinked``.

    Attributes:
        known_from: ``EVENTS`` or ``MARKS``.
        nodes: The tree, parents before their children, in order of the first call.
        classes: The most own time first.
        layers: In order of the first call.
        outside: What no module is open for.
        unlinked_ns, unlinked_events: Device events whose launch is not in the trace.
        backward_nodes: Nodes of the backward pass.
        unjoined_nodes: Of these, those that nothing joins to their forward: they count as what is open around them.
    """

    known_from: str
    nodes: tuple[ModuleNode, ...]
    classes: tuple[ModuleClass, ...]
    layers: tuple[Layers, ...]
    outside: ModuleTime
    unlinked_ns: int
    unlinked_events: int
    backward_nodes: int
    unjoined_nodes: int

    def __post_init__(self) -> None:
        for place, node in enumerate(self.nodes):
            require(node.parent is None or 0 <= node.parent < place, f"{node.name}: its parent comes after it")
        own, total = self.inside, [node.total for node in self.nodes if node.parent is None]
        require(own.host_ns == sum(each.host_ns for each in total), "own times do not sum to the outermost modules")
        require(
            own.device_ns == sum(each.device_ns for each in total), "device times do not sum to the outermost modules"
        )

    @property
    def inside(self) -> ModuleTime:
        """Time in any module."""
        return summed([node.own for node in self.nodes])

    @property
    def whole(self) -> ModuleTime:
        """All time: the busiest thread's budget, that of the others, and device events that are linked."""
        return summed([self.inside, self.outside])

    def path(self, place: int) -> str:
        """Names from the outermost module to that at ``place``; of very deep ones the last."""
        names: list[str] = []
        at: int | None = place
        while at is not None and len(names) < MOST_PATH_NAMES:
            names.append(self.nodes[at].name)
            at = self.nodes[at].parent
        return "/".join([*(["…"] if at is not None else []), *reversed(names)])


def summed(times: Sequence[ModuleTime]) -> ModuleTime:
    """The sum of times."""
    host: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for time in times:
        host.update(time.host)
        others.update(time.others)
    return ModuleTime(
        host,
        sum(time.host_backward_ns for time in times),
        others,
        sum(time.others_backward_ns for time in times),
        sum(time.device_forward_ns for time in times),
        sum(time.device_backward_ns for time in times),
        sum(time.communication_ns for time in times),
        sum(time.device_events for time in times),
    )
