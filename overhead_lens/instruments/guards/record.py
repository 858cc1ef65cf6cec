"""Guards: those of a compiled call and the time of each, in the traced process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from overhead_lens.instruments.guards.evidence import Guards
from overhead_lens.instruments.instrument import Turn, When
from overhead_lens.machine.operations import Operation

LIST = Operation("instruments.guards.worker:list_guards", Guards)


class ListGuards:
    """The guards of a compiled call; None of an eager one."""

    name: ClassVar[str] = "guards"
    when: ClassVar[When] = When.TRACED

    def __init__(self) -> None:
        self.guards: Guards | None = None

    def measure(self, turn: Turn) -> None:
        """List and time them."""
        if turn.recording.compiles:
            self.guards = turn.present_worker.ask(LIST)

    def write(self, _folder: Path) -> Any:
        """The guards."""
        return self.guards
