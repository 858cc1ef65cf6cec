"""Types of intervals and arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Interval = tuple[float, float]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
