"""All instruments, in the order in which they measure in a process."""

from __future__ import annotations

from collections.abc import Callable

from overhead_lens.instruments.ablation.record import Ablate
from overhead_lens.instruments.calibration.record import Calibrate
from overhead_lens.instruments.clock.record import Clock
from overhead_lens.instruments.guards.record import ListGuards
from overhead_lens.instruments.instructions.record import CountInstructions
from overhead_lens.instruments.instrument import Instrument
from overhead_lens.instruments.page_faults.record import MeasurePageFaults
from overhead_lens.instruments.peaks.record import MeasurePeaks
from overhead_lens.instruments.samples.record import SampleStacks
from overhead_lens.instruments.trace.record import RecordTrace

INSTRUMENTS: tuple[Callable[[], Instrument], ...] = (
    Clock,
    MeasurePageFaults,
    SampleStacks,
    RecordTrace,
    ListGuards,
    Calibrate,
    Ablate,
    MeasurePeaks,
    CountInstructions,
)
