"""Types of intervals and arrays; values at places of which some are none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Interval = tuple[float, float]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def taken(values: Ints, places: Ints) -> Ints:
    """The values at some places; -1 for the place -1."""
    if not len(values):
        return np.full(len(places), -1, dtype=np.int64)
    found = values[places]
    found[places < 0] = -1
    return found
