"""Metrics of CUPTI's range profiler, joined to the kernels and operators that they were counted for.

Kineto wrote one ``cuda_profiler_range`` a kernel, in the order in which they ran, and divided the time of the recording evenly
among them (``CuptiRangeProfiler.cpp``, dropped in 2026: "the actual times do not really matter here"). So no time is taken from
them: a range is joined by its correlation, where it has one, else by its place, if there are as many kernels of those names, or
with no kernel in the trace as many launches.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from overhead_lens.readers.kineto.counters import is_number
from overhead_lens.readers.kineto.event import COPY_CATEGORIES, integer
from overhead_lens.readers.kineto.model import Events, Trace
from overhead_lens.stats.values import Ints, first_places, taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import where
from overhead_lens.traces.counters.metrics import adds_up, flop
from overhead_lens.traces.counters.model import RangedKernel
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.launches import Linked, calls_named, launching_operators

MISSING = "__missing__"
_MOST_OPERATORS = 3
_NO_METRICS = frozenset({"correlation", "External id", "device", "stream"})


def ranges(trace: Trace, host: HostEvents, linked: Linked) -> tuple[tuple[RangedKernel, ...], str]:
    """Metrics by kernel, and how ranges were joined: ``correlation``, ``order`` or empty."""
    rows = np.flatnonzero(where(trace.columns["cat"], torch_names.PROFILER_RANGE.__eq__))
    if not len(rows):
        return (), ""
    arguments = trace.arguments(rows.tolist())
    kernel, launch, joined_by = _joined(trace.columns, rows, arguments, linked)
    operator = launching_operators(host, launch)
    names = trace.columns["name"]
    operators = np.where(operator >= 0, names[operator], "").tolist()
    dur_ns = trace.columns["dur_ns"]
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    for at, text in enumerate(names[rows]):
        by_name[text].append(at)
    made = [
        _kernel(
            text,
            [_metrics(arguments[at]) for at in places],
            [operators[at] for at in places if operators[at]],
            [int(dur_ns[kernel[at]]) if kernel[at] >= 0 else None for at in places],
        )
        for text, places in by_name.items()
    ]
    made.sort(key=lambda one: (-sum(one.flop.values()), -one.ranges))
    return tuple(made), joined_by


def _metrics(arguments: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in arguments.items() if is_number(value) and name not in _NO_METRICS}


def _joined(
    events: Events, rows: Ints, arguments: Sequence[Mapping[str, Any]], linked: Linked
) -> tuple[Ints, Ints, str]:
    """Device event and launch of each range, -1 for none."""
    nothing = np.full(len(rows), -1, dtype=np.int64)
    is_kernel = ~where(events["cat"], COPY_CATEGORIES.__contains__)[linked.rows]
    kernels = linked.chosen(np.flatnonzero(is_kernel))
    calls = calls_named(events, "LaunchKernel")
    numbers = np.array([integer(own.get("correlation")) for own in arguments], dtype=np.int64)
    if (numbers > 0).all():
        at = first_places(events["correlation"][kernels.rows], numbers)
        if (at >= 0).any():
            return taken(kernels.rows, at), taken(kernels.launch, at), "correlation"
        at = first_places(events["correlation"][calls], numbers)
        return nothing, taken(calls, at), "correlation" if (at >= 0).any() else ""
    start_ns = events["start_ns"]
    if len(kernels.rows) == len(rows):
        order = np.argsort(start_ns[kernels.rows], kind="stable")
        if _same_names(events, rows, kernels.rows[order]):
            return kernels.rows[order], kernels.launch[order], "order"
    if not len(kernels.rows) and len(calls) == len(rows):
        return nothing, calls[np.argsort(start_ns[calls], kind="stable")], "order"
    return nothing, nothing, ""


def _same_names(events: Events, rows: Ints, kernels: Ints) -> bool:
    name = events["name"]
    named = np.array([name.categories[code] != MISSING for code in name.codes[rows].tolist()])
    return bool((name.codes[rows][named] == name.codes[kernels][named]).all())


def _kernel(
    name: str, metrics: Sequence[Mapping[str, float]], operators: Sequence[str], times_ns: Sequence[int | None]
) -> RangedKernel:
    names = dict.fromkeys(metric for own in metrics for metric in own)
    summed = {metric: sum(own.get(metric, 0.0) for own in metrics) for metric in names}
    counts = Counter(metric for own in metrics for metric in own)
    shown = {metric: value if adds_up(metric) else value / counts[metric] for metric, value in summed.items()}
    timed = [(own, ns) for own, ns in zip(metrics, times_ns, strict=True) if ns is not None]
    timed_ns = sum(ns for _, ns in timed)
    done = [flop(own) for own, _ in timed]
    known = bool(done) and all(done) and timed_ns > 0
    return RangedKernel(
        name=name,
        operators=tuple(text for text, _ in Counter(operators).most_common(_MOST_OPERATORS)),
        ranges=len(metrics),
        metrics=shown,
        flop=flop(summed),
        timed=len(timed),
        timed_ns=timed_ns,
        gflop_s=sum(sum(one.values()) for one in done) / timed_ns if known else None,
    )
