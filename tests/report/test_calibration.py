"""The report of a calibration, line by line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from overhead_lens.correction.event_cost import EventCost
from overhead_lens.instruments.peaks.record import DevicePeaks
from overhead_lens.recorder import calibrate
from overhead_lens.recorder.calibrate import Calibrated
from overhead_lens.report.forms import to_text

COSTS = {
    "operator_outer": EventCost(700.0, 200.0, cold_after_kernels_ns=((0.0, 0.0), (11_000.0, 480.0), (91_000.0, 550.0))),
    "annotation": EventCost(900.0, 300.0),
}
PEAKS = {"copy": [{"level": "L1", "bytes_per_s": 2e11}], "flops_per_s": 1e12, "device_reason": "no device"}


def test_costs_peaks_and_where_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "event_costs", lambda _, flags: COSTS if flags == "plain" else {})
    measured = {"rows": [{"flags": "plain"}], "reasons": {"backward_node": "no\x1bgraph"}, "peaks": PEAKS}
    lines = to_text(Calibrated(measured, Path("kept"), None)).splitlines()
    assert lines[2].split() == [
        *("operator_outer", "plain", "700", "ns", "200", "ns", "500", "ns"),
        *("480", "ns", "(11.00", "µs)", "..", "550", "ns", "(91.00", "µs)"),
    ]
    assert lines[3].split() == ["annotation", "plain", "900", "ns", "300", "ns", "600", "ns"]
    assert lines[4:] == [
        *("", "Peaks of the machine", "L1      200 GB/s", "float32 matrix product 1,000 GFLOP/s", "device: no device"),
        *("", "[1] not measured: backward_node: no\\x1bgraph", "kept in kept"),
    ]
    assert to_text(Calibrated(measured, Path("kept"), "it is full")).splitlines()[-1] == "[2] it is full"


def test_the_peaks_of_a_device_have_units() -> None:
    rates = DevicePeaks(2.1548e12, 5.034e13, 52_428_800, 2_212.3, 7_123.5)
    peaks = {**PEAKS, "device": msgspec.to_builtins(rates)}
    lines = to_text(Calibrated({"rows": [], "peaks": peaks}, Path("kept"), None)).splitlines()
    assert lines[-6:] == [
        *("device memory 2.15 TB/s", "device float32 matrix product 50.3 TFLOP/s", "device cache 52.4 MB"),
        *("device launch 2.21 µs", "device round trip 7.12 µs", "kept in kept"),
    ]
