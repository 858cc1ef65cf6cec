"""Functions that a fresh process can import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def total(values: Sequence[int], *, factor: int = 1) -> int:
    """The sum of values, times a factor."""
    return factor * sum(values)


def larger(values: Sequence[int], *, factor: int = 1) -> int:
    """The same, a hundred times over."""
    for _ in range(100):
        found = total(values, factor=factor)
    return found


def one_by_one(x: Any, *, times: int) -> Any:
    """A sum of ones, added one after the other."""
    for _ in range(times):
        x = x + 1
    return x


class Calling:
    def __call__(self) -> None: ...

    def method(self) -> None: ...


calling = Calling()
renamed = lambda: None  # noqa: E731
