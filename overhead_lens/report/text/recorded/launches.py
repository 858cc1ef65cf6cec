"""Launch figures of a recorded trace in the terminal, and those of several batch sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, cut, section, table_of
from overhead_lens.report.text.plain import plain
from overhead_lens.traces.batches import Batches, BatchPoint
from overhead_lens.traces.launch_figures.model import Bound, DeviceLaunches, LaunchFigures
from overhead_lens.units import format_ns

_MOST_DEVICES = 2
_BOUND = {"device": "device-bound", "host": "host-bound", "neither": "neither", None: "no device work"}


def launch_blocks(devices: Sequence[DeviceLaunches]) -> Iterator[RenderableType]:
    """The printed blocks: two or three lines for each of the first devices."""
    shown = [device for device in devices if device.whole.launches][:_MOST_DEVICES]
    if shown:
        lines = [Text(line) for device in shown for line in (queueing(device), f"  {rates(device)}")]
        yield section("launches: from call to kernel (TKLQT)", Group(*lines))


def queueing(device: DeviceLaunches) -> str:
    """TKLQT and its parts."""
    whole = device.whole
    text = f"device {device.device}: {format_ns(whole.tklqt_ns)} over {whole.launches:,} launches: "
    floor = f"{_share(whole.floor_ns, whole)} floor ({format_ns(device.least_ns)} each), " if device.least_ns else ""
    text += f"{floor}{_share(whole.queued_ns, whole)} behind a busy device, {_share(whole.above_ns, whole)} else"
    return text + ("" if device.least_ns is not None else f"; floor unknown: {device.least_unknown}")


def rates(device: DeviceLaunches) -> str:
    """Kernels per step and per token, and what bounds the steps."""
    told = []
    if device.kernels_per_step is not None:
        told.append(f"{device.kernels_per_step:,.1f}".removesuffix(".0") + " kernels per step")
    if device.kernels_per_token is not None:
        told.append(f"{device.kernels_per_token:,.1f} kernels per token")
    if device.steps:
        counts = Counter(_BOUND[step.figures.bound] for step in device.steps)
        told.append("steps: " + ", ".join(f"{count:,} {name}" for name, count in counts.most_common()))
    else:
        told.append(f"the whole is {verdict(device.whole.bound)}")
    return "; ".join(told)


def verdict(bound: Bound | None) -> str:
    """A verdict in words."""
    return _BOUND[bound] if bound != "neither" else "bound by neither host nor device"


def cells(devices: Sequence[DeviceLaunches]) -> Cells:
    """The whole of each device and its steps, a row for each."""
    heads = (
        "device", "step", "kernels", "without a call", "launches", "of graphs", "TKLQT", "floor", "queued", "else", "bound by"
    )  # fmt: skip
    return heads, [
        _row(device.device, name, figures)
        for device in devices
        for name, figures in (
            ("all", device.whole),
            *((str(step.step), step.figures) for step in device.steps),
        )
    ]


def _row(device: str, step: str, figures: LaunchFigures) -> Sequence[str]:
    return (
        device,
        step,
        f"{figures.kernels:,}",
        f"{figures.unlinked:,}",
        f"{figures.launches:,}",
        f"{figures.graph_launches:,}",
        *map(format_ns, (figures.tklqt_ns, figures.floor_ns, figures.queued_ns, figures.above_ns)),
        _BOUND[figures.bound],
    )


def batches_sentence(batches: Batches) -> str:
    """The batch size from which on the device bounds, in a sentence."""
    sizes = [point.batch for point in batches.points if point.batch is not None]
    if len(sizes) < 2:
        return "Fewer than two traces have a known batch size: nothing can be compared."
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


def batch_cells(batches: Batches) -> Cells:
    """A row for each trace."""
    heads = ("batch", "kernels", "TKLQT", "queued", "bound by", "per", "device", "trace", "batch told by")
    return heads, [_batch(point) for point in batches.points]


def _batch(point: BatchPoint) -> Sequence[str]:
    share = f"{point.queued_ns / point.tklqt_ns:.0%}" if point.tklqt_ns else "-"
    return (
        f"{point.batch:,}" if point.batch is not None else "?",
        f"{point.kernels:,.0f}",
        format_ns(point.tklqt_ns),
        share,
        _BOUND[point.bound],
        point.per,
        point.device,
        plain(point.path),
        cut(plain(point.told_by)),
    )


def batch_blocks(batches: Batches) -> Iterator[RenderableType]:
    """The sentence, the table and what a reader must know."""
    yield Text(batches_sentence(batches), style="bold")
    yield table_of(batch_cells(batches), left=("bound by", "per", "trace", "batch told by"))
    for note in batches.notes:
        yield Text(plain(note), style="yellow")


def _share(ns: int, whole: LaunchFigures) -> str:
    return f"{ns / whole.tklqt_ns:.0%}" if whole.tklqt_ns else "-"
