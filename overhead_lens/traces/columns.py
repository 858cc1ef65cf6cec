"""Tests of names and categories, made once for each distinct text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import numpy as np

from overhead_lens.readers.kineto.columns import Texts
from overhead_lens.stats.values import Bools, Ints

T = TypeVar("T")

Columns = Mapping[str, type[int] | type[str]]
"""Columns of a frame in order: int64, or names."""


def passing(texts: Iterable[T], test: Callable[[T], object]) -> Bools:
    """Bool per text, or other value: whether it passes the test, such as a pattern's ``match``; one False for none."""
    return np.array([bool(test(text)) for text in texts] or [False])


def chosen(texts: Iterable[str], codes: Ints) -> Texts:
    """Texts by their places, -1 for the last."""
    numbers: dict[str, int] = {}
    number = np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int32)
    return Texts(number[codes], np.array(list(numbers), dtype=object))


def where(column: Texts, test: Callable[[str], object]) -> Bools:
    """Bool per row of a column of texts: whether its text passes."""
    passes: Bools = passing(column.categories.tolist(), test)[column.codes]
    return passes
