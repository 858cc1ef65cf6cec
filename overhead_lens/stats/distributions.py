"""Student's t, the binomial distribution, and Holm's correction for several hypotheses (Scand. J. of Statistics 6, 1979)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import betainc, stdtr, stdtrit

from overhead_lens.stats.values import Floats


def t_quantile(upper: float, degrees_of_freedom: float) -> float:
    """Student's t that is exceeded with probability ``upper``."""
    return float(-stdtrit(degrees_of_freedom, upper))


def t_quantiles(degrees_of_freedom: float, count: int) -> Floats:
    """So many quantiles of Student's t of equal probability, ascending."""
    return np.asarray(stdtrit(degrees_of_freedom, (np.arange(count) + 0.5) / count), np.float64)


def t_p_value(estimate: float, error: float, degrees_of_freedom: float) -> float:
    """Two-sided p-value of an estimate with a standard error against 0."""
    if error == 0:
        return 0.0 if estimate else 1.0
    return 2 * float(stdtr(degrees_of_freedom, -abs(estimate) / error))


def binomial_upper_tail(successes: float, failures: float, probability: float) -> float:
    """``P(X >= successes)`` of ``successes + failures`` trials; counts need not be whole."""
    return 1.0 if successes <= 0 else float(betainc(successes, failures + 1, probability))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm-adjusted p-values, in the order given."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted
