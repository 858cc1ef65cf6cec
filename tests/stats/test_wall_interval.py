"""The interval of a wall time covers what it says, and only because it is widened."""

from __future__ import annotations

import numpy as np
import pytest

from overhead_lens.stats.bootstrap import REPLICATES, Estimate, interval_scale
from scripts.validation.wall_interval import FAR_APART_SHARE, PROCESS_SHARE, TRUTH_NS, needed_factor, simulate

CAPTURES = 1_500

# What 95 % may come out as in so many captures, five standard errors below.
LEAST = 0.92


@pytest.mark.parametrize("share", [PROCESS_SHARE, FAR_APART_SHARE])
@pytest.mark.parametrize("processes", [2, 3, 4, 7])
def test_the_factor_makes_the_interval_cover(processes: int, share: float) -> None:
    found = simulate(processes, CAPTURES, share)
    assert found.factor == interval_scale(processes) > 1
    assert found.stretched >= LEAST
    assert found.bare < LEAST


def test_the_factor_needed_reaches_the_truth() -> None:
    # The truth, 10,000, is four times 2,500, the square of the upper bound of 5,000, which a factor of 5 has made.
    low, high = np.full(REPLICATES // 2, 2_500.0), np.full(REPLICATES // 2, 5_000.0)
    assert TRUTH_NS == 10_000
    assert needed_factor(Estimate(2_500.0, np.concatenate([low, high])), 5.0) == pytest.approx(10)
