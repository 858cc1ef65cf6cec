"""Calibration: what the trace's events cost on this machine, measured until enough processes have been."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overhead_lens.captures.directory import Capture
from overhead_lens.captures.files import CALIBRATION
from overhead_lens.correction import store
from overhead_lens.correction.store import MEASURE_COSTS, PLAIN
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instrument import Instrument, Recording, Turn, When
from overhead_lens.instruments.trace.record import RecordTrace
from overhead_lens.machine.environment import describe_machine

# The kind of device that the trace records.
_DEVICE = "cuda"


class Calibrate(Instrument):
    """The stored calibration, extended by this process's rows if it has too few processes.

    Attributes:
        calibration: None if none is known.
        measured: Whether this recording's process has added its rows.
    """

    name = "calibration"
    when = When.TRACED

    def __init__(self) -> None:
        self.calibration: dict[str, Any] | None = None
        self.measured = False

    def measure(self, turn: Turn) -> None:
        """Measure, if there is a trace and the kept calibration lacks processes."""
        if not self.is_due(turn.recording):
            return
        try:
            recording = turn.recording
            measured = turn.present_worker.ask(
                MEASURE_COSTS, flags=[PLAIN], compiled=recording.compiles, device=recording.device == _DEVICE
            )
        except MeasurementError as error:
            turn.warn("the cost of recording is not calibrated", error)
            return
        self.measured = True
        self.keep(turn.recording, **store.joined(self.calibration, measured))

    def keep(self, recording: Recording, **more: Any) -> None:
        """Add to the calibration, and keep it for later recordings; nothing without a calibration or what makes one."""
        if self.calibration is not None or "rows" in more:
            self.calibration = {**(self.calibration or {}), **more}
            store.save(_name(recording), self.calibration)

    def is_due(self, recording: Recording) -> bool:
        """Load the kept calibration; returns whether there is a trace and it lacks processes."""
        about = recording.of(RecordTrace).note
        if about is None or about.reason:
            return False
        self.calibration = store.load(_name(recording))
        failed = (self.calibration or {}).get("reasons", {})
        on_device = recording.device == _DEVICE and "device_launch" not in failed
        return store.processes(self.calibration, PLAIN, compiled=recording.compiles, device=on_device) < store.PROCESSES

    def write(self, folder: Path) -> Any:
        """Write ``calibration.json``; it has no note in ``meta.json``."""
        if self.calibration is not None:
            (folder / CALIBRATION).write_text(json.dumps(self.calibration) + "\n", encoding="utf-8")


def _name(recording: Recording) -> str:
    return store.key(describe_machine(), recording.runtime)


def read_calibration(capture: Capture) -> dict[str, Any] | None:
    """The calibration that a capture was recorded with; None without a file.

    Raises:
        UsageError: The file holds something else.
    """
    path = capture.existing(CALIBRATION)
    if path is None:
        return None
    try:
        calibration = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise capture.damaged(f"{CALIBRATION}: {error}") from error
    rows = calibration.get("rows") if isinstance(calibration, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) and _is_whole(row) for row in rows):
        raise capture.damaged(f"{CALIBRATION} holds no calibration")
    return dict(calibration)


def _is_whole(row: Mapping[str, Any]) -> bool:
    """Whether a row has all columns of its kind."""
    more = {"bytes", "copy_ns"} if "bytes" in row else {"outer", "nested", "others", "span_ns"}
    of_kind = {"evaluated"} if row.get("kind") == "backward" else set()
    return {"flags", "kind", "name", "bare_ns", "traced_ns"} | more | of_kind <= set(row)
