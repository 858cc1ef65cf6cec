"""The terminal report of a calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from overhead_lens.correction.event_cost import EventCost
from overhead_lens.recorder.calibrate import Calibrated
from overhead_lens.report.text.figures import figures
from overhead_lens.report.text.plain import plain
from overhead_lens.units import format_ns


def print_calibration(console: Console, calibrated: Calibrated) -> None:
    """Print what events cost, by class and flags, and the machine's peaks."""
    calibration = calibrated.calibration
    left = ("what one event costs torch.profiler", "flags")
    table = figures(*left, "in all", "inside its span", "around it", "more, the first after kernels", left=left)
    for flags, costs in calibrated.costs.items():
        for name, cost in costs.items():
            times_ns = (cost.total_ns, cost.inside_ns, cost.outside_ns)
            table.add_row(name, flags, *map(format_ns, times_ns), _after_kernels(cost))
    console.print(table)
    for name, reason in calibration.get("reasons", {}).items():
        console.print(Text(f"not measured: {name}: {plain(reason)}", style="yellow"))
    console.print()
    for line in _peaks(calibration.get("peaks") or {}):
        console.print(Text(line))
    if calibrated.not_kept is None:
        console.print(Text(f"kept in {plain(str(calibrated.path))}", style="dim"), soft_wrap=True)
    else:
        console.print(Text(f"warning: {plain(calibrated.not_kept)}", style="yellow"), soft_wrap=True)


def _after_kernels(cost: EventCost) -> str:
    """``480 ns (11 µs) .. 550 ns (91 µs)``: the cost after the shortest kernels that evict anything, and after the longest."""
    points = [point for point in cost.cold_after_kernels_ns if point[1] > 0]
    ends = dict.fromkeys(points[:1] + points[-1:])
    return " .. ".join(f"{format_ns(more)} ({format_ns(time)})" for time, more in ends)


def _peaks(peaks: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{level['level']:<5}{level['bytes_per_s'] / 1e9:>6,.0f} GB/s"
        for level in peaks.get("copy", [])
        if "level" in level
    ]
    if rate := peaks.get("flops_per_s"):
        lines.append(f"float32 matrix product {rate / 1e9:,.0f} GFLOP/s")
    device = peaks.get("device")
    if device is None:
        lines.append(f"device: {plain(str(peaks.get('device_reason', 'not measured')))}")
    else:
        lines += [f"device {name}: {value}" for name, value in device.items()]
    return lines
