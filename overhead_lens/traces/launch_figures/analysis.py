"""Launch figures of a trace: time from launching calls to their kernels, and its parts.

The time from a call to its kernel is divided by what the device did meanwhile::

    host     [call]
    device   ---busy---|         |kernel
    TKLQT    |---------|---------|
             floor, queued, above    the shortest such time of the device; beyond it while it was busy; the rest
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from statistics import median

import numpy as np
import pandas as pd

from overhead_lens.stats.values import Bools, Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.budgets import DeviceBudget, TraceStep
from overhead_lens.traces.columns import where
from overhead_lens.traces.device import COPY, DeviceTimeline, device_kinds
from overhead_lens.traces.host import ANNOTATIONS, OPERATORS
from overhead_lens.traces.launch_figures.bound import bound_of
from overhead_lens.traces.launch_figures.model import Bound, DeviceLaunches, LaunchFigures, StepFigures

MOST_FLOOR_NS = 100_000
"""What takes longer than this from its call to its start waited for something: published floors are 2 to 5 us."""

_HALF = 32
_SUMMED = (
    "kernels", "unlinked", "kernel_ns", "launches", "graph_launches", "graph_kernels", "tklqt_ns", "floor_ns", "queued_ns",
    "above_ns",
)  # fmt: skip


def launch_figures(
    events: pd.DataFrame,
    devices: Sequence[DeviceTimeline],
    budgets: Sequence[DeviceBudget],
    steps: Sequence[TraceStep],
) -> tuple[DeviceLaunches, ...]:
    """The figures of every device; ``budgets`` are those of ``devices`` over their spans."""
    if not devices:
        return ()
    is_kernel = device_kinds(events) != COPY
    decoding = decode_windows(events)
    return tuple(
        _DeviceKernels(events, device, is_kernel).figures(budget, at, steps, decoding)
        for at, (device, budget) in enumerate(zip(devices, budgets, strict=True))
    )


def decode_windows(events: pd.DataFrame) -> tuple[Ints, Ints]:
    """Starts and ends of the annotations that vLLM and SGLang put around a step of decoding alone."""
    marks = where(events["cat"], (ANNOTATIONS | OPERATORS).__contains__)
    for pattern in torch_names.DECODE_STEPS:
        rows = np.flatnonzero(marks & where(events["name"], partial(_matches, pattern)))
        if len(rows):
            start_ns = events["start_ns"].to_numpy()[rows]
            return start_ns, start_ns + events["dur_ns"].to_numpy()[rows]
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


def _matches(pattern: re.Pattern[str], name: str) -> bool:
    return pattern.match(name) is not None


class _DeviceKernels:
    """Kernels of one device with sums over time."""

    def __init__(self, events: pd.DataFrame, device: DeviceTimeline, is_kernel: Bools) -> None:
        start_ns, dur_ns = events["start_ns"].to_numpy(), events["dur_ns"].to_numpy()
        kernels = np.flatnonzero(is_kernel[device.linked.rows])
        rows, launch = device.linked.rows[kernels], device.linked.launch[kernels]
        known, is_graph = launch >= 0, device.linked.is_graph[kernels]
        called = np.where(known, start_ns[launch], start_ns[rows])
        # Kernels come in order of start: the first kernel of a graph represents its launch.
        term = known & ~(is_graph & pd.Series(launch).duplicated().to_numpy())
        latency = np.where(term, start_ns[rows] - called, 0)
        self._repaired = int((latency < 0).sum())
        latency = np.maximum(latency, 0)
        self._least_ns, self._unknown = _floor(latency[term], self._repaired)
        floor = np.where(term, self._least_ns or 0, 0)
        meanwhile = device.busy.before(called + latency) - device.busy.before(called)
        queued = np.minimum(meanwhile, latency - floor)
        order = np.argsort(called, kind="stable")
        self._called = called[order]
        ones = np.ones(len(rows), dtype=np.int64)
        columns = (
            ones, ~known * ones, dur_ns[rows], term * ones, (term & is_graph) * ones, (known & is_graph) * ones,
            latency, floor, queued, latency - floor - queued,
        )  # fmt: skip
        # In halves, because a sum of times may exceed int64.
        self._sums = np.zeros((2, len(columns), len(rows) + 1), dtype=np.int64)
        for at, column in enumerate(columns):
            np.cumsum(column[order] >> _HALF, out=self._sums[0, at, 1:])
            np.cumsum(column[order] & ((1 << _HALF) - 1), out=self._sums[1, at, 1:])
        self._device = device

    def figures(
        self,
        budget: DeviceBudget,
        at: int,
        steps: Sequence[TraceStep],
        decoding: tuple[Ints, Ints],
    ) -> DeviceLaunches:
        """All of them."""
        told = tuple(
            StepFigures(step.step, self._within(*step.window.bounds, bound_of(step.devices[at]))) for step in steps
        )
        first, last = (np.searchsorted(self._called, edges, "left") for edges in decoding)
        return DeviceLaunches(
            str(self._device.number),
            self._least_ns,
            self._unknown,
            self._repaired,
            self._between(0, -1, bound_of(budget)),
            told,
            median(one.figures.kernels for one in told) if told else None,
            round(float((last - first).sum()) / len(first), 3) if len(first) else None,
            len(first),
        )

    def _within(self, start_ns: int, end_ns: int, bound: Bound | None) -> LaunchFigures:
        first, last = np.searchsorted(self._called, (start_ns, end_ns), "left")
        return self._between(int(first), int(last), bound)

    def _between(self, first: int, last: int, bound: Bound | None) -> LaunchFigures:
        high, low = (self._sums[:, :, last] - self._sums[:, :, first]).tolist()
        sums = [(one << _HALF) + other for one, other in zip(high, low, strict=True)]
        return LaunchFigures(**dict(zip(_SUMMED, sums, strict=True)), bound=bound)


def _floor(latency_ns: Ints, repaired: int) -> tuple[int | None, str]:
    """The shortest time from a call to its kernel, or why it says nothing."""
    if not len(latency_ns):
        return None, "no kernel has its launching call in the trace"
    if repaired:
        return None, f"{repaired} kernels start before their call: the clocks of host and device differ"
    least_ns = int(latency_ns.min())
    if least_ns > MOST_FLOOR_NS:
        return None, "every kernel waited for something: none started within 100 µs of its call"
    return least_ns, ""
