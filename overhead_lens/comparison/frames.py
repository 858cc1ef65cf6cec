"""Which frames moved: a count of stacks each, so that a change of one function shows long before that of its category does.

A category of a third of the call is known to the sampling error of a third of all stacks. A function that was added and takes 1 %
has the error of its own few stacks, and none on the other side::

    3,000 stacks a side        without      with a function of 1 %      z
    category                   1,000        1,030                       0.7
    the function's frame       0            30                          5.5

Of a frame's stacks on both sides, those of the new one are binomial if nothing changed: as many as its share of what both sides
observed. Counts are first divided by how much more they scatter than independent ones (``counts.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead_lens.budget.make import Budget
from overhead_lens.stats.distributions import binomial_upper_tail
from overhead_lens.stats.holm import holm
from overhead_lens.stats.overdispersion import overdispersion
from overhead_lens.stats.values import Floats, Interval

_TWO_SIDED_95 = 1.96

# Fewer stacks on both sides together cannot tell anything after the correction for looking at many frames.
_LEAST_STACKS = 10


@dataclass(frozen=True, slots=True)
class FrameShift:
    """How one frame's own time moved, new less base.

    Attributes:
        ns: Estimate, per call.
        error_ns: Its standard error, from counts.
        p_value: Two-sided, of no difference.
        clear: Whether it moved, corrected for looking at all frames.
    """

    ns: float
    error_ns: float
    p_value: float
    clear: bool = False

    def interval(self) -> Interval:
        """95 %, of this frame alone."""
        half_ns = _TWO_SIDED_95 * self.error_ns
        return self.ns - half_ns, self.ns + half_ns

    @property
    def verdict(self) -> str:
        """``slower`` or ``faster`` if it moved clearly, else ``inconclusive``."""
        if not self.clear:
            return "inconclusive"
        return "slower" if self.ns > 0 else "faster"


FrameShifts = Mapping[tuple[str, str], FrameShift]


def frame_shifts(base: Budget, new: Budget, walls_ns: tuple[int, int], level: float) -> FrameShifts:
    """Every frame's shift by category and name; none unless several processes of both sides were sampled.

    Args:
        base: One budget.
        new: The other.
        walls_ns: The wall times that the two are compared at.
        level: Probability of calling no frame moved, if none did.
    """
    keys = sorted({*base.process_stacks, *new.process_stacks})
    sides = [_matrix(budget, keys) for budget in (base, new)]
    if any(side.shape[1] < 2 for side in sides) or not all(walls_ns):
        return {}
    per_ns = [float(side.sum()) / wall_ns for side, wall_ns in zip(sides, walls_ns, strict=True)]
    sizes = overdispersion(sides)
    counts = [side.sum(axis=1) for side in sides]
    shifts = {
        key: _shift((float(old), float(recent)), (per_ns[0], per_ns[1]), float(clump))
        for key, old, recent, clump in zip(keys, *counts, sizes, strict=True)
        if old + recent >= _LEAST_STACKS
    }
    adjusted = holm([shift.p_value for shift in shifts.values()])
    return {
        key: replace(shift, clear=p_value <= 1 - level)
        for (key, shift), p_value in zip(shifts.items(), adjusted, strict=True)
    }


def net_shifts_ns(shifts: FrameShifts) -> dict[str, float]:
    """By category, the sum of its frames that moved clearly, where that is clear of zero itself.

    A function that was renamed, or split in two, moves frames and not their category.
    """
    moved: dict[str, list[FrameShift]] = {}
    for (category, _), shift in shifts.items():
        if shift.clear:
            moved.setdefault(category, []).append(shift)
    sums = {
        category: (math.fsum(each.ns for each in found), math.hypot(*sorted(each.error_ns for each in found)))
        for category, found in moved.items()
    }
    return {category: ns for category, (ns, error_ns) in sums.items() if abs(ns) > _TWO_SIDED_95 * error_ns}


def _matrix(budget: Budget, keys: Sequence[tuple[str, str]]) -> Floats:
    """Stacks by frame and process, shape ``(frames, processes)``."""
    processes = len(next(iter(budget.process_stacks.values()), ()))
    counts = np.zeros((len(keys), processes))
    for row, key in zip(counts, keys, strict=True):
        row[:] = budget.process_stacks.get(key, 0.0)
    return counts


def _shift(counts: tuple[float, float], per_ns: tuple[float, float], clump: float) -> FrameShift:
    """One frame's shift from its stacks of both sides and from how many stacks stand for one ns of a call on each."""
    base_ns, new_ns = (count / rate for count, rate in zip(counts, per_ns, strict=True))
    variance = sum(sorted(max(count, 1.0) / rate**2 for count, rate in zip(counts, per_ns, strict=True)))
    old, recent = (count / clump for count in counts)
    expected = per_ns[1] / (per_ns[0] + per_ns[1])
    tails = binomial_upper_tail(recent, old, expected), binomial_upper_tail(old, recent, 1 - expected)
    return FrameShift(new_ns - base_ns, math.sqrt(clump * variance), min(1.0, 2 * min(tails)))
