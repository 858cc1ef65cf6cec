"""Peaks that are kept, and when they are measured again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead_lens.correction import store
from overhead_lens.instruments.calibration.record import Calibrate
from overhead_lens.instruments.instrument import Recording, Turn
from overhead_lens.instruments.peaks.record import DevicePeaks, Level, MeasurePeaks, Peaks, faster, stored_peaks


def peaks(flops: float, memory: float, device: DevicePeaks | None = None) -> Peaks:
    return Peaks([Level(1, 9.0), Level(2, memory)], flops, device=device)


@dataclass
class Asked:
    """A worker that has measured peaks, and counts how often it is asked."""

    measured: Peaks
    times: int = 0

    def ask(self, _: object) -> Peaks:
        self.times += 1
        return self.measured


@pytest.mark.parametrize(("rows", "calibrates"), [(None, False), ([], False), ([], True)])
@pytest.mark.parametrize(
    ("kept", "measured", "used"),
    [(None, (4.0, 5.0), (4.0, 5.0)), ((3.0, 5.0), (4.0, 4.0), (4.0, 4.0)), ((4.0, 5.0), (3.0, 6.0), (4.0, 5.0))],
)
def test_they_are_measured_until_the_machine_is_calibrated(
    monkeypatch: pytest.MonkeyPatch, rows: Any, calibrates: bool, kept: Any, measured: Any, used: Any
) -> None:
    saved: list[Any] = []
    monkeypatch.setattr(store, "save", lambda _, calibration: saved.append(calibration))
    calibrate, instrument = Calibrate(), MeasurePeaks()
    calibrate.measured = calibrates
    if rows is not None:
        calibrate.calibration = {"rows": rows, **({"peaks": msgspec.to_builtins(peaks(*kept))} if kept else {})}
    known = kept if rows is not None else None
    worker: Any = Asked(peaks(*measured))
    request: Any = None
    listener: Any = None
    recording = Recording(request, Path(), listener, [calibrate, instrument])
    instrument.measure(Turn(recording, 0, worker))
    asked = known is None or calibrates
    assert worker.times == asked
    expected = peaks(*(known if not asked else measured if known is None else used))
    assert instrument.note == expected
    # Without a calibration there is nothing to keep them with.
    kept_now = [msgspec.convert(each["peaks"], Peaks) for each in saved]
    assert kept_now == ([expected] if asked and rows is not None else [])


def test_the_faster_is_kept() -> None:
    assert faster(peaks(2.0, 3.0), peaks(1.0, 7.0)) == peaks(1.0, 7.0)
    assert faster(peaks(1.0, 7.0), peaks(2.0, 3.0)) == peaks(1.0, 7.0)


@pytest.mark.parametrize(
    ("device", "call", "are_kept"), [(None, "cpu", True), (None, "cuda", False), (DevicePeaks(1.0, 2.0), "cuda", True)]
)
def test_kept_peaks_without_the_device_of_a_call_are_measured_again(
    device: DevicePeaks | None, call: str, are_kept: bool
) -> None:
    known = peaks(1.0, 2.0, device)
    assert stored_peaks(msgspec.to_builtins(known), call) == (known if are_kept else None)


@pytest.mark.parametrize("damaged", [None, {}, {"copy": []}, "x"])
def test_damaged_peaks_are_measured_again(damaged: Any) -> None:
    assert stored_peaks(damaged, "cpu") is None
