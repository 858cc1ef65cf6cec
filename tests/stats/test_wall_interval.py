"""The interval of a wall time covers what it says, and only because it is widened."""

from __future__ import annotations

import pytest

from overhead_lens.stats.bootstrap import REPLICATES, Estimate, interval_scale
from scripts.validation.wall_interval import TRUTH_NS, needed_factor, simulate

CAPTURES = 1_500

# What 95 % may come out as in so many captures, five standard errors below.
LEAST = 0.92


@pytest.mark.parametrize("processes", [2, 3, 4, 7])
def test_the_factor_makes_the_interval_cover(processes: int) -> None:
    found = simulate(processes, CAPTURES)
    assert found.factor == interval_scale(processes) > 1
    assert found.stretched >= LEAST
    assert found.bare < LEAST


def test_the_factor_needed_reaches_the_truth() -> None:
    # From 9,900 to the truth at 10,000 is twice as far as to the upper bound of 9,950, which a factor of 5 has made.
    low, high = [9_900.0] * (REPLICATES // 2), [9_950.0] * (REPLICATES // 2)
    assert TRUTH_NS == 10_000
    assert needed_factor(Estimate(9_900.0, low + high), 5.0) == pytest.approx(10)
