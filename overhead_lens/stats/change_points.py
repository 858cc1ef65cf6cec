"""Where a history changes: binary segmentation, each cut found by a permutation test, Holm over the series.

::

    ns   . '  .                    stretch   |----------------|
          .  '  ' .                best cut          |            largest statistic of all cuts, three captures on either side
                     '  . .        permuted  the same captures in 4,999 random orders, the best cut of each
                    .  '  '        p         share of orders whose best cut is at least as large

The statistic of a cut is the difference of the weighted mean ranks of both sides, standardized. Ranks, and three captures on
either side, make one outlier no change. A capture weighs by the inverse of the variance that its own interval states plus the
scatter of the stretch; both permute with it. Where nothing changed every order of the captures is as likely as any other, so
the test holds for any distribution. Each part of a cut stretch is tested at half the level of the whole: over all tests, all
series together (Holm), a history is cut somewhere within a stretch without a change in at most ``ALPHA`` of cases. A machine
that slowly becomes slower is a change by this definition.

Whether there is a change is what the ranks say; where it is, the captures do: at the cut that leaves the least distance from
the medians of both sides.

How much each series moved at a cut is the difference of the medians of the stretches beside it; the error of a median is that
of the captures' scatter about their stretch's median (median absolute deviation), or of their own intervals if that is larger.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from overhead_lens.stats.distributions import t_quantile, t_upper_tail
from overhead_lens.stats.holm import holm
from overhead_lens.stats.values import Floats, Interval

ALPHA = 0.05
PERMUTATIONS = 4_999
LEAST_CAPTURES = 3
_FIRST = 200

_SEED = 20_240_229

# Of a normal distribution: standard deviation per median absolute deviation, and error of a median per error of a mean.
_PER_MAD = 1.4826
_PER_MEAN = 1.2533
# A median absolute deviation knows as much as a standard deviation of so many fewer captures (Rousseeuw and Croux, 1993).
_EFFICIENCY = 0.37
# Of the likelihood, so that the place of a small step in normal noise is held in 95 % of drawn histories.
_HELD = 0.98


@dataclass(frozen=True, slots=True)
class Cut:
    """A change point.

    Attributes:
        position: Of the first capture after it.
        first, last: It lies between these positions, both included, in 95 % of histories.
        series: Position of the series that showed it.
        p_value: Of that series' test, after Holm.
    """

    position: int
    first: int
    last: int
    series: int
    p_value: float


@dataclass(frozen=True, slots=True)
class LevelShift:
    """How a series moved at a cut, in the series' unit; ``moved`` after Holm over all series."""

    delta: float
    ci95: Interval
    moved: bool


@dataclass(frozen=True, slots=True)
class Level:
    """Median of a series over a stretch, with its interval."""

    value: float
    ci95: Interval


def find_cuts(values: Floats, errors: Floats) -> list[Cut]:
    """The change points of several series of the same captures, by position.

    Args:
        values: float64, shape ``(series, captures)``, captures by time.
        errors: Standard errors of them, the same shape.
    """
    found: list[Cut] = []
    stretches = [(0, values.shape[1], ALPHA)]
    while stretches:
        start, end, level = stretches.pop()
        cut = _best_cut(values[:, start:end], errors[:, start:end], level)
        if cut is not None:
            found.append(Cut(start + cut.position, start + cut.first, start + cut.last, cut.series, cut.p_value))
            stretches += [(start, start + cut.position, level / 2), (start + cut.position, end, level / 2)]
    return sorted(found, key=lambda cut: cut.position)


def shifts_at(values: Floats, errors: Floats, positions: Sequence[int]) -> list[list[LevelShift]]:
    """For each cut, by ``positions``, how each series moved."""
    bounds = [0, *positions, values.shape[1]]
    spread = _spread(values, errors, bounds)
    degrees_of_freedom = _degrees_of_freedom(bounds)
    return [_shifts(values, spread, bounds[at : at + 3], degrees_of_freedom) for at in range(len(positions))]


def levels_between(values: Floats, errors: Floats, positions: Sequence[int]) -> list[list[Level]]:
    """For each series, its level in each stretch between the cuts."""
    bounds = [0, *positions, values.shape[1]]
    spread = _spread(values, errors, bounds)
    times = t_quantile(0.025, _degrees_of_freedom(bounds))
    found = []
    for series, scatter in zip(values, spread, strict=True):
        levels = []
        for start, end in itertools.pairwise(bounds):
            middle, half = (
                float(np.median(series[start:end])),
                float(times * _PER_MEAN * scatter / (end - start) ** 0.5),
            )
            levels.append(Level(middle, (middle - half, middle + half)))
        found.append(levels)
    return found


def _best_cut(values: Floats, errors: Floats, level: float) -> Cut | None:
    """The cut of the series that shows one most clearly; None where none does at this level."""
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
    found = np.empty(0)
    # Where a few orders show that nothing is there, the others need not be looked at.
    for orders in (_orders(len(series))[:_FIRST], _orders(len(series))[_FIRST:]):
        found = np.concatenate([found, _largest(_ranks(series), _weights(series, errors), orders)])
        p_value = float(np.mean(found >= found[0] * (1 - 1e-9)))
        if p_value > 2 * ALPHA:
            break
    return p_value, float(found[0])


