"""The memory of a recorded trace in the terminal: peak, who holds it, growth, churn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from rich.console import Group, RenderableType
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, cut, cut_front, section, table_of, without_empty
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.memory.blocks import LOW_TOTAL, REALLOCATED, UNADDRESSED, UNALLOCATED
from overhead_lens.traces.memory.model import BEFORE, DeviceMemory, MemoryHolder
from overhead_lens.units import format_bytes, format_ns

_TOP = 5
_LEAST_SHARE = 0.01
_LEAST_BYTES = 4096
_MOST_PLACE = 60

_REPAIRED = {
    REALLOCATED: "{n} allocations on {device} have no release though their address was given out again: they count for no time",
    UNALLOCATED: "{n} releases on {device} have no allocation: they count for no time",
    UNADDRESSED: "{n} memory events on {device} name no address: no release could be matched with them",
    LOW_TOTAL: "after {n} memory events on {device} the allocator's total was less than the blocks that were live; these count",
}


def memory_blocks(memories: Sequence[DeviceMemory]) -> Iterator[RenderableType]:
    """The printed blocks; devices with almost no allocations are left out."""
    for memory in memories:
        if memory.peak_bytes >= _LEAST_BYTES:
            rows = _short(peak_rows(memory, _TOP))
            body = [table_of(rows, left=("held at the peak by", "kind", "module", "line"))]
            told = [Text(line, style="dim") for line in (*growth(memory), *churn(memory))]
            yield section(f"memory of {plain(memory.device)}: {headline(memory)}", Group(*body, *told))


def _short(cells: Cells) -> Cells:
    """The columns that say something, of a line its file's name alone."""
    heads, rows = without_empty(cells, ("", "unknown"))
    return heads, [
        [cell.rpartition("/")[2] if head == "line" else cell for head, cell in zip(heads, row, strict=True)]
        for row in rows
    ]


def headline(memory: DeviceMemory) -> str:
    """Peak, when, and what was reserved."""
    text = f"peak {format_bytes(memory.peak_bytes)} live at {format_ns(memory.peak_ns)}"
    if memory.reserved_peak_bytes is not None:
        text += f", {format_bytes(memory.reserved_peak_bytes)} reserved at most"
    known = [f"{kind.replace('_', ' ')} {_of(size, memory)}" for kind, size in _known(memory)]
    return text + (": " + ", ".join(known) if known else "")


def _known(memory: DeviceMemory) -> list[tuple[str, int]]:
    sizes = sorted(memory.kinds.items(), key=lambda item: -item[1])
    return [(kind, size) for kind, size in sizes if size >= _LEAST_SHARE * memory.peak_bytes and kind != "unknown"]


def _of(size: int, memory: DeviceMemory) -> str:
    return f"{size / memory.peak_bytes:.0%}"


def peak_rows(memory: DeviceMemory, most: int) -> Cells:
    """The holders of the peak, the largest first, with one row for the rest; the rows sum to the peak."""
    shown = memory.holders[:most]
    rest = memory.others_bytes + sum(holder.bytes for holder in memory.holders[most:])
    rows = [_holder(holder, memory.peak_bytes) for holder in shown]
    rows += [_remainder(BEFORE, memory.before_bytes, memory)] if memory.before_bytes else []
    rows += [_remainder("(others)", rest, memory)] if rest else []
    return ("bytes", "share", "blocks", "held at the peak by", "kind", "module", "line"), rows


def _remainder(name: str, size: int, memory: DeviceMemory) -> Sequence[str]:
    return format_bytes(size), f"{size / memory.peak_bytes:.1%}", "", name, "", "", ""


def _holder(holder: MemoryHolder, whole_bytes: int) -> Sequence[str]:
    share = f"{holder.bytes / whole_bytes:.1%}" if whole_bytes else "-"
    return (format_bytes(holder.bytes), share, f"{holder.blocks:,}", *place(holder))


def place(holder: MemoryHolder) -> tuple[str, str, str, str]:
    """Operator, kind, module and line in words."""
    operator = cut(plain(kernel_name(holder.operator)), _MOST_PLACE) or "(no operator)"
    return (
        operator,
        holder.kind.replace("_", " "),
        cut(plain(holder.module)),
        cut_front(plain(holder.line), _MOST_PLACE),
    )


def growth(memory: DeviceMemory) -> list[str]:
    """The growth of live memory from the start of one step to the next."""
    starts = [step.start_bytes for step in memory.steps]
    grown = [after - before for before, after in pairwise(starts)]
    if not grown:
        return []
    if not any(grown):
        return [f"no growth over {len(starts)} steps: each begins with {format_bytes(starts[0])} live"]
    text = f"from step to step live memory changes by {_signed(median(grown))} in the median"
    text += f" ({_signed(min(grown))} .. {_signed(max(grown))})" if len(grown) > 1 else ""
    if min(grown) > 0:
        text += ", and it grows at every one"
    kept = memory.kept[:1]
    if kept and min(grown) > 0:
        operator, kind, module, line = place(kept[0])
        where = ", ".join(part for part in (operator, module, line) if part)
        text += f"; most of what is never released is from {where} ({kind})"
    return [text]


def _signed(size: float) -> str:
    return f"{'-' if size < 0 else '+'}{format_bytes(abs(size))}"


def churn(memory: DeviceMemory) -> list[str]:
    """The memory allocated and released within a step."""
    if not memory.churn_blocks:
        return []
    within = "within one step" if memory.steps else "within the recording"
    text = f"{memory.churn_blocks:,} blocks, {format_bytes(memory.churn_bytes)} in all, were allocated and released {within}"
    first = memory.churn[0]
    by = place(first)[0] if first.operator or not first.line else place(first)[3]
    return [f"{text}; most by {by} ({first.blocks:,} blocks, {format_bytes(first.bytes)})"]


def memory_notes(memories: Sequence[DeviceMemory]) -> list[str]:
    """The repairs, as sentences."""
    return [
        _REPAIRED[reason].format(n=f"{count:,}", device=plain(memory.device))
        for memory in memories
        for reason, count in memory.repairs.items()
    ]
