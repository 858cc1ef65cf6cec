"""Guards: those of a compiled call and the time of each, in the traced process."""

from __future__ import annotations

from msgspec import Struct

from overhead_lens.instruments.instrument import Instrument, Turn, When
from overhead_lens.machine.operations import Operation

INBUILT = "inbuilt"


class Leaf(Struct, frozen=True):
    """A leaf guard.

    Attributes:
        owner: ``inbuilt`` where it looks at or into a module of torch's own, ``own`` at or into another; else empty.
        warm_ns: Time of a check in a loop, one value per repetition; None with ``reason``.
        cold_ns: Median time of a check after a flush of the caches; None where time was up.
    """

    type: str
    text: str = ""
    source: str = ""
    cause: str | None = None
    warm_ns: list[float] | None = None
    cold_ns: float | None = None
    reason: str | None = None
    owner: str = ""


class Tree(Struct, frozen=True):
    """Time of a check of the whole guard tree, as for a leaf."""

    warm_ns: list[float] | None = None
    cold_ns: float | None = None


class Compilation(Struct, frozen=True):
    """A compiled frame; ``reason`` says why it was recompiled, None for the first time."""

    place: str
    name: str = ""
    reason: str | None = None
    seconds: float | None = None


class GraphBreak(Struct, frozen=True):
    """A graph break with its place and reason."""

    reason: str
    place: str | None = None


class Guards(Struct, frozen=True):
    """Guards in checking order; ``reason`` if this torch shows none or they cannot be timed."""

    guards: list[Leaf] = []
    tree: Tree | None = None
    compilations: list[Compilation] = []
    graph_breaks: list[GraphBreak] = []
    reason: str | None = None


LIST = Operation("instruments.guards.worker:list_guards", Guards)


class ListGuards(Instrument):
    """The guards of a compiled call; None of an eager one."""

    name = "guards"
    when = When.TRACED
    note: Guards | None = None

    def measure(self, turn: Turn) -> None:
        """List and time them."""
        if turn.recording.compiles:
            self.note = turn.present_worker.ask(LIST)
