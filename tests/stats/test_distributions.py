"""Distributions against printed tables and sums of their terms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.stats.distributions import binomial_upper_tail, t_p_value, t_quantile


@pytest.mark.parametrize(
    ("upper", "degrees_of_freedom", "value"),
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
def test_student_t_as_in_the_tables(upper: float, degrees_of_freedom: float, value: float) -> None:
    assert t_quantile(upper, degrees_of_freedom) == pytest.approx(value, abs=6e-5)


@given(upper=st.floats(1e-6, 0.5, exclude_max=True), degrees_of_freedom=st.floats(1, 500))
def test_tail_and_quantile_are_inverse(upper: float, degrees_of_freedom: float) -> None:
    t = t_quantile(upper, degrees_of_freedom)
    assert t_p_value(t, 1.0, degrees_of_freedom) == pytest.approx(2 * upper, rel=1e-6)
    assert t_p_value(-2 * t, 2.0, degrees_of_freedom) == pytest.approx(2 * upper, rel=1e-6)


def test_p_values_at_the_ends() -> None:
    assert (t_p_value(0.0, 1.0, 3), t_p_value(math.inf, 1.0, 3), t_p_value(-math.inf, 1.0, 3)) == (1.0, 0.0, 0.0)
    assert (t_p_value(0.0, 0.0, 3), t_p_value(1.0, 0.0, 3)) == (1.0, 0.0)


@given(successes=st.integers(0, 30), failures=st.integers(0, 30), probability=st.floats(0.01, 0.99))
def test_the_binomial_tail_is_the_sum_of_its_terms(successes: int, failures: int, probability: float) -> None:
    trials = successes + failures
    terms = (
        math.comb(trials, k) * probability**k * (1 - probability) ** (trials - k) for k in range(successes, trials + 1)
    )
    assert binomial_upper_tail(successes, failures, probability) == pytest.approx(math.fsum(terms), rel=1e-9)
