"""What changed in structure from one trace to another: frozen values. Durations are integer ns."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("operator", "kernel", "launch")
STATUSES = ("appeared", "vanished", "changed", "same")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two traces.

    Attributes:
        steps: ``ProfilerStep`` windows that were looked at; 0 where the whole trace was.
        wall_ns: Their time, or the window's.
        events: Host and device events looked at.
    """

    path: str
    steps: int
    wall_ns: int
    events: int


@dataclass(frozen=True, slots=True)
class StructureChange:
    """A name in the two traces.

    Attributes:
        kind: Of ``KINDS``: ``launch`` is a runtime or driver call.
        status: Of ``STATUSES``, by the number of events per step (or in all, where not both have steps).
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
    """Kernels that an operator launched before, and those that it launches now in their place.

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
        per_step: Whether counts and times were compared per step.
        changes: Every name of either side, largest absolute change of time first.
        swaps: Largest absolute change of time first.
    """

    base: Side
    new: Side
    per_step: bool
    changes: tuple[StructureChange, ...]
    swaps: tuple[Swap, ...]

    @property
    def is_same(self) -> bool:
        """Whether both traces hold the same events, name by name."""
        return all(change.status == "same" for change in self.changes)
