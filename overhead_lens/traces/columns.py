"""Tests of names and categories, made once for each distinct text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
import pandas as pd

from overhead_lens.stats.values import Bools

T = TypeVar("T")


def passing(texts: Iterable[T], test: Callable[[T], bool]) -> Bools:
    """Bool per text, or other value: whether it passes; one False for none."""
    return np.array([test(text) for text in texts] or [False])


def where(column: pd.Series, test: Callable[[str], bool]) -> Bools:
    """Bool per row of a categorical column: whether its text passes."""
    passes: Bools = passing(column.cat.categories, test)[column.cat.codes.to_numpy()]
    return passes
