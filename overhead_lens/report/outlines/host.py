"""A host budget in words: its table, its bar, its costliest frames; the largest categories in one cell; a device beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from overhead_lens.report.cells import bounds, heads, length, measured_bounds, row, share, sum_row, text, time
from overhead_lens.report.looks import IDLE
from overhead_lens.report.outline import Bar, Bars, Block, Cell, Column, Piece, Row, Section, Table
from overhead_lens.report.text.blocks import interval_text, measured_text, three_digits
from overhead_lens.stats.estimate import NO_INTERVAL, Measured
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.host import HostCategory, Part
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.units import format_ns

if TYPE_CHECKING:
    from overhead_lens.budget.model import DeviceShare

_MOST_PIECES = 3
_LEAST_SHARE = 0.01
_TOP_KERNELS = 5


def host_blocks(
    host: Sequence[HostCategory], wall: Measured, time_head: str, *, units: int = 1, total: str = "sum = wall"
) -> list[Block]:
    """A bar; categories that have time, with their parts, and their sum; of several ``units`` of work with the time per unit."""
    columns = heads(f"where | ~3 | >share | >{time_head} | >per unit ~2 | 95 % interval ~1")
    shown = (category for category in host if category.ns or category.category == "unattributed")
    rows = [each for category in shown for each in _rows(category, wall.ns, units)]
    whole = (total, "", "100 %", time(wall.ns), _per_unit(wall.ns, units))
    within = "" if wall.interval == NO_INTERVAL else measured_bounds(wall)
    return [whole_bar(host, wall.ns), Table(columns, [*rows, sum_row(*whole, within)])]


def whole_bar(host: Sequence[HostCategory], whole_ns: float) -> Bars:
    """One bar, which the categories fill."""
    return Bars([host_bar("", "", host, whole_ns)], f"The categories, which sum to {format_ns(whole_ns)}.")


def _rows(category: HostCategory, wall_ns: float, units: int) -> Iterator[Row]:
    look = category.category
    mark = " (trace)" if category.evidence == "trace" else ""
    bar = length(category.ns, wall_ns, category.ci95_ns, look)
    cells = (share(category.share), time(category.ns), _per_unit(category.ns, units), bounds(category.ci95_ns))
    yield row(text(f"{look}{mark}", look), bar, *cells)
    for part in category.parts:
        if part.ns:
            figures = [length(part.ns, wall_ns, look=look), share(part.ns / wall_ns), time(part.ns)]
            yield row(part.name, *figures, _per_unit(part.ns, units), "", depth=1, tone="dim")


def _per_unit(ns: float, units: int) -> Cell:
    return time(ns / units) if units > 1 else Cell()


def host_bar(name: str, remark: str, host: Sequence[HostCategory], full_ns: float) -> Bar:
    """The categories side by side."""
    return Bar(name, remark, _pieces(host), full_ns)


def wall_bar(name: str, host: Sequence[HostCategory], wall: Measured, full_ns: float) -> Bar:
    """The categories of a measured time side by side."""
    return host_bar(name, measured_text(wall), host, full_ns)


def _pieces(host: Sequence[HostCategory]) -> tuple[Piece, ...]:
    return tuple(Piece(category.category, category.ns, _description(category)) for category in host if category.ns)


def _description(category: HostCategory) -> str:
    low, high = category.ci95_ns
    interval = f" [{interval_text((low, high))}]" if low < high else ""
    parts = sorted((part for part in category.parts if part.ns), key=lambda part: -part.ns)[:_MOST_PIECES]
    named = "".join(f"; {part.name} {format_ns(part.ns)}" for part in parts)
    return f"{category.category} {format_ns(category.ns)} ({category.share:.1%}){interval}{named}"


def divided(host: Sequence[HostCategory], digits: int = 0) -> Cell:
    """The categories in one cell: the largest in words, with the largest part of each."""
    largest = sorted(host, key=lambda category: -category.ns)[:_MOST_PIECES]
    shown = [category for category in largest if category.share >= _LEAST_SHARE]
    parts = [f"/{part.name}" if (part := largest_part(category)).ns else "" for category in shown]
    named = zip(shown, parts, strict=True)
    words = ", ".join(f"{category.category}{part} {category.share:.{digits}%}" for category, part in named)
    return Cell(words, look=shown[0].category if shown else "", pieces=_pieces(host))


def largest_part(category: HostCategory) -> Part:
    """The part with most of a category's time; one without a name and time if it has none."""
    return max(category.parts, key=lambda part: part.ns, default=Part("", 0))


