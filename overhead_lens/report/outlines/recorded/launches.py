"""Launch figures of a recorded trace in words, and those of several batch sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from overhead_lens.report.cells import heads, row, time
from overhead_lens.report.outline import Notes, Row, Section, Table
from overhead_lens.report.text.blocks import counted, cut, left_out, share_text
from overhead_lens.traces.budgets import DeviceBudget
from overhead_lens.traces.job.batches import Batches, BatchPoint
from overhead_lens.traces.launch_figures.model import DeviceLaunches, LaunchFigures
from overhead_lens.units import format_ns

_MOST_ROWS = 200
_BOUND = {"device": "device-bound", "host": "host-bound", "neither": "neither", None: "no device work"}
_EXPLAINED = (
    "TKLQT is the time from the start of the launching call to the start of the kernel, summed (arXiv 2504.11750). Floor is the "
    "shortest such time of the device, queued what passed beyond it while the device was busy. A step is bound by the device if "
    "that is busy for nine tenths of it; else by the host, if the host is blamed for more than half of the idle time."
)


def launch_sections(budgets: Sequence[DeviceBudget], devices: Sequence[DeviceLaunches]) -> Iterator[Section]:
    """What the launches took, in words; then latencies, and the figures step by step."""
    yield Section.folded(
        "Launches: from call to kernel (TKLQT)",
        Notes([line for device in devices if device.whole.launches for line in (queueing(device), rates(device))]),
    )
    columns = heads("device | >step | >kernels | >without a call ~2 | >launches ~2")
    columns += heads(">of graphs ~3 | >TKLQT | >floor ~1 | >queued ~1 | >else ~1 | bound by")
    rows = [
        (device.device, name, figures)
        for device in devices
        for name, figures in (("all", device.whole), *((str(step.step), step.figures) for step in device.steps))
    ]
    yield Section.folded(
        "Launches: latencies and steps",
        _latencies(budgets),
        Notes([_EXPLAINED, *left_out(len(rows) - _MOST_ROWS, "row")] if rows else []),
        Table(columns, [_row(*each) for each in rows[:_MOST_ROWS]]),
    )


def _latencies(devices: Sequence[DeviceBudget]) -> Table:
    columns = heads("device | >launches | >latency median | >p99 ~1 | >max ~1")
    columns += heads(">queue mean / max ~2 | >of graphs ~3 | >device events without one")
    rows = []
    for device in devices:
        launch = device.launch
        latencies = map(time, (launch.median_ns, launch.p99_ns, launch.max_ns))
        queue = f"{launch.queue_depth_mean:.1f} / {launch.queue_depth_max}"
        counts = (launch.graph_launches, launch.unlinked)
        rows.append(row(device.device, launch.count, *latencies, queue, *counts))
    return Table(columns, rows)


def queueing(device: DeviceLaunches) -> str:
    """TKLQT and its parts."""
    whole = device.whole
    text = f"device {device.device}: {format_ns(whole.tklqt_ns)} over {counted(whole.launches, 'launch')}: "
    floor, queued, above = (share_text(ns, whole.tklqt_ns) for ns in (whole.floor_ns, whole.queued_ns, whole.above_ns))
    text += f"{floor} floor ({format_ns(device.least_ns)} each), " if device.least_ns else ""
    text += f"{queued} behind a busy device, {above} else"
    return text + ("" if device.least_ns is not None else f"; floor unknown: {device.least_unknown}")


def rates(device: DeviceLaunches) -> str:
    """Kernels per step and per token, and what bounds the steps."""
    parts = []
    if device.kernels_per_step is not None:
        parts.append(f"{device.kernels_per_step:,.1f}".removesuffix(".0") + " kernels per step")
    if device.kernels_per_token is not None:
        parts.append(f"{device.kernels_per_token:,.1f} kernels per token")
    if device.steps:
        counts = Counter(_BOUND[step.figures.bound] for step in device.steps)
        parts.append("steps: " + ", ".join(f"{number:,} {name}" for name, number in counts.most_common()))
    else:
        bound = device.whole.bound
        parts.append(f"the whole is {_BOUND[bound] if bound != 'neither' else 'bound by neither host nor device'}")
    return "; ".join(parts)


def _row(device: str, step: str, figures: LaunchFigures) -> Row:
    counts = (figures.kernels, figures.unlinked, figures.launches, figures.graph_launches)
    times_ns = (figures.tklqt_ns, figures.floor_ns, figures.queued_ns, figures.above_ns)
    return row(device, step, *counts, *map(time, times_ns), _BOUND[figures.bound])


def batches_sentence(batches: Batches) -> str:
    """From which batch size on the device bounds."""
    sizes = [point.batch for point in batches.points if point.batch is not None and point.device]
    if len(sizes) < 2:
        return "Fewer than two traces have a known batch size and device work: nothing can be compared."
    if batches.device_bound_from is None:
        text = f"Not bound by the device at the largest batch size, {sizes[-1]:,}"
    elif batches.device_bound_from == sizes[0]:
        text = f"Bound by the device at every batch size from {sizes[0]:,} on"
    else:
        text = f"Bound by the device from batch size {batches.device_bound_from:,} on"
    queued = batches.queued_from
    return f"{text}; launches queue behind a busy device " + (
        f"from {queued:,} on." if queued is not None else "for less than half of TKLQT at the largest."
    )


def batch_section(batches: Batches) -> Section:
    """A row for each trace."""
    columns = heads(">batch | >kernels | >TKLQT | >queued | bound by | per ~2 | device ~3 | trace | batch told by ~1")
    return Section("Batch sizes", [Table(columns, list(map(_batch, batches.points)))], reach="everywhere")


def _batch(point: BatchPoint) -> Row:
    size = f"{point.batch:,}" if point.batch is not None else "?"
    figures = (size, f"{point.kernels:,.0f}", time(point.tklqt_ns), share_text(point.queued_ns, point.tklqt_ns))
    return row(*figures, _BOUND[point.bound], point.per, point.device, point.path, cut(point.told_by))
