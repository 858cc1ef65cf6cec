"""A calibration in words: what recording an event costs, and the machine's peaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from overhead_lens.correction.event_cost import EventCost
from overhead_lens.recorder.calibrate import Calibrated
from overhead_lens.report.cells import heads, row, time
from overhead_lens.report.outline import Notes, Outline, Section, Table
from overhead_lens.units import format_bytes, format_ns, format_rate

# A device's, by their names in the document.
_PEAKS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "bytes_per_s": ("memory", format_rate),
    "flops_per_s": ("float32 matrix product", partial(format_rate, unit="FLOP")),
    "cache_bytes": ("cache", format_bytes),
    "launch_ns": ("launch", format_ns),
    "round_trip_ns": ("round trip", format_ns),
}


def calibration_outline(calibrated: Calibrated) -> Outline:
    """The outline."""
    calibration = calibrated.calibration
    rows = [
        row(name, flags, *map(time, (cost.total_ns, cost.inside_ns, cost.outside_ns)), _after_kernels(cost))
        for flags, costs in calibrated.costs.items()
        for name, cost in costs.items()
    ]
    columns = heads("event | flags | >in all | >inside its span | >around it | >more, the first after kernels ~1")
    missing = [f"not measured: {name}: {reason}" for name, reason in calibration.get("reasons", {}).items()]
    store_failure = calibrated.store_failure
    return Outline(
        "What one event costs torch.profiler",
        "",
        Section.filled(
            Section("Costs of events", [Table(columns, rows)], reach="everywhere"),
            Section("Peaks of the machine", [Notes(_peaks(calibration["peaks"]))], reach="everywhere"),
        ),
        warnings=[*missing, *([] if store_failure is None else [store_failure])],
        ends=[f"kept in {calibrated.path}"] if store_failure is None else [],
    )


def _after_kernels(cost: EventCost) -> str:
    """``480 ns (11 µs) .. 550 ns (91 µs)``: from the first that displace anything to the longest."""
    points = [point for point in cost.cold_after_kernels_ns if point[1] > 0]
    ends = dict.fromkeys(points[:1] + points[-1:])
    return " .. ".join(f"{format_ns(more)} ({format_ns(kernels_ns)})" for kernels_ns, more in ends)


def _peaks(peaks: Mapping[str, Any]) -> list[str]:
    lines = [f"{level['level']:<5}{level['bytes_per_s'] / 1e9:>6,.0f} GB/s" for level in peaks["copy"]]
    lines.append(f"float32 matrix product {peaks['flops_per_s'] / 1e9:,.0f} GFLOP/s")
    device = peaks.get("device")
    if device is None:
        return [*lines, f"device: {peaks['device_reason']}"]
    return [*lines, *(f"device {_PEAKS[name][0]} {_PEAKS[name][1](value)}" for name, value in device.items() if value)]
