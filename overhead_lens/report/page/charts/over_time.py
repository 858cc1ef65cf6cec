"""Bytes of a device and values of a counter over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from overhead_lens.report.page.charts.axes import FRAME, INKS, label, rounded, time_unit
from overhead_lens.report.page.model import Chart
from overhead_lens.traces.counters.model import CounterTrack
from overhead_lens.traces.memory.model import DeviceMemory
from overhead_lens.units import format_bytes

_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def bytes_over_time(memory: DeviceMemory) -> Chart:
    """Live and reserved bytes."""
    series = memory.over_time
    most = max(memory.peak_bytes, memory.reserved_peak_bytes or 0)
    size, unit = next((pair for pair in _UNITS if most >= pair[0]), (1, "B"))
    lines = [_bytes("live", series.live_bytes, size, INKS[0])]
    lines += [_bytes("reserved", series.reserved_bytes, size, INKS[3])] if series.reserved_bytes else []
    peak = format_bytes(memory.peak_bytes)
    described = f"Live bytes of {label(memory.device)} over time, the maximum of each interval: up to {peak}."
    return _chart(series.start_ns, lines, {"title": {"text": unit}, "rangemode": "tozero"}, described, 240)


def _bytes(name: str, sizes: Sequence[int], size: int, ink: str) -> dict[str, Any]:
    told = {"customdata": [format_bytes(value) for value in sizes], "hovertemplate": f"{name} %{{customdata}}"}
    return {**_line([rounded(value / size) for value in sizes], ink), "name": name, **told}


def counter_over_time(track: CounterTrack) -> Chart:
    """The mean of a counter."""
    values = [None if value is None else rounded(value) for value in track.over_time.values]
    described = f"{label(track.name)} over time, the mean of each interval; breaks are gaps."
    line = {**_line(values, INKS[0]), "connectgaps": False}
    return _chart(track.over_time.start_ns, [line], {"title": {"text": track.unit or "value"}}, described, 200)


def _line(values: Sequence[float | None], ink: str) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines", "y": values, "line": {"color": ink, "width": 1.5, "shape": "hv"}}


def _chart(
    start_ns: Sequence[int], lines: Sequence[dict[str, Any]], axis: dict[str, Any], described: str, height_px: int
) -> Chart:
    unit_ns, unit = time_unit(max(1, start_ns[-1]))
    times = [rounded(ns / unit_ns) for ns in start_ns]
    layout = {**FRAME, "xaxis": {"title": {"text": unit}}, "yaxis": axis, "showlegend": len(lines) > 1}
    return Chart({"data": [{**line, "x": times} for line in lines], "layout": layout}, described, height_px)
