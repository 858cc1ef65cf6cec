"""Tests of names and categories, made once for each distinct text; frames of known columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from overhead_lens.stats.values import Bools, Ints

T = TypeVar("T")

Columns = Mapping[str, type[int] | type[str]]
"""Columns of a frame in order: int64, or names."""


def joined(frames: Sequence[pd.DataFrame], columns: Columns) -> pd.DataFrame:
    """Frames concatenated; an empty frame with the same columns for none."""
    empty = {name: np.zeros(0, dtype=np.int64 if kind is int else object) for name, kind in columns.items()}
    made: pd.DataFrame = pd.concat(frames, ignore_index=True)[list(columns)] if frames else pd.DataFrame(empty)
    return made


def passing(texts: Iterable[T], test: Callable[[T], object]) -> Bools:
    """Bool per text, or other value: whether it passes the test, such as a pattern's ``match``; one False for none."""
    return np.array([bool(test(text)) for text in texts] or [False])


def categorical(texts: Iterable[str], codes: Ints) -> Any:
    """Texts by their places, -1 for the last, as categories: pandas cannot join names that cannot be encoded."""
    numbers: dict[str, int] = {}
    number = np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int32)
    index: Any = pd.Index(list(numbers), dtype=object)
    return pd.Categorical.from_codes(number[codes], categories=index, validate=False)


def where(column: pd.Categorical, test: Callable[[str], object]) -> Bools:
    """Bool per row of a categorical column: whether its text passes."""
    passes: Bools = passing(column.categories.tolist(), test)[column.codes]
    return passes
