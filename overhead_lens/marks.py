"""What a program can tell ``overhead-lens run``: where a step ends, and named regions.

Outside ``run`` both do nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import CodeType, TracebackType
from typing import Any, Protocol, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


class Watcher(Protocol):
    """What ``overhead-lens run`` puts here."""

    def step(self) -> None:
        """Note the end of a step."""

    def enter(self, name: str, code: CodeType, line: int) -> None:
        """Note that the calling thread enters a region at that line, 0 for a whole function."""

    def leave(self, name: str) -> None:
        """Note that it leaves the region."""


watcher: Watcher | None = None


def step() -> None:
    """Say that a step of the program ends here; for ``overhead-lens run``.

    Example:
        >>> import overhead_lens as ol
        >>> for batch in range(3):
        ...     ol.step()
    """
    if watcher is not None:
        watcher.step()


class region:  # noqa: N801  (used like a function)
    """A named part of the program, which ``overhead-lens run`` gives a budget of its own.

    A context manager, or a decorator of a function. Regions nest, and each thread has its own.

    Example:
        >>> import overhead_lens as ol
        >>> with ol.region("decode"):
        ...     pass
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        if watcher is not None:
            frame = sys._getframe(1)
            watcher.enter(self.name, frame.f_code, frame.f_lineno)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if watcher is not None:
            watcher.leave(self.name)

    def __call__(self, function: _F) -> _F:
        """Make every call of a function a region; the function itself where nothing watches."""
        watching, name = watcher, self.name
        if watching is None:
            return function

        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            watching.enter(name, function.__code__, 0)
            try:
                return function(*args, **kwargs)
            finally:
                watching.leave(name)

        return inside  # type: ignore[return-value]
