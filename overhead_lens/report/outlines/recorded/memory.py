"""The memory of a recorded trace in words: bytes over time, who holds the peak, growth, steps, churn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from overhead_lens.report.cells import heads, row, share
from overhead_lens.report.outline import Drawing, Notes, Row, Section, Table
from overhead_lens.report.page.charts.axes import INKS, close_time_axis, linear_axis, round_number
from overhead_lens.report.page.model import Plot, Series
from overhead_lens.report.text.blocks import counted, cut, cut_front
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.memory.blocks import LOW_TOTAL, REALLOCATED, UNADDRESSED, UNALLOCATED
from overhead_lens.traces.memory.model import BEFORE, DeviceMemory, MemoryHolder
from overhead_lens.units import format_bytes, format_ns

_MOST_DEVICES = 8
_TOP, _MOST_HOLDERS = 5, 20
_MOST_STEPS = 50
_LEAST_SHARE = 0.01
_MOST_PLACE = 60

_REPAIRED = {
    REALLOCATED: "{n} allocations on {device} have no release though their address was given out again: they count for no time",
    UNALLOCATED: "{n} releases on {device} have no allocation: they count for no time",
    UNADDRESSED: "{n} memory events on {device} name no address: no release could be matched with them",
    LOW_TOTAL: "after {n} memory events on {device} the allocator's total was less than the blocks that were live; these count",
}


def memory_sections(memories: Sequence[DeviceMemory]) -> Iterator[Section]:
    """Each device at its peak, then its steps and what was allocated in them; nothing where no allocation was recorded."""
    return (section for memory in memories[:_MOST_DEVICES] if memory.peak_bytes for section in _device(memory))


def _device(memory: DeviceMemory) -> Iterator[Section]:
    yield Section.folded(
        f"Memory of {memory.device}: {_headline(memory)}",
        Drawing(lambda _: [over_time(memory)]),
        _holders(memory),
        Notes([*_growth(memory), *_churn(memory)]),
    )
    within = "one step" if memory.steps else "the recording"
    yield Section.folded(
        f"Memory of {memory.device}: steps and what they allocate",
        _steps(memory),
        _places(memory.churn, f"allocated and released within {within}"),
        _places(memory.kept, "allocated in a step other than the first and the last, and never released"),
    )


def over_time(memory: DeviceMemory) -> Plot:
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


def _headline(memory: DeviceMemory) -> str:
    """Peak, when, and what was reserved."""
    text = f"peak {format_bytes(memory.peak_bytes)} live at {format_ns(memory.peak_ns)}"
    if memory.reserved_peak_bytes is not None:
        text += f", {format_bytes(memory.reserved_peak_bytes)} reserved at most"
    sizes = sorted(memory.kinds.items(), key=lambda item: -item[1])
    known = [
        f"{kind.replace('_', ' ')} {size / memory.peak_bytes:.0%}"
        for kind, size in sizes
        if size >= _LEAST_SHARE * memory.peak_bytes and kind != "unknown"
    ]
    return text + (": " + ", ".join(known) if known else "")


def _holders(memory: DeviceMemory) -> Table:
    """Who holds the peak, the largest first; what is left out in one row; all of them sum to it."""
    shown = memory.holders[:_MOST_HOLDERS]
    rest = memory.others_bytes + sum(holder.bytes for holder in memory.holders[_MOST_HOLDERS:])
    rows = [
        row(format_bytes(each.bytes), share(each.bytes / memory.peak_bytes), each.blocks, *_place(each))
        for each in shown
    ]
    for name, size in ((BEFORE, memory.before_bytes), ("(others)", rest)):
        if size:
            rows.append(row(format_bytes(size), share(size / memory.peak_bytes), "", name, "", "", "", is_sum=True))
    columns = heads(">bytes | >share | >blocks ~3 | held at the peak by | kind ~2 | module ~1 | line")
    return Table(columns, rows, f"{memory.device} at its peak", brief=_TOP)


def _place(holder: MemoryHolder) -> tuple[str, str, str, str]:
    """Operator, kind, module and line in words."""
    operator = cut(kernel_name(holder.operator), _MOST_PLACE) or "(no operator)"
    return operator, holder.kind.replace("_", " "), cut(holder.module), cut_front(holder.line, _MOST_PLACE)


def _growth(memory: DeviceMemory) -> list[str]:
    """How much more is live from the start of one step to the start of the next."""
    starts = [step.start_bytes for step in memory.steps]
    grown = [after - before for before, after in pairwise(starts)]
    if not grown:
        return []
    if not any(grown):
        return [f"no growth over {len(starts)} steps: each begins with {format_bytes(starts[0])} live"]
    text = f"from step to step live memory changes by {_signed(median(grown))} in the median"
    text += f" ({_signed(min(grown))} .. {_signed(max(grown))})" if len(grown) > 1 else ""
    if memory.grows:
        text += ", and it grows at every one"
    if memory.grows and memory.kept:
        operator, kind, module, line = _place(memory.kept[0])
        where = ", ".join(part for part in (operator, module, line) if part)
        text += f"; the largest part of what is never released is from {where} ({kind})"
    return [text]


def _signed(size: float) -> str:
    return f"{'-' if size < 0 else '+'}{format_bytes(abs(size))}"


def _churn(memory: DeviceMemory) -> list[str]:
    if not memory.churn_blocks:
        return []
    within = "within one step" if memory.steps else "within the recording"
    text = f"{memory.churn_blocks:,} blocks, {format_bytes(memory.churn_bytes)} in all, were allocated and released {within}"
    first = memory.churn[0]
    by = _place(first)[0] if first.operator or not first.line else _place(first)[3]
    return [f"{text}; most by {by} ({counted(first.blocks, 'block')}, {format_bytes(first.bytes)})"]


def _steps(memory: DeviceMemory) -> Table:
    rows = []
    for step in memory.steps[:_MOST_STEPS]:
        sizes = (step.start_bytes, step.end_bytes, step.peak_bytes, step.allocated_bytes, step.churn_bytes)
        rows.append(row(step.step, *map(format_bytes, sizes), step.churn_blocks, format_bytes(step.kept_bytes)))
    columns = heads(">step | >live at start | >at end | >peak | >allocated")
    columns += heads(">of it released in the step | >blocks ~1 | >never released")
    more = f"; the first {_MOST_STEPS} of {len(memory.steps):,}" if len(memory.steps) > _MOST_STEPS else ""
    caption = f"{memory.device} step by step{more}"
    return Table(columns, rows, caption)


def _places(holders: Sequence[MemoryHolder], caption: str) -> Table:
    rows: list[Row] = [row(format_bytes(holder.bytes), holder.blocks, *_place(holder)) for holder in holders]
    return Table(heads(">bytes | >blocks | operator | kind ~2 | module ~1 | line"), rows, caption)


def memory_notes(memories: Sequence[DeviceMemory]) -> list[str]:
    """What was repaired, as sentences."""
    return [
        _REPAIRED[reason].format(n=f"{number:,}", device=memory.device)
        for memory in memories
        for reason, number in memory.repairs.items()
    ]
