"""Values at places."""

from __future__ import annotations

import numpy as np
import pytest

from overhead_lens.stats.values import are_first, numbered, numbered_rows


def test_the_first_of_each_place() -> None:
    assert are_first(np.array([3, -1, 3, 0, -1, 4])).tolist() == [True, True, False, True, False, True]
    assert are_first(np.array([-1, -1])).tolist() == [True, False]
    assert are_first(np.array([], dtype=np.int64)).tolist() == []


@pytest.mark.parametrize("far", [7, -1, -2, 2**62])
def test_distinct_values_are_numbered_by_their_first_places(far: int) -> None:
    number, first = numbered(np.array([3, far, 3, 0, far]))
    assert (number.tolist(), first.tolist()) == ([0, 1, 0, 2, 1], [0, 1, 3])
    assert [len(each) for each in numbered(np.array([], dtype=np.int64))] == [0, 0]


def test_distinct_rows_are_numbered_by_their_first_places() -> None:
    number, first = numbered_rows(np.array([3, 3, 0, 3, 0]), np.array([-1, 2**40, 2**40, -1, 2**40], dtype=np.int64))
    assert (number.tolist(), first.tolist()) == ([0, 1, 2, 0, 2], [0, 1, 2])
