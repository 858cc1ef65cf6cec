"""Guards: those of a compiled call and the time of each, in the traced process."""

from __future__ import annotations

from overhead_lens.instruments.guards.evidence import Guards
from overhead_lens.instruments.instrument import Instrument, Turn, When
from overhead_lens.machine.operations import Operation

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
