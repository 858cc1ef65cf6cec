"""Counters and rates of device work on the page of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from overhead_lens.report.page.charts.axes import FRAME, INKS, label, rounded, time_unit
from overhead_lens.report.page.model import Block, Chart, Section, Table, Text
from overhead_lens.report.text.recorded import counters as told
from overhead_lens.traces.counters.model import Counters, CounterTrack
from overhead_lens.units import format_bytes, format_ns

_MOST_TRACKS = 12
_MOST_ROWS = 25
_MOST_METRICS = 40


def counter_sections(counters: Counters) -> Iterator[Section]:
    """One section for all; none if the trace has nothing of the kind."""
    if counters.is_empty:
        return
    blocks = [*_tracks(counters), *_occupancy(counters), *_copies(counters), *_products(counters)]
    blocks += [*_ranges(counters), *_graphs(counters)]
    peaks: list[Block] = [Text([f"{counters.peaks}."])] if counters.peaks else []
    yield Section("Counters and rates", [*blocks, *peaks])


def _tracks(counters: Counters) -> Iterator[Block]:
    for track in counters.tracks[:_MOST_TRACKS]:
        yield Text([f"{told.tracked(track)}."])
        yield _over_time(track)
        if track.kernels:
            heads, rows = told.track_rows(track)
            yield Table(heads, rows, frozenset({1, 2, 3}), f"{told.named(track.name)} while kernels ran")
    if (more := len(counters.tracks) - _MOST_TRACKS) > 0:
        yield Text([f"{more} further counters are left out; --json and --query have them."])


def _over_time(track: CounterTrack) -> Chart:
    series = track.over_time
    unit_ns, unit = time_unit(max(1, series.start_ns[-1]))
    line: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "x": [rounded(ns / unit_ns) for ns in series.start_ns],
        "y": [None if value is None else rounded(value) for value in series.values],
        "line": {"color": INKS[0], "width": 1.5, "shape": "hv"},
        "connectgaps": False,
    }
    layout = {
        **FRAME,
        "xaxis": {"title": {"text": unit}},
        "yaxis": {"title": {"text": track.unit or "value"}},
        "showlegend": False,
    }
    described = f"{label(track.name)} over time, the mean of each interval; breaks are gaps."
    return Chart({"data": [line], "layout": layout}, described, 200)


def _occupancy(counters: Counters) -> Iterator[Block]:
    if counters.devices:
        yield Text([f"{told.occupied(device)}." for device in counters.devices])
        rows = [told.occupancy_row(one) for one in counters.occupancy[:_MOST_ROWS]]
        heads = (
            "kernel",
            "time",
            "events",
            "occupancy",
            "blocks per SM",
            "warps per SM",
            "time below one block per SM",
        )
        yield Table(
            heads, rows, frozenset(range(1, len(heads))), "occupancy as Kineto estimates it, weighted by duration"
        )


def _copies(counters: Counters) -> Iterator[Block]:
    if counters.copies:
        rows = [
            (
                told.named(one.name),
                one.device,
                f"{one.count:,}",
                format_bytes(one.bytes),
                format_ns(one.total_ns),
                told.bandwidth(one.gb_s),
                told.bandwidth(one.best_gb_s),
                f"{one.unsized:,}" if one.unsized else "",
            )
            for one in counters.copies[:_MOST_ROWS]
        ]
        heads = ("copy", "device", "events", "bytes", "time", "rate", "fastest", "without a size")
        yield Table(heads, rows, frozenset(range(2, len(heads))), "copies")


def _products(counters: Counters) -> Iterator[Block]:
    if counters.products:
        rows = [
            (
                one.operator,
                one.shape,
                one.dtype,
                f"{one.count:,}",
                told.flop_count(one.flop),
                format_ns(one.device_ns),
                told.flop_rate(one.gflop_s),
            )
            for one in counters.products[:_MOST_ROWS]
        ]
        heads = ("operator", "shape", "type", "calls", "flop", "device time", "rate")
        yield Table(heads, rows, frozenset(range(3, len(heads))), "matrix products by shape, (batch x) m x k x n")


def _ranges(counters: Counters) -> Iterator[Block]:
    if counters.ranges:
        yield Text([f"{line}." for line in told.ranged(counters)])
        rows = [told.range_row(one) for one in counters.ranges[:_MOST_ROWS]]
        heads = ("kernel", "operator", "ranges", "flop of CUDA cores", "rate")
        yield Table(heads, rows, frozenset({2, 3, 4}), "kernels that CUPTI counted")
        first = counters.ranges[0]
        metrics = [(name, told.figure(value)) for name, value in list(first.metrics.items())[:_MOST_METRICS]]
        yield Table(
            ("metric", "value"), metrics, frozenset({1}), f"metrics of {told.named(first.name)}; --json has all"
        )


def _graphs(counters: Counters) -> Iterator[Block]:
    if counters.graphs:
        yield Text([f"{told.graph(one)}." for one in counters.graphs[:_MOST_ROWS]])
        rows = [
            (str(one.graph), str(node.node), told.named(node.name), f"{node.count:,}", format_ns(node.total_ns))
            for one in counters.graphs
            for node in one.costliest
        ]
        yield Table(
            ("graph", "node", "work", "events", "time"), rows[: 2 * _MOST_ROWS], frozenset({3, 4}), "nodes of graphs"
        )
