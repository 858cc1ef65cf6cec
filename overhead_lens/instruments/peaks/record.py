"""Peaks: the machine's rates, in the last timed process, while the calibration lacks processes; then those stored."""

from __future__ import annotations

import msgspec

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.calibration.record import Calibrate
from overhead_lens.instruments.instrument import Instrument, Turn, When
from overhead_lens.instruments.peaks.evidence import Peaks, faster, stored_peaks
from overhead_lens.machine.operations import Operation

MEASURE = Operation("instruments.peaks.worker:measure_peaks", Peaks)


class MeasurePeaks(Instrument):
    """The machine's peaks; None if they could not be measured."""

    name = "peaks"
    when = When.LAST
    note: Peaks | None = None

    def measure(self, turn: Turn) -> None:
        """Use the stored peaks, or measure; the faster of both are stored, since other load only makes them slower."""
        calibrate = turn.recording.of(Calibrate)
        stored = stored_peaks((calibrate.calibration or {}).get("peaks"), turn.recording.device)
        self.note = stored
        if stored is not None and not calibrate.measured:
            return
        try:
            measured = turn.present_worker.ask(MEASURE)
        except MeasurementError as error:
            turn.warn("no roofline floor", error)
            return
        self.note = measured if stored is None else faster(stored, measured)
        calibrate.keep(turn.recording, peaks=msgspec.to_builtins(self.note))
