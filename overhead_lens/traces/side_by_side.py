"""Calls on several threads at once: arrays and machine code are computed without the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

# With fewer events in a trace, threads wait for each other longer than they compute.
_EVENTS_FOR_THREADS = 10_000


def side_by_side(function: Callable[[T], R], values: Iterable[T], *, events: int) -> list[R]:
    """The results for all values, in their order; on this thread for a trace of few events."""
    with _executor(os.cpu_count(), events) as pool:
        return list(pool.map(function, values))


@contextmanager
def beside(*, events: int) -> Iterator[Executor]:
    """A second thread that makes submitted calls in order; an error in the block cancels calls that have not begun."""
    pool = _executor(1, events)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class _ThisThread(Executor):
    """Makes each call when it is submitted."""

    def submit(self, function: Callable[..., R], /, *arguments: Any, **options: Any) -> Future[R]:
        future: Future[R] = Future()
        try:
            future.set_result(function(*arguments, **options))
        except Exception as error:
            future.set_exception(error)
        return future


def _executor(threads: int | None, events: int) -> Executor:
    return ThreadPoolExecutor(threads) if events >= _EVENTS_FOR_THREADS else _ThisThread()
