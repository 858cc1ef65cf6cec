"""What a reader of a run's budget must know about it (pure)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from overhead_lens.stats.estimate import T_OVER_BLOCKS, Measured
from overhead_lens.studies.run.device import RunDevice
from overhead_lens.studies.run.stored import StoredRun
from overhead_lens.units import format_ns

FEW_STACKS = 100
"""Fewer leave the shares rough."""

_DRIFT_SHARE = 0.05
# A sampled step lasts as long as a bare one, or longer, but not several times as long.
_LEAST_RATIO, _MOST_RATIO = 0.9, 3.0
# The sampler stops a thread, whose CPU clock then stands still: it found 0.92 to 1.12 times the CPU time of bare steps.
_MOST_CPU_RATIO = 1.5
# Steps of another kind take so many times the median, or less than its part, and are not a few.
_OTHER_KIND, _FEW_SHARE = 3.0, 0.1


def is_unlike(step_ratio: float | None, cpu_ratio: float | None) -> bool:
    """Whether sampled and bare steps differ by more than the sampler explains, in wall time or CPU time."""
    return (step_ratio is not None and not _LEAST_RATIO <= step_ratio <= _MOST_RATIO) or _computes_unlike(cpu_ratio)


def _computes_unlike(cpu_ratio: float | None) -> bool:
    return cpu_ratio is not None and not 1.0 / _MOST_CPU_RATIO <= cpu_ratio <= _MOST_CPU_RATIO


def of_steps(
    counted: pd.DataFrame | None, step_ratio: float | None, cpu_ratio: float | None, wall: Measured
) -> Iterator[str]:
    """Warnings about the steps' times: reasons to doubt their mean."""
    if counted is None:
        return
    ns = counted["ns"].to_numpy(np.float64)
    if not counted["is_bare"].any():
        yield "too few steps ran without an instrument: the wall is the mean of others, which were not traced"
    if is_unlike(step_ratio, cpu_ratio):
        of_cpu = f" ({cpu_ratio:.2f} times the CPU time)" if _computes_unlike(cpu_ratio) else ""
        yield (
            f"sampled steps took {step_ratio:.2f} times as long as bare ones{of_cpu}, which the sampler does not explain: the"
            " program's steps change, or other processes take its cores; the interval covers both, and sampled steps set the"
            " shares"
        )
    median = float(np.median(ns))
    other = float(np.mean((ns > _OTHER_KIND * median) | (ns * _OTHER_KIND < median)))
    if other >= _FEW_SHARE:
        yield (
            f"steps are of two kinds: the median takes {format_ns(median)}, and {other:.0%} of them take more than three times"
            " or less than a third of that"
        )
    first, second = (float(np.median(half)) for half in np.array_split(ns, 2))
    change = second / first - 1 if first else 0.0
    if abs(change) >= _DRIFT_SHARE:
        than = f"{abs(change):.0%} {'longer' if change > 0 else 'less'}"
        yield f"steps of the later half take {than} than those of the first: the budget is their mean"
    if wall.interval != T_OVER_BLOCKS:
        yield "too few steps for an interval"


def of_devices(device: RunDevice | None, wall: Measured) -> Iterator[str]:
    """Warnings about the devices' side of a step."""
    if device is not None and device.busiest_ns > wall.ci95_ns[1]:
        yield (
            f"a device is busy for {format_ns(device.busiest_ns)} per step under the profiler, longer than the bare step: taken"
            " as all of it"
        )


def of_stacks(run: StoredRun, samples: int, taken: int, *, has_steps: bool) -> Iterator[str]:
    """Warnings about missing stacks; ``samples`` of ``taken`` lie inside the steps."""
    meta = run.meta
    if not has_steps:
        seen = (
            "none were seen" if run.steps is None else f"{len(run.steps):,} were seen, and the program ended too soon"
        )
        yield f"no step could be measured ({seen}): the budget is of the whole run; --step names one"
    if not samples:
        reason = meta.reason or f"the program ended before one was taken{' in a step' if has_steps else ''}"
        yield f"no stacks: {reason}; nothing says how the time divides"
    elif samples < FEW_STACKS:
        yield f"{samples} stacks only: the shares are rough; a longer run narrows them"
    if samples and meta.reason:
        yield f"sampling ended early: {meta.reason}"
    if has_steps and taken > samples:
        yield f"{taken - samples:,} of {taken:,} stacks of the thread lie outside the steps and are left out"
