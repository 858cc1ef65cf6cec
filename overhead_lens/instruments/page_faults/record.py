"""Page faults: the user time of one, in timed processes whose blocks had many."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from overhead_lens.instruments.clock.record import Clock
from overhead_lens.instruments.instrument import Instrument, Turn, When
from overhead_lens.machine.operations import Operation

# A fault takes at least this long; page faults of less than this share of the time are neglected.
_LEAST_FAULT_NS = 100
_LEAST_SHARE = 0.002

NotNegative = Annotated[int, Meta(ge=0)]


class Touched(Struct, frozen=True):
    """Fresh pages that a process touched, and their extra user time, ns, over pages that are there."""

    faults: NotNegative
    user_ns: NotNegative
    process: int = 0


class PageFaults(Struct, frozen=True):
    """One row per process that measured; none where page faults do not matter."""

    processes: list[Touched] = []


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


def matter(faults: float, wall_ns: float) -> bool:
    """Whether this number of page faults is visible in this time."""
    return faults * _LEAST_FAULT_NS >= _LEAST_SHARE * wall_ns
