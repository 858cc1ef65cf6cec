"""A difference with its uncertainty, from values of whole processes: the unit that is drawn anew in every comparison.

Blocks of one process share its addresses and its moment, so a thousand of them are still one observation. A process gives
one value, and differences of processes are averaged by a trimmed mean: on a shared machine one round in ten meets a
neighbour who takes the core, and a plain mean would pay for it with its whole interval. Its error is that of Yuen (Biometrika
61, 1974): the Winsorized deviation over what is left of the count, with Student's t for the interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from overhead_lens.stats.distributions import t_quantile, t_upper_tail
from overhead_lens.stats.values import Floats, Interval

LEVEL = 0.95

# Of fewer values none is cut: what is left would have too few degrees of freedom.
_TRIMMED_SHARE = 0.2
_LEAST_TRIMMED = 10
_MOST_MORE = 10_000


@dataclass(frozen=True, slots=True)
class Shift:
    """A difference, new less base.

    Attributes:
        ns: Estimate, per call.
        error_ns: Its standard error.
        degrees_of_freedom: Of the error, at least 1.
        count: Processes of each side that it comes from.
    """

    ns: float
    error_ns: float
    degrees_of_freedom: float
    count: int

    def interval(self, level: float = LEVEL) -> Interval:
        """Two-sided interval."""
        half_ns = self._half(level)
        return self.ns - half_ns, self.ns + half_ns

    def p_value(self) -> float:
        """Two-sided, of no difference."""
        if self.error_ns == 0:
            return 0.0 if self.ns else 1.0
        return 2 * t_upper_tail(abs(self.ns) / self.error_ns, self.degrees_of_freedom)

    def is_within(self, margin_ns: float) -> bool:
        """Equivalence at 5 %: two one-sided tests, that is the 90 % interval lies inside the margin."""
        low, high = self.interval(2 * LEVEL - 1)
        return -margin_ns <= low and high <= margin_ns

    def more_needed(self, margin_ns: float) -> int | None:
        """Processes a side, beyond those there are, until this estimate would be clear of 0 or inside the margin.

        The error shrinks with the root of the count. None where it would take more than ten thousand.
        """
        size = abs(self.ns)
        wanted = [size / self._half(LEVEL)] if self.error_ns else []
        if size < margin_ns and self.error_ns:
            wanted.append((margin_ns - size) / self._half(2 * LEVEL - 1))
        best = max(wanted, default=1.0)
        if best >= 1.0:
            return 0
        if best <= math.sqrt(self.count / _MOST_MORE):
            return None
        return math.ceil(self.count / best**2) - self.count

    def _half(self, level: float) -> float:
        return t_quantile((1 - level) / 2, self.degrees_of_freedom) * self.error_ns if self.error_ns else 0.0


def at(shift: Shift, ns: float) -> Shift:
    """The same uncertainty about another estimate."""
    return replace(shift, ns=ns)


def paired_shift(differences: Floats) -> Shift:
    """From one difference per round, at least two."""
    ns, error_ns, degrees_of_freedom = _trimmed(differences)
    return Shift(ns, error_ns, degrees_of_freedom, len(differences))


def unpaired_shift(base: Floats, new: Floats, further_error_ns: float = 0.0) -> Shift:
    """From one value per process of each side, at least one (Welch's degrees of freedom).

    Args:
        base: ns per call, one per process.
        new: The same of the other side.
        further_error_ns: What the spread of the processes does not show: all there is to go by for single processes.
    """
    old, recent = _trimmed(base), _trimmed(new)
    variances = (old[1] ** 2, recent[1] ** 2)
    total = sum(variances)
    degrees_of_freedom = float(min(old[2], recent[2]))
    if total > 0:
        # Whichever order the sides come in, the same sum: swapping them changes the sign of the estimate and nothing else.
        degrees_of_freedom = total**2 / sum(
            sorted(v**2 / df for v, df in zip(variances, (old[2], recent[2]), strict=True))
        )
    count = min(len(base), len(new))
    return Shift(recent[0] - old[0], math.sqrt(total + further_error_ns**2), max(1.0, degrees_of_freedom), count)


def level(values: Floats) -> float:
    """The usual value of several processes: their trimmed mean."""
    return _trimmed(values)[0]


def _trimmed(values: Floats) -> tuple[float, float, float]:
    """Trimmed mean, its standard error and degrees of freedom."""
    count = len(values)
    if count == 1:
        return float(values[0]), 0.0, 1.0
    cut = int(_TRIMMED_SHARE * count) if count >= _LEAST_TRIMMED else 0
    ordered = np.sort(values)
    left = count - 2 * cut
    winsorized = np.clip(ordered, ordered[cut], ordered[count - 1 - cut])
    error = float(np.std(winsorized, ddof=1)) * math.sqrt((count - 1) / (left * (left - 1)))
    # Summed from both ends, so that the mean of negated values is the negated mean to the last bit.
    kept = ordered[cut : count - cut]
    return float((kept + kept[::-1]).sum()) / 2 / left, error, float(left - 1)
