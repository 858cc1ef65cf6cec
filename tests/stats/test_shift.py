"""Shifts by exact values, and their coverage on drawn ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.stats.shift import Shift, paired_shift, unpaired_shift


def test_a_trimmed_mean_by_hand() -> None:
    # Two of ten are cut at either end: 2 2 3 3 4 4 remain; Winsorized 2 2 2 2 3 3 4 4 4 4 with a sum of squares of 8.
    found = paired_shift(np.array([3.0, 4.0, 100.0, 1.0, 2.0, 90.0, -7.0, 4.0, 3.0, 2.0]))
    assert (found.ns, found.degrees_of_freedom, found.count) == (3.0, 5.0, 10)
    assert found.error_ns == pytest.approx(math.sqrt(8 / (6 * 5)))


def test_few_values_are_not_trimmed() -> None:
    found = paired_shift(np.array([1.0, 2.0, 3.0, 6.0]))
    assert (found.ns, found.degrees_of_freedom) == (3.0, 3.0)
    assert found.error_ns == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2)


def test_of_nine_none_is_cut() -> None:
    assert paired_shift(np.array([0.0] * 8 + [9.0])).ns == 1.0
    assert paired_shift(np.array([0.0] * 9 + [9.0])).ns == 0.0


def test_two_sides_with_the_degrees_of_freedom_of_welch() -> None:
    found = unpaired_shift(np.array([1.0, 2.0, 3.0]), np.array([11.0, 13.0]))
    assert (found.ns, found.count) == (10.0, 2)
    assert found.error_ns == pytest.approx(math.sqrt(1 / 3 + 1))
    assert found.degrees_of_freedom == pytest.approx((1 / 3 + 1) ** 2 / ((1 / 3) ** 2 / 2 + 1))
    further = unpaired_shift(np.array([1.0]), np.array([4.0]), 2.0)
    assert (further.ns, further.error_ns, further.degrees_of_freedom) == (3.0, 2.0, 1.0)


def test_p_values() -> None:
    assert Shift(2.228, 1.0, 10, 11).p_value() == pytest.approx(0.05, abs=1e-4)
    assert (Shift(0.0, 0.0, 1, 3).p_value(), Shift(1.0, 0.0, 1, 3).p_value()) == (1.0, 0.0)


def test_equivalence_takes_the_90_percent_interval() -> None:
    found = Shift(1.0, 1.0, 10, 11)
    assert found.interval(0.9) == pytest.approx((1 - 1.8125, 1 + 1.8125), abs=1e-4)
    assert found.is_within(2.8126)
    assert not found.is_within(2.8124)


def test_how_many_more_are_needed() -> None:
    # Half the interval is 2.228 ns: an estimate of half that needs half the interval, so four times the processes.
    assert Shift(1.115, 1.0, 10, 11).more_needed(0.5) == 33
    # Half the 90 % interval is 1.8125 ns, and twice the margin.
    assert Shift(0.0, 1.0, 10, 11).more_needed(0.90625) == 33
    assert Shift(0.0, 1.0, 10, 11).more_needed(0.0) is None
    assert Shift(5.0, 1.0, 10, 11).more_needed(1.0) == 0


def test_no_number_of_processes_shrinks_an_error_that_is_not_theirs() -> None:
    assert Shift(1.115, 1.0, 10, 11, fixed_ns=0.9).more_needed(0.5) is None
    # A quarter of the square is to be left, 0.04 of it fixed: (1 - 0.04) / (0.25 - 0.04) = 4.57 times as many, 50.3.
    assert Shift(1.1141, 1.0, 10, 11, fixed_ns=0.2).more_needed(0.5) == 40
    assert Shift(0.0, 1.0, 10, 11, fixed_ns=1.0).more_needed(2.0) == 0


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_negated_differences_negate_the_estimate(values: list[float]) -> None:
    array = np.array(values)
    found, negated = paired_shift(array), paired_shift(-array)
    assert found.ns == -negated.ns
    assert found.error_ns == pytest.approx(negated.error_ns)


def test_five_percent_of_intervals_miss_on_normal_data() -> None:
    random = np.random.default_rng(5)
    missed = 0
    for _ in range(2_000):
        low, high = paired_shift(random.normal(0.0, 1.0, 12)).interval()
        missed += not low <= 0 <= high
    assert 60 <= missed <= 140
