"""Guards of a compiled call, in the traced process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from overhead_lens.instruments.guards.evidence import Guards
from overhead_lens.instruments.instrument import Turn, When
from overhead_lens.machine.operations import Operation

LIST = Operation("instruments.guards.worker:list_guards", Guards)


class ListGuards:
    """What guards there are, and what each takes."""

    name: ClassVar[str] = "guards"
    when: ClassVar[When] = When.TRACED

    def __init__(self) -> None:
        self.found: Guards | None = None

    def measure(self, turn: Turn) -> None:
        """List and time them."""
        if turn.request.compiles:
            self.found = turn.asked.ask(LIST)

    def write(self, _folder: Path) -> Any:
        """What was found."""
        return self.found
