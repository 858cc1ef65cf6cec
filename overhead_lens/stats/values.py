"""Types of intervals and arrays; values at places of which some are none.

Times are int64. Places of events and numbers of names may be int32 where there are many.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Interval = tuple[float, float]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.signedinteger[Any]]
Bools = npt.NDArray[np.bool_]

_SPARSE = 8
"""Values up to so many times their number are numbered by a table, others are sorted first, which takes ten times as long."""


def taken(values: Ints, places: Ints) -> Ints:
    """The values at some places; -1 for the place -1."""
    if not len(values):
        return np.full(len(places), -1, dtype=np.int64)
    selected = values[places]
    selected[places < 0] = -1
    return selected


def are_first(places: Ints) -> Bools:
    """Whether each place, which may be -1, is not among those before it."""
    own = np.arange(len(places))
    first = np.empty(int(places.max(initial=0)) + 2, dtype=np.int64)
    first[places[::-1]] = own[::-1]
    is_first: Bools = first[places] == own
    return is_first


def numbered(values: Ints) -> tuple[Ints, Ints]:
    """The number of each value among the distinct ones, in order of their first places, and these places."""
    if len(values) and not -1 <= values.min() <= values.max() <= _SPARSE * len(values):
        values = np.unique(values, return_inverse=True)[1]
    first = np.flatnonzero(are_first(values))
    number = np.empty(int(values.max(initial=0)) + 2, dtype=np.int64)
    number[values[first]] = np.arange(len(first))
    return number[values], first


def numbered_rows(*columns: Ints) -> tuple[Ints, Ints]:
    """The same of the rows of several columns."""
    number, first = numbered(columns[0])
    for column in columns[1:]:
        other, firsts = numbered(column)
        number, first = numbered(number * len(firsts) + other)
    return number, first


def first_places(keys: Ints, targets: Ints) -> Ints:
    """Where each target first stands in the keys; -1 for one that is not there."""
    if not len(keys):
        return np.full(len(targets), -1, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    ascending = keys[order]
    at = np.minimum(np.searchsorted(ascending, targets), len(keys) - 1)
    return np.where(ascending[at] == targets, order[at], -1)
