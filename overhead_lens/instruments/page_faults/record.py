"""Page faults: what one takes beside the operating system's own time, in timed processes whose blocks had many."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from overhead_lens.instruments.clock.record import Clock
from overhead_lens.instruments.instrument import Turn, When
from overhead_lens.instruments.page_faults.evidence import PageFaults, Touched, matter
from overhead_lens.machine.operations import Operation

MEASURE = Operation("instruments.page_faults.worker:measure_page_faults", Touched)


class MeasurePageFaults:
    """What the processes measured, ``rows``."""

    name: ClassVar[str] = "page_faults"
    when: ClassVar[When] = When.TIMED

    def __init__(self) -> None:
        self.rows: list[Touched] = []

    def measure(self, turn: Turn) -> None:
        """Measure where the process's timed blocks had so many faults that they matter."""
        blocks = turn.recording.of(Clock).rows_of(turn.process)
        if matter(sum(row["minor_faults"] for row in blocks), sum(row["wall_ns"] for row in blocks)):
            found = turn.asked.ask(MEASURE)
            self.rows.append(Touched(found.faults, found.user_ns, turn.process))

    def write(self, _folder: Path) -> Any:
        """The rows, if there are any."""
        return PageFaults(self.rows) if self.rows else None
