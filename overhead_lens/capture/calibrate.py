"""The recorder's side of a calibration: workers that measure the profiler's cost, and one of them the machine's peaks."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from overhead_lens.capture import calibration_store as store
from overhead_lens.capture.environment import describe_machine
from overhead_lens.capture.process import Worker
from overhead_lens.capture.record import PLAIN, Listener

ALL_FLAGS = (PLAIN, "shapes", "memory", "stack")


@dataclass(frozen=True, slots=True)
class Kept:
    """A calibration, where it is kept, and why not where it is not."""

    calibration: Mapping[str, Any]
    path: Path
    not_kept: str | None


def calibrate_machine(timeout_s: float, listener: Listener) -> Kept:
    """Measure in several processes, the first under all flags, and keep what was measured.

    Raises:
        MeasurementError: The worker died or took too long.
    """
    listener.begin(store.PROCESSES + 1)
    calibration: dict[str, Any] | None = None
    runtime, peaks = {}, {}
    for number in range(store.PROCESSES):
        with tempfile.TemporaryDirectory() as folder, Worker("calibrator", Path(folder, "log"), timeout_s) as worker:
            listener.step(f"measuring what recording costs: process {number}")
            flags = [PLAIN] if number else list(ALL_FLAGS)
            calibration = store.joined(calibration, worker.ask("calibrate", flags=flags, compiled=True))
            if not number:
                listener.step("measuring the machine's peaks")
                runtime, peaks = worker.ask("environment"), worker.ask("peaks")
    machine = describe_machine()
    calibration = {**(calibration or {}), "peaks": peaks, **about(machine, runtime)}
    name = store.key(machine, runtime)
    return Kept(calibration, store.place(name), store.save(name, calibration))


def about(machine: Mapping[str, Any], runtime: Mapping[str, Any]) -> dict[str, Any]:
    """When and on what a calibration was made."""
    return {
        "environment": {**machine, **runtime},
        "measured": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