def _largest(ranks: Floats, weights: Floats, orders: npt.NDArray[np.intp]) -> Floats:
    """The largest statistic of all cuts for each order, float64, shape ``(orders,)``."""
    weighted, weight = np.cumsum((ranks * weights)[orders], axis=1), np.cumsum(weights[orders], axis=1)
    cuts = slice(LEAST_CAPTURES - 1, orders.shape[1] - LEAST_CAPTURES)
    left, total = weight[:, cuts], weight[:, -1:]
    right = total - left
    sums, whole = weighted[:, cuts], weighted[:, -1:]
    # Standardized by what it can be at most, so that series are comparable.
    statistics = np.abs(sums / left - (whole - sums) / right) * np.sqrt(left * right) / total
    largest: Floats = statistics.max(axis=1)
    return largest


def _place(series: Floats, errors: Floats) -> tuple[int, int, int]:
    """The most likely cut, and the first and the last of those that hold it in 95 % of histories.

    Distances from the medians of both sides are taken to follow Laplace's distribution, in standard deviations of each capture.
    """
    scale = _weights(series, errors) ** 0.5
    cuts = range(LEAST_CAPTURES, len(series) - LEAST_CAPTURES + 1)
    left = [scale[:cut] @ np.abs(series[:cut] - np.median(series[:cut])) for cut in cuts]
    right = [scale[cut:] @ np.abs(series[cut:] - np.median(series[cut:])) for cut in cuts]
    distance = np.add(left, right)
    best = int(distance.argmin())
    typical = max(float(distance[best]) / len(series), 1e-12 * float(distance.max()))
    likelihood = np.exp((distance[best] - distance) / typical)
    order = np.argsort(-likelihood, kind="stable")
    held = np.cumsum(likelihood[order]) / likelihood.sum()
    likely = order[: 1 + int(np.searchsorted(held, _HELD))]
    return cuts[best], cuts[int(likely.min())], cuts[int(likely.max())]


def _ranks(series: Floats) -> Floats:
    """Ranks from 0 to 1, equal values with their middle one."""
    _, position, counts = np.unique(series, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) / 2
    ranks: Floats = middle[position] / (len(series) - 1)
    return ranks


def _weights(series: Floats, errors: Floats) -> Floats:
    variance = errors**2 + (_PER_MAD * np.median(np.abs(series - np.median(series)))) ** 2
    positive = variance[variance > 0]
    least = positive.min() if len(positive) else 1.0
    weights: Floats = least / np.maximum(variance, least)
    return weights


@lru_cache(maxsize=8)
def _orders(count: int) -> npt.NDArray[np.intp]:
    """The order as it is, then random ones; shape ``(1 + PERMUTATIONS, count)``."""
    draws = np.random.default_rng(_SEED).random((PERMUTATIONS, count))
    orders: npt.NDArray[np.intp] = np.concatenate([np.arange(count)[None, :], draws.argsort(axis=1)])
    return orders


def _spread(values: Floats, errors: Floats, bounds: Sequence[int]) -> Floats:
    """Standard deviation of one capture about its stretch, per series."""
    residuals = np.concatenate(
        [
            values[:, start:end] - np.median(values[:, start:end], axis=1, keepdims=True)
            for start, end in itertools.pairwise(bounds)
        ],
        axis=1,
    )
    count, levels = values.shape[1], len(bounds) - 1
    scatter = _PER_MAD * np.median(np.abs(residuals), axis=1) * (count / max(count - levels, 1)) ** 0.5
    spread: Floats = np.maximum(scatter, np.median(errors, axis=1))
    return spread


def _degrees_of_freedom(bounds: Sequence[int]) -> int:
    """Of the spread."""
    return max(1, round(_EFFICIENCY * (bounds[-1] - len(bounds) + 1)))


def _shifts(values: Floats, spread: Floats, bounds: Sequence[int], degrees_of_freedom: int) -> list[LevelShift]:
    start, cut, end = bounds
    deltas = np.median(values[:, cut:end], axis=1) - np.median(values[:, start:cut], axis=1)
    errors = _PER_MEAN * spread * (1 / (cut - start) + 1 / (end - cut)) ** 0.5
    halves = t_quantile(0.025, degrees_of_freedom) * errors
    adjusted = holm([_p_value(*each, degrees_of_freedom) for each in zip(deltas, errors, strict=True)])
    return [
        LevelShift(float(delta), (float(delta - half), float(delta + half)), p_value <= ALPHA)
        for delta, half, p_value in zip(deltas, halves, adjusted, strict=True)
    ]


def _p_value(delta: float, error: float, degrees_of_freedom: int) -> float:
    if error == 0:
        return 0.0 if delta else 1.0
    return 2 * t_upper_tail(abs(delta) / error, degrees_of_freedom)
