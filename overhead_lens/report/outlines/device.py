"""A device beside a host budget in words."""

from __future__ import annotations

from overhead_lens.budget.model import DeviceShare
from overhead_lens.report.cells import names, row, share, text, time
from overhead_lens.report.looks import IDLE
from overhead_lens.report.outline import Column, Section, Table
from overhead_lens.report.outlines.host import part_row
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.units import format_ns

_TOP = 5


def apart(kind: str, ns: int) -> str:
    """How long compute runs without communication, communication without compute, and a copy without either."""
    beside = {"compute": "without communication", "communication": "without compute"}
    return f"{format_ns(ns)} {beside.get(kind, 'of it alone')}"


def device_section(device: DeviceShare, wall_ns: int, per: str) -> Section:
    """A device's partition of the host's wall time, ``per call`` or ``per step``, and its costliest kernels."""
    whole_ns = max(1, wall_ns)
    launched = _many(device.launches_per_call, "launch", "launches")
    launches = f"{launched}, latency median {format_ns(device.launch_median_ns)}"
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
    columns = [names(""), names("", gives_way=2), Column("share"), Column(per), names("", gives_way=1)]
    kernels = []
    for kernel in device.top:
        figures = (time(kernel.ns), share(kernel.ns / whole_ns), _mean(kernel.per_call))
        kernels.append(row(*figures, text(kernel.kind, kernel.kind), kernel_name(kernel.name)))
    heads = [Column("time"), Column("share", gives_way=1), Column(per), names("kind", gives_way=2)]
    costliest = Table([*heads, names("kernel or copy")], kernels, brief=_TOP)
    heading = f"Device {device.device} ({device.kind}), of the same wall time: busy + idle = wall"
    return Section(heading, [Table(columns, rows), costliest])


def _many(number: float, one: str, more: str) -> str:
    """A mean of counts, with its noun."""
    return f"{_mean(number)} {one if number == 1 else more}"


def _mean(number: float) -> str:
    """A mean of counts with three digits, or all of its whole ones."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