def part_row(name: str, ns: float, whole_ns: float, look: str = "", remark: str = "") -> Row:
    """Name, bar, share, time, remark; indented where it has a color of its own."""
    figures = (length(ns, whole_ns, look=look), share(ns / whole_ns), time(ns))
    return row(text(name, look), *figures, text(remark, tone="dim"), depth=int(bool(look)))


def hosts_table(
    of: str, remark: str, hosts: Sequence[tuple[str, float, Sequence[HostCategory]]], brief: int | None = None
) -> Table:
    """Budgets, a row each: a name, a time (which ``remark`` names), the largest categories, then the time of every one."""
    used = [at for at, category in enumerate(HOST_CATEGORIES) if any(host[at].ns for _, _, host in hosts)]
    columns = heads(f"{of} | >{remark} | by category")
    columns += [Column(HOST_CATEGORIES[at], gives_way=1) for at in used]
    rows = [
        row(name, time(ns), divided(host, 1), *(time(host[at].ns or None) for at in used)) for name, ns, host in hosts
    ]
    return Table(columns, rows, brief=brief)


def frames_section(host: Sequence[HostCategory], wall_ns: float, most: int, brief: int, of: str = "") -> Section:
    """Frames with the most self time: at most ``most``, of which ``brief`` stand outside of pages."""
    frames = [(frame.ns, category.category, frame.frame) for category in host for frame in category.top if frame.ns]
    rows = [
        row(time(ns), share(ns / max(1, wall_ns)), text(category, category), frame)
        for ns, category, frame in sorted(frames, key=lambda item: -item[0])[:most]
    ]
    table = Table(heads("> | > ~1 | ~2 | "), rows, brief=brief, more="")
    return Section(f"Costliest frames{of} by self time", [table], is_open=False)


def most_of(category: HostCategory) -> str:
    """The part or the frame with most of a category's time, else its largest part, as the end of a sentence."""
    part, frame = largest_part(category), next(iter(category.top), None)
    if 2 * part.ns > category.ns:
        return f", most of it {part.name} ({format_ns(part.ns)})"
    if frame is not None and (2 * frame.ns > category.ns or not part.ns):
        return f", led by {frame.frame} ({format_ns(frame.ns)})"
    return f", its largest part {part.name} ({format_ns(part.ns)})" if part.ns else ""


def apart(kind: str, ns: int) -> str:
    """How long compute runs without communication, communication without compute, and a copy without either."""
    beside = {"compute": "without communication", "communication": "without compute"}
    return f"{format_ns(ns)} {beside.get(kind, 'of it alone')}"


def device_section(device: DeviceShare, wall_ns: int, per: str) -> Section:
    """A device's partition of the host's wall time, ``per call`` or ``per step``, and its costliest kernels."""
    whole_ns = max(1, wall_ns)
    launches = _many(device.launches_per_call, "launch", "launches")
    launches += f", latency median {format_ns(device.launch_median_ns)}" if device.launches_per_call else ""
    kinds = (("compute", device.compute_ns), ("communication", device.communication_ns), ("copy", device.copy_ns))
    idle = sorted(device.idle_blame.items(), key=lambda item: -item[1])
    events = _many(device.events_per_call, "kernel or copy", "kernels and copies")
    alone = {name: apart(name, ns - device.overlap_ns) for name, ns in kinds[:2] if device.overlap_ns}
    rows = [
        part_row("busy", device.busy_ns, whole_ns, remark=events),
        *(part_row(name, ns, whole_ns, name, alone.get(name, "")) for name, ns in kinds if ns),
        part_row("idle, due to", device.idle_ns, whole_ns, remark=launches),
        *(part_row(name, ns, whole_ns, f"{IDLE}{name}") for name, ns in idle if ns),
    ]
    columns = heads(f" | ~2 | >share | >{per} | ~1")
    kernels = []
    for kernel in device.top:
        figures = (time(kernel.ns), share(kernel.ns / whole_ns), three_digits(kernel.per_call))
        kernels.append(row(*figures, text(kernel.kind, kernel.kind), kernel_name(kernel.name)))
    costliest = Table(heads(f">{per} | >share ~1 | >times | kind ~2 | kernel or copy"), kernels, brief=_TOP_KERNELS)
    heading = f"Device {device.device} ({device.kind}), of the same wall time: busy + idle = wall"
    return Section(heading, [Table(columns, rows), costliest])


def _many(number: float, one: str, more: str) -> str:
    """A mean of counts, with its noun."""
    return f"{three_digits(number)} {one if number == 1 else more}"
