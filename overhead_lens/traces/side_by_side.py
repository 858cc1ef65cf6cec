"""Calls on several threads at once: arrays and machine code are computed without the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(function: Callable[[T], R], values: Iterable[T]) -> list[R]:
    """The results for all values, in their order."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, values))


@contextmanager
def beside() -> Iterator[Executor]:
    """A second thread that makes submitted calls in order; an error in the block cancels calls that have not begun."""
    pool = ThreadPoolExecutor(1)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
