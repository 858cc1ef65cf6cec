"""Bytes of a device and values of a counter over time."""

from __future__ import annotations

from overhead_lens.report.page.charts.axes import INKS, close_time_axis, linear_axis, round_number
from overhead_lens.report.page.model import Plot, Series
from overhead_lens.report.text.blocks import cut
from overhead_lens.traces.counters.model import CounterTrack
from overhead_lens.traces.memory.model import DeviceMemory
from overhead_lens.units import format_bytes


def bytes_over_time(memory: DeviceMemory) -> Plot:
    """Live and reserved bytes, from the first event to the last."""
    series = memory.over_time
    most = max(memory.peak_bytes, memory.reserved_peak_bytes or 0)
    lines = [Series("live", INKS[0], series.start_ns, series.live_bytes, "steps")]
    if series.reserved_bytes:
        lines.append(Series("reserved", INKS[3], series.start_ns, series.reserved_bytes, "steps"))
    y = linear_axis(0, 1.06 * most, lambda size: round_number(format_bytes(size)))
    peak = format_bytes(memory.peak_bytes)
    described = f"Live bytes of {cut(memory.device)} over time, the maximum of each interval: up to {peak}."
    times = close_time_axis(series.start_ns[0], series.start_ns[-1])
    return Plot(lines, times, y, described, 200)


def counter_over_time(track: CounterTrack) -> Plot:
    """The mean of a counter, from its first value to where the last one ends."""
    starts, values = track.over_time.start_ns, track.over_time.values
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    room = 0.06 * (high - low)
    y = linear_axis(low - room, high + room, "{:,.6g}".format, track.unit or "value")
    described = f"{cut(track.name)} over time, the mean of each interval; breaks are gaps."
    times = close_time_axis(track.start_ns, track.start_ns + track.covered_ns + track.gap_ns)
    return Plot([Series(cut(track.name), INKS[0], starts, values, "steps")], times, y, described, 160)
