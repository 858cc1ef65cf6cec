"""Tests single frames for a difference, which shows long before that of their category does.

A category has the sampling error of all its stacks, and an added function only that of its own few::

    3,000 stacks a side        without      with a function of 1 %      z
    category                   1,000        1,030                       0.7
    the function's frame       0            30                          5.5

Without a difference, the new side's part of a frame's stacks is binomial. Counts are first divided by their overdispersion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead_lens.budget.make import Budget
from overhead_lens.budget.shares import FIRST_TOUCH, PAGE_FAULT
from overhead_lens.stats.distributions import binomial_upper_tail, holm
from overhead_lens.stats.overdispersion import overdispersion_by_size
from overhead_lens.stats.values import Floats, Interval

_TWO_SIDED_95 = 1.96

# Fewer stacks on both sides together cannot be significant after the correction for many frames.
_LEAST_STACKS = 10


@dataclass(frozen=True, slots=True)
class FrameShift:
    """The difference of one frame's own time per call, new less base; ``clear`` if it is significant among all frames."""

    ns: float
    error_ns: float
    p_value: float
    clear: bool = False

    def interval(self) -> Interval:
        """95 % interval of this frame alone."""
        half_ns = _TWO_SIDED_95 * self.error_ns
        return self.ns - half_ns, self.ns + half_ns

    @property
    def verdict(self) -> str:
        """``slower`` or ``faster`` if significant, else ``inconclusive``."""
        if not self.clear:
            return "inconclusive"
        return "slower" if self.ns > 0 else "faster"


FrameShifts = Mapping[tuple[str, str], FrameShift]


def frame_shifts(base: Budget, new: Budget, walls_ns: tuple[int, int], level: float) -> FrameShifts:
    """Every frame's shift by category and name; empty unless several processes of both sides were sampled.

    ``level`` is the probability that no frame is clear if none changed.
    """
    keys = sorted({*base.process_stacks, *new.process_stacks})
    sides = [_matrix(budget, keys) for budget in (base, new)]
    if any(side.shape[1] < 2 for side in sides) or not all(walls_ns):
        return {}
    per_ns = [float(side.sum()) / wall_ns for side, wall_ns in zip(sides, walls_ns, strict=True)]
    counts = [side.sum(axis=1) for side in sides]
    further = sum(_by_faults(keys, own, budget.fault_error) for budget, own in zip((base, new), counts, strict=True))
    dispersions = overdispersion_by_size(sides) + further / np.maximum(counts[0] + counts[1], 1.0)
    shifts = {
        key: _shift((float(old), float(recent)), (per_ns[0], per_ns[1]), float(dispersion))
        for key, old, recent, dispersion in zip(keys, *counts, dispersions, strict=True)
        if old + recent >= _LEAST_STACKS
    }
    adjusted = holm([shift.p_value for shift in shifts.values()])
    return {
        key: replace(shift, clear=p_value <= 1 - level)
        for (key, shift), p_value in zip(shifts.items(), adjusted, strict=True)
    }


def net_shifts_ns(shifts: FrameShifts) -> dict[str, float]:
    """Sums of the clear frames by category, where the sum differs from 0 itself.

    A function that was renamed or split in two changes frames and not their category.
    """
    clear: dict[str, list[FrameShift]] = {}
    for (category, _), shift in shifts.items():
        if shift.clear:
            clear.setdefault(category, []).append(shift)
    sums = {
        category: (math.fsum(frame.ns for frame in frames), math.hypot(*sorted(frame.error_ns for frame in frames)))
        for category, frames in clear.items()
    }
    return {category: ns for category, (ns, error_ns) in sums.items() if abs(ns) > _TWO_SIDED_95 * error_ns}


def _matrix(budget: Budget, keys: Sequence[tuple[str, str]]) -> Floats:
    """Stacks by frame and process, shape ``(frames, processes)``."""
    none = np.zeros(len(next(iter(budget.process_stacks.values()), ())))
    return np.array([budget.process_stacks.get(key, none) for key in keys]).reshape(len(keys), len(none))


def _by_faults(keys: Sequence[tuple[str, str]], counts: Floats, error: float) -> Floats:
    """Variance of the frames' stacks by the ``error`` of page faults' share, which is taken out of all kernels in proportion."""
    of_kernel = counts * [category == "kernel" for category, _ in keys]
    of_faults = np.array([key == (PAGE_FAULT.category, FIRST_TOUCH) for key in keys])
    moved = of_faults + of_kernel / max(float(of_kernel.sum()), 1.0)
    variance: Floats = (error * counts.sum() * moved) ** 2
    return variance


def _shift(counts: tuple[float, float], per_ns: tuple[float, float], dispersion: float) -> FrameShift:
    """One frame's shift, from its number of stacks and the stacks per ns on either side."""
    base_ns, new_ns = (count / rate for count, rate in zip(counts, per_ns, strict=True))
    variance = sum(sorted(max(count, 1.0) / rate**2 for count, rate in zip(counts, per_ns, strict=True)))
    old, recent = (count / dispersion for count in counts)
    expected = per_ns[1] / (per_ns[0] + per_ns[1])
    tails = binomial_upper_tail(recent, old, expected), binomial_upper_tail(old, recent, 1 - expected)
    return FrameShift(new_ns - base_ns, math.sqrt(dispersion * variance), min(1.0, 2 * min(tails)))
