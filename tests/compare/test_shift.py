"""The statistics by themselves, against tables and by exact values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.analysis.tails import quantile, upper_tail
from overhead_lens.compare.shift import Shift, holm, paired_shift, unpaired_shift


@pytest.mark.parametrize(
    ("upper", "freedom", "value"),
    [
        (0.025, 1, 12.7062),
        (0.025, 2, 4.3027),
        (0.025, 4, 2.7764),
        (0.05, 7, 1.8946),
        (0.005, 10, 3.1693),
        (0.025, 30, 2.0423),
        (0.0005, 3, 12.9240),
        (0.025, 1e6, 1.95997),
    ],
)
def test_student_t_as_in_the_tables(upper: float, freedom: float, value: float) -> None:
    assert quantile(upper, freedom) == pytest.approx(value, abs=6e-5)


@given(upper=st.floats(1e-6, 0.5, exclude_max=True), freedom=st.floats(1, 500))
def test_tail_and_quantile_are_inverse(upper: float, freedom: float) -> None:
    t = quantile(upper, freedom)
    assert upper_tail(t, freedom) == pytest.approx(upper, rel=1e-6)
    assert upper_tail(-t, freedom) == pytest.approx(1 - upper, rel=1e-6)


def test_tail_at_the_ends() -> None:
    assert (upper_tail(0.0, 3), upper_tail(math.inf, 3), upper_tail(-math.inf, 3)) == (0.5, 0.0, 1.0)


def test_a_trimmed_mean_by_hand() -> None:
    # Two of ten are cut at either end: 2 2 3 3 4 4 remain; Winsorized 2 2 2 2 3 3 4 4 4 4 with a sum of squares of 8.
    found = paired_shift(np.array([3.0, 4.0, 100.0, 1.0, 2.0, 90.0, -7.0, 4.0, 3.0, 2.0]))
    assert (found.ns, found.freedom, found.count) == (3.0, 5.0, 10)
    assert found.error_ns == pytest.approx(math.sqrt(8 / (6 * 5)))


def test_few_values_are_not_trimmed() -> None:
    found = paired_shift(np.array([1.0, 2.0, 3.0, 6.0]))
    assert (found.ns, found.freedom) == (3.0, 3.0)
    assert found.error_ns == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2)


def test_of_nine_none_is_cut() -> None:
    assert paired_shift(np.array([0.0] * 8 + [9.0])).ns == 1.0
    assert paired_shift(np.array([0.0] * 9 + [9.0])).ns == 0.0


def test_two_sides_with_the_degrees_of_freedom_of_welch() -> None:
    found = unpaired_shift(np.array([1.0, 2.0, 3.0]), np.array([11.0, 13.0]))
    assert (found.ns, found.count) == (10.0, 2)
    assert found.error_ns == pytest.approx(math.sqrt(1 / 3 + 1))
    assert found.freedom == pytest.approx((1 / 3 + 1) ** 2 / ((1 / 3) ** 2 / 2 + 1))
    further = unpaired_shift(np.array([1.0]), np.array([4.0]), 2.0)
    assert (further.ns, further.error_ns, further.freedom) == (3.0, 2.0, 1.0)


def test_p_values() -> None:
    assert Shift(2.228, 1.0, 10, 11).p_value() == pytest.approx(0.05, abs=1e-4)
    assert (Shift(0.0, 0.0, 1, 3).p_value(), Shift(1.0, 0.0, 1, 3).p_value()) == (1.0, 0.0)


def test_equivalence_takes_the_90_percent_interval() -> None:
    found = Shift(1.0, 1.0, 10, 11)
    assert found.interval(0.9) == pytest.approx((1 - 1.8125, 1 + 1.8125), abs=1e-4)
    assert found.is_within(2.8126)
    assert not found.is_within(2.8124)


@pytest.mark.parametrize(
    ("p_values", "rejected"),
    [
        ([], []),
        ([0.05], [True]),
        ([0.051], [False]),
        ([0.03, 0.02], [True, True]),
        ([0.03, 0.026], [False, False]),
        # 0.01 <= 0.05 / 4; 0.016 <= 0.05 / 3; 0.026 > 0.05 / 2, and so is whatever comes after it.
        ([0.026, 0.01, 0.016, 0.04], [False, True, True, False]),
        ([0.06, 0.001], [False, True]),
    ],
)
def test_holm(p_values: list[float], rejected: list[bool]) -> None:
    assert holm(p_values) == rejected


def test_how_many_more_are_needed() -> None:
    # Half the interval is 2.228 ns: an estimate of half that needs half the interval, so four times the processes.
    assert Shift(1.115, 1.0, 10, 11).more_needed(0.5) == 33
    # Half the 90 % interval is 1.8125 ns, and twice the margin.
    assert Shift(0.0, 1.0, 10, 11).more_needed(0.90625) == 33
    assert Shift(0.0, 1.0, 10, 11).more_needed(0.0) is None
    assert Shift(5.0, 1.0, 10, 11).more_needed(1.0) == 0


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
