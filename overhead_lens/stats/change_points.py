"""Finds a history's changes by binary segmentation, permutation tests, and Holm over the series.

::

    ns   . '  .                    stretch   |----------------|
          .  '  ' .                best cut          |            largest statistic of all cuts, three captures on either side
                     '  . .        permuted  the same captures in 4,999 random orders, the best cut of each
                    .  '  '        p         share of orders whose best cut is at least as large

The statistic of a cut is the standardized difference of the weighted mean ranks of both sides. Ranks and three captures on
either side keep one outlier from being a change. A capture's weight is the inverse of its variance (its own interval's plus the
scatter of the segment), and permutes with it. Without a change all orders are equally likely, so the test holds for any
distribution. Both parts of a cut segment are tested at half its level: a segment without a change is cut in at most ``ALPHA`` of
histories, over all tests and series (Holm). A machine that slowly becomes slower is a change by this definition.

Ranks decide whether there is a change. It lies at the cut with the least distance of the captures from the medians of both sides.

The shift of a series at a cut is the difference of the medians of the segments beside it. The error of a median comes from the
captures' scatter about their segment's median (median absolute deviation), or from their own intervals if those are larger.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from overhead_lens.stats.distributions import holm, t_p_value, t_quantile
from overhead_lens.stats.values import Floats, Interval

ALPHA = 0.05
PERMUTATIONS = 4_999
LEAST_CAPTURES = 3
_FIRST = 200

_SEED = 20_240_229

# Of a normal distribution: standard deviation per median absolute deviation; error of a median per error of a mean, for three
# values or more; the number of standard deviations that 5 % of values exceed.
_PER_MAD = 1.4826
_PER_MEAN = 1.2533
_QUANTILE = 1.96
# Efficiency of a median absolute deviation beside a standard deviation (Rousseeuw and Croux, 1993).
_EFFICIENCY = 0.37
# Share of the likelihood that contains the place of a small step in normal noise in 95 % of drawn histories.
_HELD = 0.98


@dataclass(frozen=True, slots=True)
class Cut:
    """A change point.

    Attributes:
        position: Position of the first capture after it.
        first, last: Range of that position (both included) with 95 % confidence.
        series: Position of the series that shows it.
        p_value: That series' p-value after Holm.
    """

    position: int
    first: int
    last: int
    series: int
    p_value: float


@dataclass(frozen=True, slots=True)
class LevelShift:
    """The shift of a series at a cut, in the series' unit; ``moved`` if significant after Holm over all series."""

    delta: float
    ci95: Interval
    moved: bool


@dataclass(frozen=True, slots=True)
class Level:
    """Median of a series over a segment, with its interval."""

    value: float
    ci95: Interval


def find_cuts(values: Floats, errors: Floats) -> list[Cut]:
    """The change points of several series of the same captures, by position.

    Args:
        values: float64, shape ``(series, captures)``, captures by time.
        errors: Their standard errors, the same shape.
    """
    cuts: list[Cut] = []
    stretches = [(0, values.shape[1], ALPHA)]
    while stretches:
        start, end, level = stretches.pop()
        cut = _best_cut(values[:, start:end], errors[:, start:end], level)
        if cut is not None:
            cuts.append(Cut(start + cut.position, start + cut.first, start + cut.last, cut.series, cut.p_value))
            stretches += [(start, start + cut.position, level / 2), (start + cut.position, end, level / 2)]
    return sorted(cuts, key=lambda cut: cut.position)


def shifts_at(values: Floats, errors: Floats, positions: Sequence[int]) -> list[list[LevelShift]]:
    """Shifts of all series, by cut."""
    bounds = [0, *positions, values.shape[1]]
    spread, degrees_of_freedom = _spread(values, errors, bounds)
    return [_shifts(values, spread, bounds[at : at + 3], degrees_of_freedom) for at in range(len(positions))]


def levels_between(values: Floats, errors: Floats, positions: Sequence[int]) -> list[list[Level]]:
    """Levels between the cuts, by series."""
    bounds = [0, *positions, values.shape[1]]
    spread, degrees_of_freedom = _spread(values, errors, bounds)
    quantile = t_quantile(0.025, degrees_of_freedom)
    by_series = []
    for series, scatter in zip(values, spread, strict=True):
        levels = []
        for start, end in itertools.pairwise(bounds):
            middle = float(np.median(series[start:end]))
            per_mean = _PER_MEAN if end - start > 2 else 1.0
            half = float(quantile * per_mean * scatter / (end - start) ** 0.5)
            levels.append(Level(middle, (middle - half, middle + half)))
        by_series.append(levels)
    return by_series


def _best_cut(values: Floats, errors: Floats, level: float) -> Cut | None:
    """The cut of the most significant series; None if none is significant at this level."""
    if values.shape[1] < 2 * LEAST_CAPTURES:
        return None
    tests = [_test(series, error) for series, error in zip(values, errors, strict=True)]
    corrected = holm([p_value for p_value, _ in tests])
    best = min(range(len(tests)), key=lambda at: (tests[at][0], -tests[at][1]))
    if corrected[best] > level:
        return None
    return Cut(*_place(values[best], errors[best]), best, corrected[best])


