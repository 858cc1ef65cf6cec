"""Tests of names and categories, made once for each distinct text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from overhead_lens.stats.values import Bools


def passing(texts: Iterable[str], test: Callable[[str], bool]) -> Bools:
    """Bool per text: whether it passes; one False for no texts."""
    return np.array([test(text) for text in texts] or [False])


def where(column: pd.Series, test: Callable[[str], bool]) -> Bools:
    """Bool per row of a categorical column: whether its text passes."""
    passes: Bools = passing(column.cat.categories, test)[column.cat.codes.to_numpy()]
    return passes
