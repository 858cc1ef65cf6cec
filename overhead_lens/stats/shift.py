"""A difference with its uncertainty, from one value per process.

Blocks of one process share its addresses and its moment, so they are one observation. Values of processes are averaged by a
trimmed mean, because other programs disturb some of them on a shared machine. Its error is Yuen's (Biometrika 61, 1974): the
Winsorized deviation over the remaining count, with Student's t for the interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from overhead_lens.stats.distributions import t_p_value, t_quantile
from overhead_lens.stats.values import Floats, Interval

LEVEL = 0.95

_TRIMMED_SHARE = 0.2
# Fewer values are not trimmed, to keep their degrees of freedom.
_LEAST_TRIMMED = 10
_MOST_MORE = 10_000
# Degrees of freedom of an error that is known.
_MANY = 1e6


@dataclass(frozen=True, slots=True)
class Shift:
    """A difference, new less base.

    Attributes:
        ns: Estimate, per call.
        degrees_of_freedom: At least 1.
        count: Processes of each side.
        fixed_ns: The part of the error that more processes do not shrink.
    """

    ns: float
    error_ns: float
    degrees_of_freedom: float
    count: int
    fixed_ns: float = 0.0

    def interval(self, level: float = LEVEL) -> Interval:
        """Two-sided interval."""
        half_ns = t_quantile((1 - level) / 2, self.degrees_of_freedom) * self.error_ns if self.error_ns else 0.0
        return self.ns - half_ns, self.ns + half_ns

    def p_value(self) -> float:
        """Two-sided p-value of no difference."""
        return t_p_value(self.ns, self.error_ns, self.degrees_of_freedom)

    def is_within(self, margin_ns: float) -> bool:
        """Equivalence by two one-sided tests of 5 %: the 90 % interval inside the margin."""
        low, high = self.interval(2 * LEVEL - 1)
        return -margin_ns <= low and high <= margin_ns

    def more_needed(self, margin_ns: float) -> int | None:
        """Further processes a side until this estimate is significant or inside the margin.

        The error but for ``fixed_ns`` shrinks with the root of the count. None for more than ten thousand processes.
        """
        size = abs(self.ns)
        factors = [self._times_as_many(size, LEVEL)] if self.error_ns else []
        if size < margin_ns and self.error_ns:
            factors.append(self._times_as_many(margin_ns - size, 2 * LEVEL - 1))
        best = min(factors, default=1.0)
        if best <= 1.0:
            return 0
        if best * self.count >= _MOST_MORE:
            return None
        return math.ceil(best * self.count) - self.count

    def _times_as_many(self, half_ns: float, level: float) -> float:
        """How many times as many processes make the interval's half ``half_ns`` wide; infinite if no number does."""
        error_ns = half_ns / t_quantile((1 - level) / 2, self.degrees_of_freedom)
        shrunk = error_ns**2 - self.fixed_ns**2
        return (self.error_ns**2 - self.fixed_ns**2) / shrunk if shrunk > 0 else math.inf


def paired_shift(differences: Floats) -> Shift:
    """The shift from one difference per round, at least two."""
    ns, error_ns, degrees_of_freedom = _trimmed(differences)
    return Shift(ns, error_ns, degrees_of_freedom, len(differences))


def shift_of_interval(difference: float, interval: Interval) -> Shift:
    """The shift of a difference that has a 95 % interval, whose side towards 0 gives the error."""
    low, high = interval
    half = difference - low if difference > 0 else high - difference
    return Shift(difference, half / t_quantile((1 - LEVEL) / 2, _MANY), _MANY, 1)


def unpaired_shift(base: Floats, new: Floats, further_error_ns: float = 0.0, fixed_ns: float = 0.0) -> Shift:
    """The shift from one or more processes of both sides (Welch's degrees of freedom).

    Args:
        base, new: ns per call, by process.
        further_error_ns: Error beyond the spread of the processes; the only error of single processes.
        fixed_ns: The part of that which more processes do not shrink.
    """
    old, recent = _trimmed(base), _trimmed(new)
    variances = (old[1] ** 2, recent[1] ** 2)
    total = sum(variances)
    degrees_of_freedom = float(min(old[2], recent[2]))
    if total > 0:
        # Sorted, so that swapped sides have the same sum to the last bit.
        degrees_of_freedom = total**2 / sum(
            sorted(v**2 / df for v, df in zip(variances, (old[2], recent[2]), strict=True))
        )
    count = min(len(base), len(new))
    error_ns = math.sqrt(total + further_error_ns**2)
    return Shift(recent[0] - old[0], error_ns, max(1.0, degrees_of_freedom), count, fixed_ns)


def level(values: Floats) -> float:
    """The trimmed mean of several processes."""
    return _trimmed(values)[0]


def _trimmed(values: Floats) -> tuple[float, float, float]:
    """Trimmed mean, its standard error and degrees of freedom."""
    count = len(values)
    if count == 1:
        return float(values[0]), 0.0, 1.0
    cut = int(_TRIMMED_SHARE * count) if count >= _LEAST_TRIMMED else 0
    ordered = np.sort(values)
    inner = ordered[cut : count - cut]
    inner_count = len(inner)
    winsorized = np.clip(ordered, inner[0], inner[-1])
    error = float(np.std(winsorized, ddof=1)) * math.sqrt((count - 1) / (inner_count * (inner_count - 1)))
    # Summed from both ends, so that the mean of negated values is the negated mean to the last bit.
    return float((inner + inner[::-1]).sum()) / 2 / inner_count, error, float(inner_count - 1)
