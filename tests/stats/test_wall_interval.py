"""The interval of a wall time covers what it says, and only because it is widened."""

from __future__ import annotations

import math

import numpy as np
import pytest

from overhead_lens.stats.bootstrap import Estimate, interval_scale, median_over_processes

CAPTURES, BLOCKS = 1_500, 25
TRUTH_NS, BLOCK_SHARE = 10_000.0, 0.01

# What 95 % may come out as in so many captures, five standard errors below.
LEAST = 0.92


@pytest.mark.parametrize("share", [0.01, 0.2])
@pytest.mark.parametrize("processes", [2, 3, 4, 7])
def test_the_factor_makes_the_interval_cover(processes: int, share: float) -> None:
    random, factor = np.random.default_rng((20_261_123, processes)), interval_scale(processes)
    needed = np.array([factor_needed(drawn(random, processes, share), factor) for _ in range(CAPTURES)])
    assert factor > 1
    assert np.mean(needed <= factor) >= LEAST
    assert np.mean(needed <= 1) < LEAST


def drawn(random: np.random.Generator, processes: int, share: float) -> Estimate:
    """The estimate of a capture whose processes differ by ``share``, and the blocks of each by less."""
    levels = TRUTH_NS * np.exp(random.normal(0.0, share, processes))
    return median_over_processes([level * (1 + random.normal(0.0, BLOCK_SHARE, BLOCKS)) for level in levels])


def factor_needed(estimate: Estimate, factor: float) -> float:
    """The factor with which this interval, made with ``factor``, would just reach the truth."""
    low, high = estimate.interval()
    bound = high if estimate.value < TRUTH_NS else low
    width = abs(math.log(bound / estimate.value)) / factor
    return abs(math.log(TRUTH_NS / estimate.value)) / width if width else math.inf
