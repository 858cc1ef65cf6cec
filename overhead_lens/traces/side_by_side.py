"""Calls on all cores at once: arrays and machine code are computed without the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(function: Callable[[T], R], values: Iterable[T]) -> list[R]:
    """The results for all values, in their order."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, values))
