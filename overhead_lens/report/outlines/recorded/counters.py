"""Counters and rates of device work in a recorded trace in words."""

from __future__ import annotations

from collections.abc import Iterator

from overhead_lens.report.cells import heads, row, time
from overhead_lens.report.outline import Block, Drawing, Notes, Section, Table
from overhead_lens.report.page.charts.axes import INKS, close_time_axis, linear_axis
from overhead_lens.report.page.model import Plot, Series
from overhead_lens.report.text.blocks import counted, cut, left_out, share_text
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.counters.model import Counters, CounterTrack, DeviceOccupancy, GraphWork
from overhead_lens.units import format_bytes, format_ns, format_rate

_MOST_TRACKS, _MOST_ROWS, _MOST_METRICS = 12, 25, 40
_NAME = 60
_COSTLY_SHARE = 0.02
_KILO = 1000
_LONGEST = 1e15
_FLOP = "FLOP"


def counter_section(counters: Counters) -> Section:
    """Nothing where the trace has nothing of the kind."""
    blocks = [*_tracks(counters), *_occupancy(counters), _copies(counters), _products(counters)]
    blocks += [*_ranges(counters), *_graphs(counters)]
    peaks = [f"{counters.peaks}."] if counters.peaks else []
    return Section.folded("Counters and rates of device work", *blocks, Notes(peaks))


def _tracks(counters: Counters) -> Iterator[Block]:
    for track in counters.tracks[:_MOST_TRACKS]:
        yield from _track(track)
    yield Notes(left_out(len(counters.tracks) - _MOST_TRACKS, "further counter"))


def _track(track: CounterTrack) -> Iterator[Block]:
    yield Notes([f"{_tracked(track)}."])
    yield Drawing(lambda _: [over_time(track)])
    rows = []
    for one in track.kernels:
        covered = f"{one.covered_ns / one.total_ns:.0%}"
        rows.append(row(_named(one.name), time(one.total_ns), covered, quantity(one.mean, track.unit)))
    yield Table(heads("kernel | >time | >with a value | >mean"), rows, f"{_named(track.name)} while kernels ran")


def over_time(track: CounterTrack) -> Plot:
    """The mean of a counter, from its first value to where the last one ends."""
    starts, values = track.over_time.start_ns, track.over_time.values
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    room = 0.06 * (high - low)
    y = linear_axis(low - room, high + room, "{:,.12g}".format, track.unit or "value")
    described = f"{cut(track.name)} over time, the mean of each interval; breaks are gaps."
    times = close_time_axis(track.start_ns, track.start_ns + track.covered_ns + track.gap_ns)
    return Plot([Series(cut(track.name), INKS[0], starts, values, "steps")], times, y, described, 160)


def _tracked(track: CounterTrack) -> str:
    mean, least, most = (quantity(value, track.unit) for value in (track.mean, track.min, track.max))
    text = f"{_named(track.name)}: mean {mean}, {least} .. {most}, {counted(track.samples, 'value')}"
    if track.period_ns is not None:
        text += f" every {format_ns(track.period_ns)}"
    if track.gaps:
        text += f"; nothing is known for {format_ns(track.gap_ns)} in {counted(track.gaps, 'gap')}"
    return text


def _occupancy(counters: Counters) -> Iterator[Block]:
    yield Notes([f"{_occupied(device, counters)}." for device in counters.devices])
    rows = []
    for one in counters.occupancy[:_MOST_ROWS]:
        times = (_named(one.name), time(one.total_ns), one.count, percent(one.occupancy_percent))
        unfilled = share_text(one.unfilled_ns, one.total_ns)
        rows.append(row(*times, figure(one.blocks_per_sm), figure(one.warps_per_sm), unfilled))
    columns = heads("kernel | >time | >events ~2 | >occupancy | >blocks per SM ~1")
    columns += heads(">warps per SM ~1 | >time below one block per SM ~3")
    yield Table(columns, rows, "occupancy as Kineto estimates it, weighted by duration")


def _occupied(device: DeviceOccupancy, counters: Counters) -> str:
    """Occupancy of a device, and the least of its costly kernels."""
    text = f"kernels of device {device.device}: occupancy {percent(device.occupancy_percent)} by Kineto's estimate"
    if device.known_ns < device.kernel_ns:
        text += f", known for {device.known_ns / device.kernel_ns:.0%} of their time"
    if device.unfilled_ns:
        each = f"each of {device.sms} SMs" if device.sms else "each SM"
        text += f"; {device.unfilled_ns / device.kernel_ns:.0%} of the time with less than one block for {each}"
    costly = [
        (one.occupancy_percent, one.name)
        for one in counters.occupancy
        if one.device == device.device
        and one.occupancy_percent is not None
        and one.total_ns >= _COSTLY_SHARE * device.kernel_ns
    ]
    if costly:
        least, name = min(costly, key=lambda item: item[0])
        text += f"; least of the costly: {_named(name)} {percent(least)}"
    return text


