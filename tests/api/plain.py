"""Functions that a fresh process can import."""

from __future__ import annotations

from collections.abc import Sequence


def total(values: Sequence[int], *, factor: int = 1) -> int:
    """The sum of values, times a factor."""
    return factor * sum(values)


def larger(values: Sequence[int], *, factor: int = 1) -> int:
    """The same, a hundred times over."""
    for _ in range(100):
        found = total(values, factor=factor)
    return found


class Calling:
    def __call__(self) -> None: ...

    def method(self) -> None: ...


calling = Calling()
renamed = lambda: None  # noqa: E731
