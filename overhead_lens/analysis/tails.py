"""Tails of Student's t and of the binomial distribution, without a library of their own."""

from __future__ import annotations

import math
from functools import lru_cache

_STEPS = 200
_CLOSE = 1e-15


def upper_tail(t: float, freedom: float) -> float:
    """``P(T > t)`` for Student's t with ``freedom`` degrees of freedom (Abramowitz and Stegun, 26.7.1)."""
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    half = _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return half if t >= 0 else 1.0 - half


@lru_cache(maxsize=4_096)
def quantile(upper: float, freedom: float) -> float:
    """The t that is exceeded with probability ``upper``, which is at most one half."""
    low, high = 0.0, 1.0
    while upper_tail(high, freedom) > upper:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if high - low <= _CLOSE * high:
            break
        low, high = (middle, high) if upper_tail(middle, freedom) > upper else (low, middle)
    return high


def binomial_upper_tail(successes: float, failures: float, probability: float) -> float:
    """``P(X >= successes)`` of ``successes + failures`` trials (Abramowitz and Stegun, 26.5.24).

    Counts need not be whole: those that come in clumps are divided by the size of a clump.
    """
    return 1.0 if successes <= 0 else _incomplete_beta(successes, failures + 1, probability)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function (26.5.8, by whichever of its two fractions converges fast)."""
    if x <= 0.0 or x >= 1.0:
        return min(max(x, 0.0), 1.0)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _fraction(a, b, x) / a
    return 1.0 - math.exp(log_front) * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    upper, lower = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1) or tiny)
    value = lower
    for m in range(1, _STEPS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            upper, lower = (1.0 + term / upper) or tiny, 1.0 / ((1.0 + term * lower) or tiny)
            value *= upper * lower
        if abs(upper * lower - 1.0) < _CLOSE:
            break
    return value
