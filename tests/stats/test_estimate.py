"""Estimates of times: positive, with the range of few processes, with none of a single value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overhead_lens.errors import InvariantError
from overhead_lens.stats.blocks import mean_of_consecutive, mean_over_blocks
from overhead_lens.stats.bootstrap import exactly, interval_scale, median_over_processes, paired_sides
from overhead_lens.stats.estimate import Measured
from overhead_lens.stats.values import Floats


def processes(*levels: float) -> list[Floats]:
    return [np.full(5, level) for level in levels]


# ---------------------------------------------------------------- processes
@pytest.mark.parametrize("levels", [(21e6, 24e6), (20e6, 21e6, 25e6)])
def test_few_processes_give_their_range(levels: tuple[float, ...]) -> None:
    found = median_over_processes(processes(*levels))
    assert found.reported() == (min(levels), max(levels))
    assert found.method == f"range of {len(levels)} processes"
    # What is made of it has an interval of 95 %, and none below zero.
    low, high = found.interval()
    assert 0 < low < min(levels) < max(levels) < high


def test_the_interval_is_made_of_ratios() -> None:
    levels = (80.0, 90.0, 100.0, 110.0, 125.0)
    found = median_over_processes(processes(*levels))
    assert found.method == "bootstrap over processes"
    assert found.reported() == found.interval()
    # Percentiles of a median of five are the outermost processes.
    scale = interval_scale(5)
    assert found.interval() == (pytest.approx(100 * 0.8**scale), pytest.approx(100 * 1.25**scale))


def test_however_far_processes_are_apart_a_time_stays_positive() -> None:
    # The least median of four is 1, of the lowest process alone.
    low, high = median_over_processes(processes(1.0, 100.0, 100.0, 10_000.0)).interval()
    factor = 100 ** interval_scale(4)
    assert (low, high) == (pytest.approx(100 / factor), pytest.approx(100 * factor))


def test_the_median_of_an_even_number_lies_between_two() -> None:
    found = median_over_processes(processes(1.0, 1.0, 4.0, 4.0))
    ratios = np.array([1.0, 2.5, 4.0]) / found.value
    assert (found.value, list(np.unique(found.replicates))) == (2.5, pytest.approx(2.5 * ratios ** interval_scale(4)))


def test_a_counter_that_is_mostly_zero_has_no_ratios() -> None:
    found = median_over_processes(processes(0.0, 0.0, 0.0, 4.0, 0.0), statistic="mean")
    assert found.value == 0.0
    assert found.interval() == (0.0, pytest.approx(4.0 * interval_scale(5)))


def test_one_process_has_its_blocks() -> None:
    found = median_over_processes([np.array([90.0, 100.0, 100.0, 100.0, 110.0])])
    assert (found.method, found.reported()) == ("bootstrap over blocks", (90.0, 110.0))


def test_a_difference_of_sides_may_be_negative() -> None:
    rows = [
        {"process": process, "rung": rung, "calls": 1, "wall_ns": ns}
        for process in range(5)
        for rung, ns in (("fast", 10 + process), ("slow", 11 - process))
    ]
    low, high = paired_sides(pd.DataFrame(rows)).estimate("slow", "fast").interval()
    assert low < 0 < high
    assert all(bound > 0 for bound in paired_sides(pd.DataFrame(rows)).estimate("slow").interval())


# ---------------------------------------------------------------- blocks
def test_blocks_of_consecutive_values_make_the_interval() -> None:
    # Twenty blocks of two, whose sums are 180 and 220 in turns: a mean of 100, an error of 10 * sqrt(20 / 19) / sqrt(20).
    values = np.array([85.0, 95.0, 105.0, 115.0] * 10)
    found = mean_of_consecutive(values, 20)
    factor = np.exp(2.093 * 10 * (20 / 19) ** 0.5 / 20**0.5 / 100)
    assert (found.value, found.method) == (100.0, "t over blocks")
    assert found.interval() == (pytest.approx(100 / factor, rel=1e-3), pytest.approx(100 * factor, rel=1e-3))


def test_a_short_block_counts_by_its_length() -> None:
    # Each block has the mean 10, so that nothing is uncertain.
    found = mean_over_blocks(np.array([40.0, 40.0, 10.0]), np.array([4.0, 4.0, 1.0]))
    assert (found.value, found.interval()) == (10.0, (10.0, 10.0))


def test_a_single_block_has_no_interval() -> None:
    found = mean_over_blocks(np.array([70.0]), np.array([1.0]))
    assert (found.value, found.method, found.reported()) == (70.0, "none", (70.0, 70.0))


def test_values_of_nothing_but_zero() -> None:
    assert mean_of_consecutive(np.zeros(6), 20).interval() == (0.0, 0.0)


def test_two_values_far_apart_stay_finite() -> None:
    replicates = mean_of_consecutive(np.array([0.0, 1e9]), 20).replicates
    assert (replicates > 0).all()
    assert np.isfinite(replicates).all()


@pytest.mark.parametrize("count", [3, 5, 20])
def test_the_interval_of_skewed_values_covers(count: int) -> None:
    random = np.random.default_rng((7, count))
    intervals = [mean_of_consecutive(random.exponential(1_000.0, count), 20).interval() for _ in range(1_000)]
    assert 0.91 <= sum(low <= 1_000 <= high for low, high in intervals) / 1_000 <= 0.97


# ---------------------------------------------------------------- what a report shows
@pytest.mark.parametrize(
    ("interval", "is_range", "has_level"),
    [
        ("bootstrap over processes", False, True),
        ("t over blocks", False, True),
        ("range of 3 processes", True, False),
        ("none", False, False),
    ],
)
def test_which_intervals_are_of_95_percent(interval: str, *, is_range: bool, has_level: bool) -> None:
    found = Measured(10.0, (9.0, 12.0), interval=interval)
    assert (found.is_range, found.has_level, found.scaled(2.0)) == (is_range, has_level, (18.0, 24.0))


def test_a_reversed_interval_is_refused() -> None:
    with pytest.raises(InvariantError, match="reversed"):
        Measured(10.0, (12.0, 9.0))


def test_a_value_of_its_own() -> None:
    assert exactly(5.0).interval() == (5.0, 5.0)


def test_a_side_of_few_processes_has_their_range() -> None:
    rows = pd.DataFrame({"process": [0, 1, 2], "rung": "kernel", "calls": 1, "wall_ns": [15_000, 15_700, 15_000_000]})
    assert paired_sides(rows).estimate("kernel").reported() == (15_000, 15_000_000)
