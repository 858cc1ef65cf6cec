"""What a program can tell ``overhead-lens run``: where a step ends, and named regions.

Outside ``run`` both do nothing.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import CodeType, FrameType
from typing import Any, Protocol, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

_ENTERING = frozenset({"__enter__", "__aenter__", "enter_context", "enter_async_context"})
_GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


class Watcher(Protocol):
    """The interface that ``overhead-lens run`` installs here."""

    def step(self) -> None:
        """Note the end of a step."""

    def enter(self, name: str, code: CodeType, line: int, callers: tuple[tuple[CodeType, int], ...] = ()) -> None:
        """Note that the calling thread enters a region at that line, 0 for a whole function; perhaps for ``callers``."""

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


def region(name: str) -> Region:
    """A named part of the program, which ``overhead-lens run`` gives a budget of its own.

    A context manager, or a decorator of a function. Regions nest, and each thread has its own.

    Example:
        >>> import overhead_lens as ol
        >>> with ol.region("decode"):
        ...     pass
    """
    return _UNWATCHED if watcher is None else _Watched(watcher, name)


class Region:
    """Context manager and decorator; without ``run`` it does nothing."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, function: _F, /) -> _F:
        """Make every call of a function a region; without ``run``, or of an asynchronous generator, the function itself."""
        return function


_UNWATCHED = Region()


class _Watched(Region):
    """A region that is reported to the watcher."""

    __slots__ = ("_name", "_watcher")

    def __init__(self, watcher: Watcher, name: str) -> None:
        self._watcher, self._name = watcher, name

    def __enter__(self) -> None:
        frame = sys._getframe(1)
        self._watcher.enter(self._name, frame.f_code, frame.f_lineno, tuple(_callers(frame)))

    def __exit__(self, *error: object) -> None:
        self._watcher.leave(self._name)

    def __call__(self, function: _F, /) -> _F:
        watcher, name = self._watcher, self._name

        @contextmanager
        def within() -> Iterator[None]:
            watcher.enter(name, function.__code__, 0)
            try:
                yield
            finally:
                watcher.leave(name)

        def inside(*args: Any, **kwargs: Any) -> Any:
            watcher.enter(name, function.__code__, 0)
            try:
                return function(*args, **kwargs)
            finally:
                watcher.leave(name)

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with within():
                return await function(*args, **kwargs)

        def generated(*args: Any, **kwargs: Any) -> Any:
            with within():
                return (yield from function(*args, **kwargs))

        if inspect.isasyncgenfunction(function):
            return function
        wrapper = awaited if inspect.iscoroutinefunction(function) else inside
        return wraps(function)(generated if inspect.isgeneratorfunction(function) else wrapper)  # type: ignore[return-value]


def _callers(frame: FrameType) -> Iterator[tuple[CodeType, int]]:
    """The frames for which this one may enter a region, innermost first: those of a ``with`` whose context manager it is.

    The region stays open when an ``__enter__`` has returned, or the generator of ``contextlib.contextmanager`` has yielded.
    """
    while (back := frame.f_back) is not None:
        is_generator = frame.f_code.co_flags & _GENERATOR and back.f_code.co_name in _ENTERING
        if frame.f_code.co_name not in _ENTERING and not is_generator:
            return
        yield back.f_code, back.f_lineno
        frame = back
