"""``ol.step`` and ``ol.region`` in a program: what they tell a watcher, and that they do nothing without one."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from types import CodeType

import pytest

import overhead_lens as ol
from overhead_lens import marks


class Noting:
    """A watcher that writes down what it is told."""

    def __init__(self) -> None:
        self.noted: list[tuple[object, ...]] = []
        self.callers: list[tuple[str, ...]] = []

    def step(self) -> None:
        self.noted.append(("step",))

    def enter(self, name: str, code: CodeType, line: int, callers: tuple[tuple[CodeType, int], ...] = ()) -> None:
        self.callers.append(tuple(caller.co_name for caller, _ in callers))
        self.noted.append(("enter", name, code.co_name, line))

    def leave(self, name: str) -> None:
        self.noted.append(("leave", name))


@pytest.fixture
def watcher(monkeypatch: pytest.MonkeyPatch) -> Noting:
    noting = Noting()
    monkeypatch.setattr(marks, "watcher", noting)
    return noting


def test_a_block_and_a_step(watcher: Noting) -> None:
    line = sys._getframe().f_lineno + 1
    with ol.region("decode"):
        ol.step()
    name = "test_a_block_and_a_step"
    assert watcher.noted == [("enter", "decode", name, line), ("step",), ("leave", "decode")]


def test_callers_for_which_a_context_manager_enters_a_region(watcher: Noting) -> None:
    @contextmanager
    def generator() -> Iterator[None]:
        with ol.region("decode"):
            yield

    @asynccontextmanager
    async def awaited() -> AsyncIterator[None]:
        with generator():
            yield

    class Helper:
        def __enter__(self) -> None:
            self.stack = ExitStack()
            self.stack.enter_context(ol.region("decode"))

        def __exit__(self, *_: object) -> None:
            self.stack.close()

    async def body() -> None:
        async with awaited():
            pass

    with generator():
        pass
    with Helper():
        pass
    asyncio.run(body())
    name = "test_callers_for_which_a_context_manager_enters_a_region"
    assert watcher.callers == [
        ("__enter__", name),
        ("__enter__", name),
        ("__enter__", "awaited", "__aenter__", "body"),
    ]


def test_a_function_that_raises(watcher: Noting) -> None:
    @ol.region("decode")
    def decode(token: int, *, width: int) -> float:
        """Decode."""
        return token / width

    assert decode(6, width=2) == 3
    with pytest.raises(ZeroDivisionError):
        decode(6, width=0)
    assert watcher.noted == 2 * [("enter", "decode", "decode", 0), ("leave", "decode")]
    assert (decode.__name__, decode.__doc__) == ("decode", "Decode.")


def test_functions_stay_what_they_are(watcher: Noting) -> None:
    @ol.region("handle")
    async def handle() -> int:
        ol.step()
        return 3

    @ol.region("tokens")
    def tokens() -> Iterator[int]:
        yield 1
        ol.step()

    async def stream() -> AsyncIterator[int]:
        yield 1

    assert inspect.iscoroutinefunction(handle)
    assert inspect.isgeneratorfunction(tokens)
    assert ol.region("stream")(stream) is stream
    assert (asyncio.run(handle()), list(tokens())) == (3, [1])
    assert watcher.noted == [
        *(("enter", "handle", "handle", 0), ("step",), ("leave", "handle")),
        *(("enter", "tokens", "tokens", 0), ("step",), ("leave", "tokens")),
    ]


def test_an_exception_passes_through_a_block(watcher: Noting) -> None:
    with pytest.raises(ValueError, match="no"), ol.region("decode"):
        raise ValueError("no")
    assert watcher.noted[-1] == ("leave", "decode")


def test_nothing_without_a_watcher() -> None:
    def decode() -> None:
        pass

    assert marks.watcher is None
    assert ol.region("decode")(decode) is decode
    with ol.region("decode"):
        ol.step()
