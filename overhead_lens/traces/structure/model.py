"""What changed in structure from one trace to another: frozen values. Durations are integer ns."""

from __future__ import annotations

from dataclasses import dataclass

from overhead_lens.errors import require

KINDS = ("operator", "kernel", "launch")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two traces.

    Attributes:
        steps: ``ProfilerStep`` windows that were looked at; 0 if the whole trace was.
        wall_ns: Their time, or the window's.
        events: Host and device events looked at.
    """

    path: str
    steps: int
    wall_ns: int
    events: int

    @property
    def step_ns(self) -> int:
        """The mean step, or the window, rounded."""
        steps = max(1, self.steps)
        return (2 * self.wall_ns + steps) // (2 * steps)


@dataclass(frozen=True, slots=True)
class SelfTime:
    """What a name owns of the step of either side.

    Attributes:
        name: Without signature, file and what differs from run to run.
        base_ns, new_ns: Per step (or in all), rounded so that all names sum to it.
    """

    name: str
    base_ns: int
    new_ns: int

    @property
    def delta_ns(self) -> int:
        """How much longer the new side takes."""
        return self.new_ns - self.base_ns


@dataclass(frozen=True, slots=True)
class Divided:
    """The step of either side, divided among names: each instant belongs to the event that began last.

    Attributes:
        where: ``host`` for the busiest thread; else the number of a device, with its idle time.
        names: They sum to ``Side.step_ns`` of either side; the largest absolute difference first.
    """

    where: str
    names: tuple[SelfTime, ...]


@dataclass(frozen=True, slots=True)
class StructureChange:
    """A name in the two traces.

    Attributes:
        kind: ``operator``, ``kernel`` or ``launch``, a runtime or driver call.
        status: ``appeared``, ``vanished``, ``changed`` or ``same``, by events per step (or in all, where not both have steps).
        base_count, new_count: Events looked at.
        base_ns, new_ns: Their summed duration.
        delta_ns: Change of the duration per step (or in all), rounded.
    """

    kind: str
    name: str
    status: str
    base_count: int
    new_count: int
    base_ns: int
    new_ns: int
    delta_ns: int


@dataclass(frozen=True, slots=True)
class Swap:
    """Kernels that an operator launched before, and the kernels that replace them.

    Attributes:
        base_kernels, new_kernels: Names that only one side has, costliest first.
    """

    operator: str
    base_kernels: tuple[str, ...]
    new_kernels: tuple[str, ...]
    base_count: int
    new_count: int
    base_ns: int
    new_ns: int


@dataclass(frozen=True, slots=True)
class StructureDelta:
    """The difference.

    Attributes:
        changes: Every name of either side, largest absolute change of time first.
        swaps: Largest absolute change of time first.
        divided: The step of the busiest threads, then of devices that both sides have.
    """

    base: Side
    new: Side
    per_step: bool
    changes: tuple[StructureChange, ...]
    swaps: tuple[Swap, ...]
    divided: tuple[Divided, ...] = ()

    def __post_init__(self) -> None:
        for divided in self.divided:
            sums = (sum(each.base_ns for each in divided.names), sum(each.new_ns for each in divided.names))
            require(
                sums == (self.base.step_ns, self.new.step_ns), f"self times of {divided.where} do not sum to the step"
            )

    @property
    def is_same(self) -> bool:
        """Whether both traces hold the same events, name by name."""
        return all(change.status == "same" for change in self.changes)
