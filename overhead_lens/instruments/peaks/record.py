"""Peaks: rates of the machine, in the last timed process unless kept with the calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.calibration.record import Calibrate
from overhead_lens.instruments.instrument import Turn, When
from overhead_lens.instruments.peaks.evidence import Peaks, kept_peaks
from overhead_lens.machine.operations import Operation

MEASURE = Operation("instruments.peaks.worker:measure_peaks", Peaks)


class MeasurePeaks:
    """The machine's peaks; None where they could not be measured."""

    name: ClassVar[str] = "peaks"
    when: ClassVar[When] = When.LAST

    def __init__(self) -> None:
        self.peaks: Peaks | None = None

    def measure(self, turn: Turn) -> None:
        """Take the kept ones, or measure."""
        kept = (turn.recording.of(Calibrate).calibration or {}).get("peaks")
        self.peaks = kept_peaks(kept) if kept else None
        if self.peaks is not None:
            return
        try:
            self.peaks = turn.asked.ask(MEASURE)
        except MeasurementError as error:
            turn.warn("no roofline floor", error)

    def write(self, _folder: Path) -> Any:
        """The peaks."""
        return self.peaks
