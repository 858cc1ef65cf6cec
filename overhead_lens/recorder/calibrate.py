"""Calibrates the machine: the profiler's cost in several workers, peak rates in one."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec

from overhead_lens.correction import store
from overhead_lens.correction.event_cost import EventCost
from overhead_lens.correction.fit import event_costs
from overhead_lens.correction.store import MEASURE_COSTS, PLAIN
from overhead_lens.instruments.peaks.record import MEASURE as MEASURE_PEAKS
from overhead_lens.machine.environment import describe_machine
from overhead_lens.machine.operations import DESCRIBE_RUNTIME
from overhead_lens.machine.process import Worker
from overhead_lens.machine.request import Listener

ALL_FLAGS = (PLAIN, "shapes", "memory", "stack")


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration, its file, and the reason if it could not be stored."""

    calibration: Mapping[str, Any]
    path: Path
    store_failure: str | None

    @property
    def costs(self) -> dict[str, dict[str, EventCost]]:
        """Costs of events, by the profiler's flags and the class of event."""
        rows = self.calibration["rows"]
        return {flags: event_costs(rows, flags) for flags in dict.fromkeys(row["flags"] for row in rows)}


def calibrate_machine(timeout_s: float, listener: Listener) -> Calibrated:
    """Measure in several processes, the first under all flags, and keep the calibration.

    Raises:
        MeasurementError: The worker died or took too long.
    """
    listener.begin(store.PROCESSES + 1)
    calibration: dict[str, Any] | None = None
    runtime: dict[str, Any] = {}
    peaks: dict[str, Any] = {}
    for number in range(store.PROCESSES):
        with tempfile.TemporaryDirectory() as folder, Worker("calibrator", Path(folder, "log"), timeout_s) as worker:
            listener.step(f"measuring what recording costs: process {number}")
            flags = [PLAIN] if number else list(ALL_FLAGS)
            calibration = store.joined(calibration, worker.ask(MEASURE_COSTS, flags=flags, compiled=True))
            if not number:
                listener.step("measuring the machine's peaks")
                runtime = worker.ask(DESCRIBE_RUNTIME)
                peaks = msgspec.to_builtins(worker.ask(MEASURE_PEAKS))
    machine = describe_machine()
    measured = datetime.now(timezone.utc).isoformat(timespec="seconds")
    about = {"environment": {**machine, **runtime}, "measured": measured}
    calibration = {**(calibration or {}), "peaks": peaks, **about}
    name = store.key(machine, runtime)
    return Calibrated(calibration, store.place(name), store.save(name, calibration))
