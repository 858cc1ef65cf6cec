"""Figures of device work from counters and arguments, in a few lines of the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, cut, section
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.counters.model import (
    CopyRate,
    Counters,
    CounterTrack,
    DeviceOccupancy,
    GraphWork,
    KernelOccupancy,
    ProductRate,
    RangedKernel,
)
from overhead_lens.units import format_bytes, format_ns, format_rate

_FEW = 2
_NAME = 60
_COSTLY_SHARE = 0.02
_KILO = 1000
_LONGEST = 1e15
_FLOP = "FLOP"


def counter_blocks(counters: Counters) -> Iterator[RenderableType]:
    """The printed blocks: the most important rows of each part."""
    told = [
        *(_occupancy(device, counters) for device in counters.devices[:_FEW]),
        *map(copied, counters.copies[:_FEW]),
        *map(product, counters.products[:_FEW]),
        *map(tracked, counters.tracks[:_FEW]),
        *(ranged(counters) if counters.ranges else []),
        *map(graph, counters.graphs[:_FEW]),
    ]
    if told:
        yield section("counters and rates of device work", Group(*(Text(line, overflow="fold") for line in told)))


def _occupancy(device: DeviceOccupancy, counters: Counters) -> str:
    text = occupied(device)
    costly = [
        one
        for one in counters.occupancy
        if one.device == device.device
        and one.occupancy_percent is not None
        and one.total_ns >= _COSTLY_SHARE * device.kernel_ns
    ]
    if costly:
        least = min(costly, key=lambda one: one.occupancy_percent or 0.0)
        text += f"; least of the costly: {named(least.name)} {percent(least.occupancy_percent)}"
    return text


def counter_notes(counters: Counters) -> list[str]:
    """Missing information about counters, as sentences."""
    return list(counters.notes)


def occupied(device: DeviceOccupancy) -> str:
    """Occupancy of a device in words."""
    text = f"kernels of device {device.device}: occupancy {percent(device.occupancy_percent)} by Kineto's estimate"
    if device.known_ns < device.kernel_ns:
        text += f", known for {device.known_ns / device.kernel_ns:.0%} of their time"
    if device.unfilled_ns:
        each = f"each of {device.sms} SMs" if device.sms else "each SM"
        text += f"; {device.unfilled_ns / device.kernel_ns:.0%} of it with less than one block for {each}"
    return text


def copied(copy: CopyRate) -> str:
    """A kind of copies in words."""
    text = f"{named(copy.name)}: {copy.count:,}x, {format_bytes(copy.bytes)} in {format_ns(copy.total_ns)}"
    if copy.gb_s is not None and copy.best_gb_s is not None:
        text += f", {bandwidth(copy.gb_s)}, the fastest {bandwidth(copy.best_gb_s)}"
    return text + (f"; {copy.unsized:,} more do not say their size" if copy.unsized else "")


def product(one: ProductRate) -> str:
    """Matrix products in words."""
    what = f"{plain(one.operator)} {one.shape} {plain(one.dtype)}"
    return f"{what}: {one.count:,}x, {format_ns(one.device_ns)}, {flop_rate(one.gflop_s)}"


def tracked(track: CounterTrack) -> str:
    """A counter in words."""
    mean, least, most = (quantity(value, track.unit) for value in (track.mean, track.min, track.max))
    text = f"{named(track.name)}: mean {mean}, {least} .. {most}, {track.samples:,} values"
    if track.period_ns is not None:
        text += f" every {format_ns(track.period_ns)}"
    if track.gaps:
        text += f"; nothing is known for {format_ns(track.gap_ns)} in {track.gaps:,} gaps"
    return text


def ranged(counters: Counters) -> Iterator[str]:
    """Metrics of ranges in words."""
    count = sum(one.ranges for one in counters.ranges)
    done = {name: sum(one.flop.get(name, 0.0) for one in counters.ranges) for name in ("fp64", "fp32", "fp16")}
    sums = [f"{name} {flop_count(value)}" for name, value in done.items() if value]
    metrics = len({metric for one in counters.ranges for metric in one.metrics})
    text = f"CUPTI counted {metrics} metrics of {count:,} kernels"
    text += f": {', '.join(sums)} on CUDA cores" if sums else ""
    first = counters.ranges[0]
    if first.flop and sum(first.flop.values()):
        of = f" ({plain(first.operators[0])})" if first.operators else ""
        text += f"; most by {named(first.name)}{of}, {flop_count(sum(first.flop.values()))}"
    yield text


def graph(one: GraphWork) -> str:
    """A graph in words."""
    launches = f"{one.launches:,} launches" if one.launches else "its launches are not in the trace"
    first = one.costliest[0]
    text = f"graph {one.graph} on device {one.device}: {launches}, {one.nodes:,} nodes, {format_ns(one.total_ns)}"
    return f"{text}; costliest: node {first.node}, {named(first.name)}, {format_ns(first.total_ns)}"


def track_rows(track: CounterTrack) -> Cells:
    """A counter's values while kernels ran."""
    rows = [
        (
            named(one.name),
            format_ns(one.total_ns),
            f"{one.covered_ns / one.total_ns:.0%}",
            quantity(one.mean, track.unit),
        )
        for one in track.kernels
    ]
    return ("kernel", "time", "with a value", "mean"), rows


def occupancy_row(one: KernelOccupancy) -> tuple[str, ...]:
    """Kernel, time, calls, occupancy, blocks and warps per SM, share of time with SMs that have nothing to do."""
    figures = (percent(one.occupancy_percent), figure(one.blocks_per_sm), figure(one.warps_per_sm))
    unfilled = f"{one.unfilled_ns / one.total_ns:.0%}" if one.total_ns else "-"
    return named(one.name), format_ns(one.total_ns), f"{one.count:,}", *figures, unfilled


def range_row(one: RangedKernel) -> tuple[str, ...]:
    """Kernel, operator, number, flop, rate."""
    total = flop_count(sum(one.flop.values())) if one.flop else "-"
    return named(one.name), ", ".join(map(plain, one.operators)), f"{one.ranges:,}", total, flop_rate(one.gflop_s)


def named(name: str) -> str:
    """A kernel or a metric on part of a line."""
    return cut(plain(kernel_name(name)), _NAME)


def percent(value: float | None) -> str:
    """Percent, or a dash."""
    return "-" if value is None else f"{value:.0f} %"


def figure(value: float | None) -> str:
    """A number with four significant digits, or a dash; integers and numbers from 1,000 on have no fraction."""
    if value is None:
        return "-"
    is_whole = abs(value) >= _KILO or value == int(value)
    return f"{value:,.0f}" if is_whole and abs(value) < _LONGEST else f"{value:.4g}"


def quantity(value: float, unit: str) -> str:
    """A value of a counter with its unit."""
    if unit in ("B", "B/s") and abs(value) >= _KILO:
        return f"{format_bytes(value)}{unit[1:]}"
    return f"{figure(value)} {unit}".strip()


def bandwidth(gb_s: float | None) -> str:
    """A bandwidth with its unit, or a dash."""
    return "-" if gb_s is None else format_rate(gb_s * 1e9)


def flop_rate(gflop_s: float | None) -> str:
    """A rate of floating-point operations with its unit, or a dash."""
    return "-" if gflop_s is None else format_rate(gflop_s * 1e9, _FLOP)


def flop_count(flop: float) -> str:
    """Floating-point operations with their unit."""
    return format_rate(flop, _FLOP).removesuffix("/s")
