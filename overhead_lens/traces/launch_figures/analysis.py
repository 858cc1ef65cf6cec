"""Launch figures of a trace: time from launching calls to their kernels, and its parts.

The time from a call to its kernel is divided by what the device did meanwhile::

    host     [call]
    device   ---busy---|         |kernel
    TKLQT    |---------|---------|
             floor, queued, above    the shortest such time of the device; beyond it while it was busy; the rest
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from statistics import median
from typing import Any

import numpy as np

from overhead_lens.readers.kineto.model import Events, Trace
from overhead_lens.stats.values import Ints, are_first
from overhead_lens.taxonomy import torch_names
from overhead_lens.taxonomy.categories import QUEUE
from overhead_lens.traces.budgets import DeviceBudget, TraceStep
from overhead_lens.traces.columns import where
from overhead_lens.traces.device import COPY, DeviceTimeline
from overhead_lens.traces.host import ANNOTATIONS, OPERATORS
from overhead_lens.traces.launch_figures.model import Bound, DeviceLaunches, InputBatch, LaunchFigures, StepFigures

MOST_FLOOR_NS = 100_000
"""What takes longer than this from its call to its start waited for something: published floors are 2 to 5 us."""

NOT_THE_HOST = ("wait", QUEUE, "unattributed")
"""Blame for idle time that preparing launches faster would not save."""

_BUSY_SHARE, _HOST_SHARE = 0.9, 0.5

_INPUT = {"aten::embedding": 1, "aten::conv1d": 0, "aten::conv2d": 0, "aten::conv3d": 0, "aten::linear": 0}
"""Which argument of the first layer holds the batch, in its first dimension."""

_FEWEST_DIMS = {"aten::conv1d": 3, "aten::conv2d": 4, "aten::conv3d": 5}
"""Of a batch: with one fewer, the first dimension is the channels of a single item."""

_SHAPES = "Input Dims"
_HALF = 32
_SUMMED = tuple(field.name for field in fields(LaunchFigures) if field.name != "bound")


def launch_figures(
    events: Events, devices: Sequence[DeviceTimeline], budgets: Sequence[DeviceBudget], steps: Sequence[TraceStep]
) -> tuple[DeviceLaunches, ...]:
    """The figures of every device; ``budgets`` are those of ``devices`` over their spans."""
    if not devices:
        return ()
    decoding = decode_windows(events)
    return tuple(
        _DeviceKernels(events, device).figures(budget, at, steps, decoding)
        for at, (device, budget) in enumerate(zip(devices, budgets, strict=True))
    )


def decode_windows(events: Events) -> tuple[Ints, Ints]:
    """Starts and ends of the annotations that vLLM and SGLang put around a step of decoding alone."""
    marks = where(events["cat"], (ANNOTATIONS | OPERATORS).__contains__)
    found = [np.flatnonzero(marks & where(events["name"], pattern.match)) for pattern in torch_names.DECODE_STEPS]
    rows = next(filter(len, found), found[0])
    start_ns = events["start_ns"][rows]
    return start_ns, start_ns + events["dur_ns"][rows]


class _DeviceKernels:
    """Kernels of one device with sums over time."""

    def __init__(self, events: Events, device: DeviceTimeline) -> None:
        start_ns, dur_ns = events["start_ns"], events["dur_ns"]
        kernels = np.flatnonzero(device.kind != COPY)
        rows, launch = device.linked.rows[kernels], device.linked.launch[kernels]
        known, is_graph = launch >= 0, device.linked.is_graph[kernels]
        called = np.where(known, start_ns[launch], start_ns[rows])
        # Kernels come in order of start: the first kernel of a graph represents its launch.
        term = known & (~is_graph | are_first(launch))
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
            in_order = column[order]
            np.cumsum(in_order >> _HALF, out=self._sums[0, at, 1:])
            np.cumsum(in_order & ((1 << _HALF) - 1), out=self._sums[1, at, 1:])
        self._device = device

    def figures(
        self, budget: DeviceBudget, at: int, steps: Sequence[TraceStep], decoding: tuple[Ints, Ints]
    ) -> DeviceLaunches:
        """All of them."""
        step_figures = tuple(
            StepFigures(step.step, self._within(*step.window.bounds, bound_of(step.devices[at]))) for step in steps
        )
        first, last = (np.searchsorted(self._called, edges, "left") for edges in decoding)
        return DeviceLaunches(
            str(self._device.number),
            self._least_ns,
            self._unknown,
            self._repaired,
            self._between(0, -1, bound_of(budget)),
            step_figures,
            median(one.figures.kernels for one in step_figures) if step_figures else None,
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


def per_token(device: DeviceLaunches, tokens_per_step: int) -> DeviceLaunches:
    """The figures with kernels per token; a value from the trace itself is kept."""
    if device.kernels_per_token is not None or device.kernels_per_step is None:
        return device
    return replace(device, kernels_per_token=round(device.kernels_per_step / tokens_per_step, 3))


def bound_of(device: DeviceBudget) -> Bound | None:
    """The device, if busy for nine tenths; the host, if blamed for more than half of the idle time; None without work."""
    if not device.busy_ns:
        return None
    if device.busy_ns >= _BUSY_SHARE * device.span_ns:
        return "device"
    host_ns = sum(ns for name, ns in device.idle_blame.items() if name not in NOT_THE_HOST)
    return "host" if host_ns > _HOST_SHARE * device.idle_ns else "neither"


def input_batch(trace: Trace) -> InputBatch:
    """Leading dimension of the input of the first embedding, convolution or linear layer.

    Shapes are ``Input Dims`` of ``record_shapes=True`` (torch/csrc/autograd/profiler_kineto.cpp). An input of one dimension
    is not a batch: serving engines put the tokens of all requests into one. Nor is an image alone, which a convolution takes too.
    """
    events = trace.columns
    layers = where(events["cat"], OPERATORS.__contains__) & where(events["name"], _INPUT.__contains__)
    rows = np.flatnonzero(layers)
    if not len(rows):
        return InputBatch(None, "no embedding, convolution or linear layer in the trace")
    first = int(rows[np.argmin(events["start_ns"][rows])])
    name = str(events["name"][first])
    arguments = trace.arguments([first])[0]
    if _SHAPES not in arguments:
        return InputBatch(None, "recorded without shapes (record_shapes=True)")
    shape = _shape(arguments[_SHAPES], _INPUT[name])
    if shape is None or len(shape) < _FEWEST_DIMS.get(name, 2) or shape[0] < 1:
        return InputBatch(None, f"the input of {name} has no batch dimension")
    return InputBatch(shape[0], f"{name} of {shape}")


def _shape(shapes: Any, at: int) -> list[int] | None:
    """The shape of one argument; None for what is none."""
    if not isinstance(shapes, list) or len(shapes) <= at or not isinstance(shapes[at], list):
        return None
    shape = shapes[at]
    return shape if all(type(size) is int for size in shape) else None
