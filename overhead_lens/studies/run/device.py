"""What the devices did in the recorded steps of a run, for a bare step and for each region (pure).

Recording slows the host and not the kernels. The steps' window ends with the last work that they launched::

    host     |ProfilerStep#0|ProfilerStep#1|
    device        |work|         |---work of both steps---|
    window   |--------------------------------------------|

A region is recorded by the program's clock, which is moved to that of the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overhead_lens.budget.device import bare_share
from overhead_lens.budget.model import DeviceShare
from overhead_lens.budget.trace import profiler_pauses
from overhead_lens.program.area import Phase
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.device import DeviceTimeline
from overhead_lens.traces.model import TraceAnalysis

Windows = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class BareRegion:
    """A region: its bare wall time, and when recorded steps entered and left it by the program's clock."""

    name: str
    wall_ns: int
    entries: Windows


@dataclass(frozen=True, slots=True)
class RegionDevice:
    """Every device's partition of a region's bare wall time, by number; ``count`` entries were recorded."""

    name: str
    count: int
    devices: tuple[DeviceShare, ...]


@dataclass(frozen=True, slots=True)
class RunDevice:
    """The devices in the recorded steps.

    Attributes:
        steps: How many were recorded.
        step_ratio: Duration of a recorded step, the devices' last work included, over that of a bare step.
        devices: Every device's partition of a bare step, by number.
        busiest_ns: Busy time of the busiest device per recorded step.
        regions: Those that recorded steps entered.
        analysis: Of the recording, as ``overhead-lens analyze`` makes it.
    """

    steps: int
    step_ratio: float
    devices: tuple[DeviceShare, ...]
    busiest_ns: int
    regions: tuple[RegionDevice, ...]
    analysis: TraceAnalysis


def run_device(
    trace: Trace,
    windows: Windows,
    steps: pd.DataFrame,
    wall_ns: int,
    regions: Sequence[BareRegion],
    classifier: Classifier,
) -> RunDevice | None:
    """The devices of a recording of ``windows``, at least one, in order; None without device work. ``wall_ns``: a bare step."""
    traced = steps[steps["phase"] == Phase.TRACED]
    if not wall_ns or not (trace.events["device"] >= 0).any():
        return None
    analyzer, kind = Analyzer(trace, classifier), _kind(trace.events)
    begin_ns, end_ns = windows[0][0], max(end_ns for _, end_ns in windows)
    last_ns = max(_last_ns(trace.events, device, begin_ns, end_ns) for device in analyzer.devices)
    whole = begin_ns, max(end_ns, last_ns)
    pauses = profiler_pauses(trace.columns)
    shares = [bare_share(device, kind, [whole], len(windows), wall_ns, pauses) for device in analyzer.devices]
    ahead_ns = _ahead_ns(windows, traced)
    by_region = []
    for region in regions:
        moved = sorted((entered_ns + ahead_ns, left_ns + ahead_ns) for entered_ns, left_ns in region.entries)
        inside = [window for window in moved if begin_ns <= window[0] and window[1] <= end_ns]
        if inside:
            region_shares = (
                bare_share(device, kind, inside, len(inside), region.wall_ns, pauses) for device in analyzer.devices
            )
            by_region.append(RegionDevice(region.name, len(inside), tuple(share for share, _ in region_shares)))
    return RunDevice(
        steps=len(windows),
        step_ratio=(whole[1] - whole[0]) / len(windows) / wall_ns,
        devices=tuple(share for share, _ in shares),
        busiest_ns=max(busy_ns for _, busy_ns in shares),
        regions=tuple(by_region),
        analysis=analyzer.analysis(),
    )


def _last_ns(events: pd.DataFrame, device: DeviceTimeline, begin_ns: int, end_ns: int) -> int:
    """End of the last work that was launched between two instants; the first instant without any."""
    start_ns, linked = events["start_ns"].to_numpy(), device.linked
    called_ns = start_ns[linked.launch]
    rows = linked.rows[(linked.launch >= 0) & (called_ns >= begin_ns) & (called_ns < end_ns)]
    return int((start_ns[rows] + events["dur_ns"].to_numpy()[rows]).max(initial=begin_ns))


def _ahead_ns(windows: Windows, traced: pd.DataFrame) -> int:
    """How far the trace's clock is ahead of the program's, by the middles of steps: a window holds its step."""
    shown = [(start_ns + end_ns) // 2 for start_ns, end_ns in windows]
    clocked = ((traced["begin_ns"] + traced["end_ns"]) // 2).tolist()
    return int(np.median([one - other for one, other in zip(shown, clocked, strict=False)]))


def _kind(events: pd.DataFrame) -> str:
    """The kind of the devices, as torch calls it: ``cuda``, ``xpu``, ``mtia``."""
    calls = (name for name in events["cat"].cat.categories if name.endswith("_runtime"))
    return next((name.removesuffix("_runtime") for name in calls), "cuda")
