"""Page faults: the user time of one, in timed processes whose blocks had many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from overhead_lens.instruments.clock.record import Clock
from overhead_lens.instruments.instrument import Instrument, Turn, When
from overhead_lens.instruments.page_faults.evidence import PageFaults, Touched, matter
from overhead_lens.machine.operations import Operation

MEASURE = Operation("instruments.page_faults.worker:measure_page_faults", Touched)


class MeasurePageFaults(Instrument):
    """User time of page faults, ``rows`` by process."""

    name = "page_faults"
    when = When.TIMED

    def __init__(self) -> None:
        self.rows: list[Touched] = []

    def measure(self, turn: Turn) -> None:
        """Measure if the page faults of the process's blocks matter."""
        blocks = turn.recording.of(Clock).rows_of(turn.process)
        if matter(sum(row["minor_faults"] for row in blocks), sum(row["wall_ns"] for row in blocks)):
            touched = turn.present_worker.ask(MEASURE)
            self.rows.append(Touched(touched.faults, touched.user_ns, turn.process))

    def write(self, _folder: Path) -> Any:
        """The rows, if there are any."""
        return PageFaults(self.rows) if self.rows else None
