from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.stats.line_fit import Line, crossing, fit_line, fit_lines

times = st.floats(1.0, 1e10)
sizes = st.sets(st.integers(1, 10**8), min_size=2, max_size=8)


@given(st.integers(0, 10**6), st.integers(1, 1_000), sizes)
def test_points_of_a_line_give_the_line(overhead_ns: int, element_ns: int, at: set[int]) -> None:
    line = fit_line([(n, overhead_ns + n * element_ns) for n in at])
    assert line.worst_share < 1e-9
    # What is a share of 1e-9 of every time cannot be told from them.
    least_ns = min(overhead_ns + n * element_ns for n in at)
    assert line.overhead_ns == pytest.approx(overhead_ns, rel=1e-6, abs=1e-6 * least_ns)


def test_known_overhead_and_rate_come_back() -> None:
    line = fit_line([(n, 170.0 + n * 0.825) for n in (100, 1_000, 10_000, 100_000)])
    assert (line.overhead_ns, line.element_ns) == (pytest.approx(170.0, rel=1e-12), pytest.approx(0.825, rel=1e-12))


def test_each_point_counts_by_its_relative_error() -> None:
    # By absolute errors the two large sizes alone would decide, and the overhead would be 2000 ns or so.
    line = fit_line([(1, 1_000.0), (2, 1_001.0), (10**6, 1_100_000.0), (2 * 10**6, 2_300_000.0)])
    assert line.overhead_ns == pytest.approx(999.5, abs=1.0)


def test_what_would_be_below_zero_is_zero() -> None:
    assert fit_line([(10, 5.0), (20, 20.0)]) == Line(0.0, pytest.approx(0.6), pytest.approx(0.4))
    assert fit_line([(10, 20.0), (20, 10.0)]) == Line(pytest.approx(12.0), 0.0, pytest.approx(0.4))


def test_many_lines_are_those_of_each() -> None:
    at = np.array([10.0, 100.0, 1000.0])
    rows = np.array([[5.0, 20.0, 30.0], [100.0, 101.0, 110.0]])
    overhead_ns, element_ns = fit_lines(at, rows)
    for row, overhead, element in zip(rows, overhead_ns, element_ns):
        line = fit_line(list(zip(at.astype(int).tolist(), row.tolist())))
        assert (line.overhead_ns, line.element_ns) == (overhead, element)


@given(times, times, st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_lines_take_the_same_time_where_they_cross(a: float, b: float, left_ns: float, right_ns: float) -> None:
    left, right = Line(a, left_ns, 0.0), Line(b, right_ns, 0.0)
    n = crossing(left, right)
    assert n == crossing(right, left)
    if n is None:
        assert (a - b) * (left_ns - right_ns) >= 0
    else:
        assert a + n * left_ns == pytest.approx(b + n * right_ns)


def test_crossings_are_exact() -> None:
    left, right = Line(1_000.0, 0.5, 0.0), Line(100.0, 2.0, 0.0)
    assert crossing(left, right) == crossing(right, left) == 600.0
    assert crossing(left, Line(1_100.0, 2.0, 0.0)) is None
    assert crossing(left, Line(100.0, 0.5, 0.0)) is None
    assert crossing(left, Line(100.0, math.nextafter(0.5, 1), 0.0)) > 1e18
