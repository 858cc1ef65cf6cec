"""The memory of a recorded trace on its page: bytes over time, who holds the peak, steps, churn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from overhead_lens.report.page.charts.axes import FRAME, INKS, label, rounded, time_unit
from overhead_lens.report.page.model import Block, Chart, Section, Table, Text
from overhead_lens.report.text.recorded import memory as told
from overhead_lens.traces.memory.model import DeviceMemory, MemoryHolder
from overhead_lens.units import format_bytes

_MOST_DEVICES = 8
_MOST_HOLDERS = 20
_MOST_STEPS = 50
_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def memory_sections(memories: Sequence[DeviceMemory]) -> Iterator[Section]:
    """One section for all devices; none if no allocation was recorded."""
    blocks = [block for memory in memories[:_MOST_DEVICES] if memory.peak_bytes for block in _device(memory)]
    if blocks:
        yield Section("Memory", blocks)


def _device(memory: DeviceMemory) -> Iterator[Block]:
    yield Text([f"{memory.device}: {told.headline(memory)}.", *told.growth(memory), *told.churn(memory)])
    yield _over_time(memory)
    heads, rows = told.peak_rows(memory, _MOST_HOLDERS)
    yield Table(heads, rows, frozenset(range(3)), f"{memory.device} at its peak")
    if memory.steps:
        yield _steps(memory)
    if memory.churn:
        yield _places(memory.churn, f"{memory.device}: allocated and released within {_within(memory)}")
    if memory.kept:
        yield _places(
            memory.kept, f"{memory.device}: allocated in a step, but the first and the last, and never released"
        )


def _within(memory: DeviceMemory) -> str:
    return "one step" if memory.steps else "the recording"


def _over_time(memory: DeviceMemory) -> Chart:
    series = memory.over_time
    unit_ns, unit = time_unit(max(1, series.start_ns[-1]))
    most = max(memory.peak_bytes, memory.reserved_peak_bytes or 0)
    size, name = next((pair for pair in _UNITS if most >= pair[0]), (1, "B"))
    times = [rounded(ns / unit_ns) for ns in series.start_ns]
    data = [_line("live", times, series.live_bytes, size, INKS[0])]
    data += [_line("reserved", times, series.reserved_bytes, size, INKS[3])] if series.reserved_bytes else []
    layout = {
        **FRAME,
        "xaxis": {"title": {"text": unit}},
        "yaxis": {"title": {"text": name}, "rangemode": "tozero"},
        "showlegend": len(data) > 1,
    }
    most_text = format_bytes(memory.peak_bytes)
    described = f"Live bytes of {label(memory.device)} over time, the maximum of each interval: up to {most_text}."
    return Chart({"data": data, "layout": layout}, described, 240)


def _line(name: str, times: Sequence[float], sizes: Sequence[int], size: int, ink: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": times,
        "y": [rounded(value / size) for value in sizes],
        "line": {"color": ink, "width": 1.5, "shape": "hv"},
        "customdata": [format_bytes(value) for value in sizes],
        "hovertemplate": f"{name} %{{customdata}}",
    }


def _steps(memory: DeviceMemory) -> Table:
    rows = [
        (
            f"{step.step:,}",
            *map(
                format_bytes,
                (step.start_bytes, step.end_bytes, step.peak_bytes, step.allocated_bytes, step.churn_bytes),
            ),
            f"{step.churn_blocks:,}",
            format_bytes(step.kept_bytes),
        )
        for step in memory.steps[:_MOST_STEPS]
    ]
    heads = (
        "step",
        "live at start",
        "at end",
        "peak",
        "allocated",
        "of it released in the step",
        "blocks",
        "never released",
    )
    left_out = f"; the first {_MOST_STEPS} of {len(memory.steps):,}" if len(memory.steps) > _MOST_STEPS else ""
    return Table(heads, rows, frozenset(range(len(heads))), f"{memory.device} step by step{left_out}")


def _places(holders: Sequence[MemoryHolder], caption: str) -> Table:
    rows = [(format_bytes(holder.bytes), f"{holder.blocks:,}", *told.place(holder)) for holder in holders]
    return Table(("bytes", "blocks", "operator", "kind", "module", "line"), rows, frozenset({0, 1}), caption)