def _copies(counters: Counters) -> Table:
    rows = []
    for one in counters.copies[:_MOST_ROWS]:
        figures = (one.count, format_bytes(one.bytes), time(one.total_ns), rate(one.gb_s), rate(one.best_gb_s))
        rows.append(row(_named(one.name), one.device, *figures, one.unsized or ""))
    columns = heads("copy | device ~3 | >events | >bytes | >time | >rate | >fastest ~1 | >without a size ~2")
    return Table(columns, rows, "copies")


def _products(counters: Counters) -> Table:
    rows = []
    for one in counters.products[:_MOST_ROWS]:
        figures = (one.count, flop_count(one.flop), time(one.device_ns), rate(one.gflop_s, _FLOP))
        rows.append(row(one.operator, one.shape, one.dtype, *figures))
    columns = heads("operator | shape | type ~2 | >calls | >flop ~1 | >device time | >rate")
    return Table(columns, rows, "matrix products by shape, (batch x) m x k x n")


def _ranges(counters: Counters) -> Iterator[Block]:
    if not counters.ranges:
        return
    yield Notes([f"{_ranged(counters)}."])
    rows = []
    for one in counters.ranges[:_MOST_ROWS]:
        flop = flop_count(sum(one.flop.values())) if one.flop else "-"
        rows.append(row(_named(one.name), ", ".join(one.operators), one.ranges, flop, rate(one.gflop_s, _FLOP)))
    columns = heads("kernel | operator ~1 | >ranges | >flop of CUDA cores | >rate")
    yield Table(columns, rows, "kernels that CUPTI counted")
    first = counters.ranges[0]
    metrics = [row(name, figure(value)) for name, value in list(first.metrics.items())[:_MOST_METRICS]]
    caption = f"metrics of {_named(first.name)}; --json has all"
    yield Table(heads("metric | >value"), metrics, caption)


def _ranged(counters: Counters) -> str:
    ranges = sum(one.ranges for one in counters.ranges)
    done = {name: sum(one.flop.get(name, 0.0) for one in counters.ranges) for name in ("fp64", "fp32", "fp16")}
    sums = [f"{name} {flop_count(value)}" for name, value in done.items() if value]
    metrics = len({metric for one in counters.ranges for metric in one.metrics})
    text = f"CUPTI counted {counted(metrics, 'metric')} of {counted(ranges, 'kernel')}"
    text += f": {', '.join(sums)} on CUDA cores" if sums else ""
    first = counters.ranges[0]
    if sum(first.flop.values()):
        of = f" ({first.operators[0]})" if first.operators else ""
        text += f"; most by {_named(first.name)}{of}, {flop_count(sum(first.flop.values()))}"
    return text


def _graphs(counters: Counters) -> Iterator[Block]:
    yield Notes([f"{_graph(one)}." for one in counters.graphs[:_MOST_ROWS]])
    rows = [
        row(str(one.graph), str(node.node), _named(node.name), node.count, time(node.total_ns))
        for one in counters.graphs
        for node in one.costliest
    ]
    yield Table(heads("graph | node | work | >events | >time"), rows[: 2 * _MOST_ROWS], "nodes of graphs")


def _graph(one: GraphWork) -> str:
    launches = counted(one.launches, "launch") if one.launches else "its launches are not in the trace"
    first = one.costliest[0]
    text = (
        f"graph {one.graph} on device {one.device}: {launches}, {counted(one.nodes, 'node')}, {format_ns(one.total_ns)}"
    )
    return f"{text}; costliest: node {first.node}, {_named(first.name)}, {format_ns(first.total_ns)}"


def _named(name: str) -> str:
    """A kernel or a metric on part of a line."""
    return cut(kernel_name(name), _NAME)


def percent(value: float | None) -> str:
    """Percent, or a dash."""
    return "-" if value is None else f"{value:.0f} %"


def figure(value: float | None) -> str:
    """A number with four digits that count, or a dash; whole ones and those from a thousand on without a fraction."""
    if value is None:
        return "-"
    is_whole = abs(value) >= _KILO or value == int(value)
    return f"{value:,.0f}" if is_whole and abs(value) < _LONGEST else f"{value:.4g}"


def quantity(value: float, unit: str) -> str:
    """A value of a counter with its unit."""
    if unit in ("B", "B/s") and abs(value) >= _KILO:
        return f"{format_bytes(value)}{unit[1:]}"
    return f"{figure(value)} {unit}".strip()


def rate(giga_per_s: float | None, unit: str = "B") -> str:
    """A rate in 10^9 of its unit per second, bytes or floating-point operations; or a dash."""
    return "-" if giga_per_s is None else format_rate(giga_per_s * 1e9, unit)


def flop_count(flop: float) -> str:
    """Floating-point operations with their unit."""
    return format_rate(flop, _FLOP).removesuffix("/s")
