"""Calibration: what the trace's events cost here, kept for the machine, measured again while few processes did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from overhead_lens.captures.files import CALIBRATION
from overhead_lens.correction import store
from overhead_lens.correction.record import MEASURE_COSTS, PLAIN
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instrument import Recording, Turn, When
from overhead_lens.instruments.trace.record import RecordTrace
from overhead_lens.machine.environment import describe_machine


class Calibrate:
    """The kept calibration, with this process's part where it was still wanted; None where there is none."""

    name: ClassVar[str] = "calibration"
    when: ClassVar[When] = When.TRACED

    def __init__(self) -> None:
        self.calibration: dict[str, Any] | None = None

    def measure(self, turn: Turn) -> None:
        """Measure, unless enough processes did; nothing without a trace."""
        if not self.is_wanted(turn.recording):
            return
        try:
            found = turn.asked.ask(MEASURE_COSTS, flags=[PLAIN], compiled=turn.request.compiles)
        except MeasurementError as error:
            turn.warn("the cost of recording is not calibrated", error)
            return
        self.calibration = store.joined(self.calibration, found)
        store.save(_name(turn.recording), self.calibration)

    def is_wanted(self, recording: Recording) -> bool:
        """Whether there is a trace, and the kept calibration, which is loaded, lacks processes."""
        about = recording.of(RecordTrace).about
        if about is None or about.reason:
            return False
        self.calibration = store.load(_name(recording))
        return store.processes(self.calibration, PLAIN, compiled=recording.request.compiles) < store.PROCESSES

    def write(self, folder: Path) -> Any:
        """Write ``calibration.json``; ``meta.json`` has nothing to say of it."""
        if self.calibration is not None:
            (folder / CALIBRATION).write_text(json.dumps(self.calibration) + "\n", encoding="utf-8")


def _name(recording: Recording) -> str:
    return store.key(describe_machine(), recording.runtime)