def _test(series: Floats, errors: Floats) -> tuple[float, float]:
    """p-value and largest statistic."""
    if np.ptp(series) == 0:
        return 1.0, 0.0
    statistics = np.empty(0)
    # The first few orders suffice where nothing changed.
    orders, ranks, weights = _orders(len(series)), _ranks(series), _weights(series, errors)
    for some in (orders[:, :_FIRST], orders[:, _FIRST:]):
        statistics = np.concatenate([statistics, _largest(ranks, weights, some)])
        p_value = float(np.mean(statistics >= statistics[0] * (1 - 1e-9)))
        if p_value > 2 * ALPHA:
            break
    return p_value, float(statistics[0])


def _largest(ranks: Floats, weights: Floats, orders: npt.NDArray[np.intp]) -> Floats:
    """The largest statistic of all cuts, float64, shape ``(orders,)``."""
    left, sums = weights.take(orders), (weights * (ranks - weights @ ranks / weights.sum())).take(orders)
    for columns in (left, sums):
        # A cumulative sum; numpy's own takes ten times as long.
        for before, row in itertools.pairwise(columns):
            np.add(before, row, out=row)
    cuts, right = slice(LEAST_CAPTURES - 1, len(orders) - LEAST_CAPTURES), left[-1] - left
    # The difference of the means of both sides, over its largest possible value: so series are comparable.
    squares: Floats = (sums[cuts] ** 2 / (left[cuts] * right[cuts])).max(axis=0)
    return np.sqrt(squares)


def _place(series: Floats, errors: Floats) -> tuple[int, int, int]:
    """The most likely cut, and the first and last of the 95 % range.

    Distances from the medians of both sides, in the captures' standard deviations, are taken to follow Laplace's distribution.
    """
    scale = _weights(series, errors) ** 0.5
    cuts = range(LEAST_CAPTURES, len(series) - LEAST_CAPTURES + 1)
    before, behind = _medians(series.tolist()), _medians(series[::-1].tolist())[::-1]
    left = [scale[:cut] @ np.abs(series[:cut] - before[cut - 1]) for cut in cuts]
    right = [scale[cut:] @ np.abs(series[cut:] - behind[cut]) for cut in cuts]
    distance = np.add(left, right)
    best = int(distance.argmin())
    typical = max(float(distance[best]) / len(series), 1e-12 * float(distance.max()))
    likelihood = np.exp((distance[best] - distance) / typical)
    order = np.argsort(-likelihood, kind="stable")
    cumulative = np.cumsum(likelihood[order]) / likelihood.sum()
    likely = order[: 1 + int(np.searchsorted(cumulative, _HELD))]
    return cuts[best], cuts[int(likely.min())], cuts[int(likely.max())]


def _medians(series: Sequence[float]) -> list[float]:
    """The median of the values up to and including each."""
    ordered: list[float] = []
    medians = []
    for value in series:
        bisect.insort(ordered, value)
        middle = len(ordered) // 2
        medians.append((ordered[middle] + ordered[~middle]) / 2)
    return medians


def _ranks(series: Floats) -> Floats:
    """Ranks from 0 to 1; equal values share their mean rank."""
    _, position, counts = np.unique(series, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) / 2
    return middle[position] / (len(series) - 1)


def _weights(series: Floats, errors: Floats) -> Floats:
    variance = errors**2 + (_PER_MAD * np.median(np.abs(series - np.median(series)))) ** 2
    positive = variance[variance > 0]
    least = positive.min() if len(positive) else 1.0
    weights: Floats = least / np.maximum(variance, least)
    return weights


@lru_cache(maxsize=8)
def _orders(count: int) -> npt.NDArray[np.intp]:
    """The given order, then random ones, as columns: shape ``(count, 1 + PERMUTATIONS)``."""
    draws = np.random.default_rng(_SEED).random((PERMUTATIONS, count))
    return np.concatenate([np.arange(count)[:, None], draws.argsort(axis=1).T], axis=1)


def _spread(values: Floats, errors: Floats, bounds: Sequence[int]) -> tuple[Floats, int]:
    """Standard deviation of one capture about its segment, per series, and its degrees of freedom."""
    stretches = [values[:, start:end] for start, end in itertools.pairwise(bounds)]
    residuals = np.concatenate([stretch - np.median(stretch, axis=1, keepdims=True) for stretch in stretches], axis=1)
    count, levels = values.shape[1], len(bounds) - 1
    degrees_of_freedom = max(1, round(_EFFICIENCY * (count - levels)))
    scatter = _PER_MAD * np.median(np.abs(residuals), axis=1) * (count / max(count - levels, 1)) ** 0.5
    # Student's t allows for the error of the scatter; the errors that captures state have none.
    known = np.median(errors, axis=1) * _QUANTILE / t_quantile(0.025, degrees_of_freedom)
    return np.maximum(scatter, known), degrees_of_freedom


def _shifts(values: Floats, spread: Floats, bounds: Sequence[int], degrees_of_freedom: int) -> list[LevelShift]:
    start, cut, end = bounds
    deltas = np.median(values[:, cut:end], axis=1) - np.median(values[:, start:cut], axis=1)
    errors = _PER_MEAN * spread * (1 / (cut - start) + 1 / (end - cut)) ** 0.5
    halves = t_quantile(0.025, degrees_of_freedom) * errors
    adjusted = holm([t_p_value(*shift, degrees_of_freedom) for shift in zip(deltas, errors, strict=True)])
    return [
        LevelShift(float(delta), (float(delta - half), float(delta + half)), p_value <= ALPHA)
        for delta, half, p_value in zip(deltas, halves, adjusted, strict=True)
    ]
