"""Ctrl-C at a bad moment."""

from __future__ import annotations

import importlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from overhead_lens import __main__ as program
from overhead_lens.errors import EndedEarly, Interrupted
from overhead_lens.terminal.interrupt import until_interrupted
from overhead_lens.terminal.refine import ending_early

# As a C extension does whose initialization clears any error, and as Python does where it frees an import's locks.
SWALLOWS = """
import signal, time

try:
    signal.raise_signal(signal.SIGINT)
    time.sleep(0.2)
except BaseException:
    pass
loaded = True
"""


@contextmanager
def _as_the_program_starts() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    hook = sys.unraisablehook
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        program._listen_for_the_end()
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture
def swallowing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "swallowing.py").write_text(SWALLOWS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "swallowing", raising=False)
    return "swallowing"


class Freed:
    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_that_comes_while_an_object_is_freed_is_not_lost(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    with _as_the_program_starts():
        freed = Freed(number)
        del freed
        with pytest.raises(Interrupted):
            time.sleep(60)
    assert capsys.readouterr().err == ""


def _import(name: str, expected: type[BaseException]) -> None:
    module = importlib.import_module(name)
    with pytest.raises(expected) as raised:
        time.sleep(60)
    assert raised.type is expected
    assert module.loaded


def test_an_import_swallows_no_signal(swallowing: str) -> None:
    with _as_the_program_starts():
        _import(swallowing, Interrupted)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_an_import_swallows_no_early_end(swallowing: str) -> None:
    with _as_the_program_starts(), ending_early() as pressed:
        _import(swallowing, EndedEarly)
        assert pressed.is_set()
        with pytest.raises(Interrupted) as raised:
            signal.raise_signal(signal.SIGINT)
        assert raised.type is Interrupted
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_the_signal_is_answered_as_before_once_nothing_may_end_early() -> None:
    with _as_the_program_starts():
        before = signal.getsignal(signal.SIGINT)
        with ending_early():
            assert signal.getsignal(signal.SIGINT) is not before
        assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("waiting", [ending_early, until_interrupted])
def test_a_signal_that_is_ignored_from_the_start_stays_ignored(waiting: Callable[[], Any]) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with waiting() as pressed:
            signal.raise_signal(signal.SIGINT)
        assert not pressed.is_set()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_a_watch_without_an_exception() -> None:
    with _as_the_program_starts():
        before = signal.getsignal(signal.SIGINT)
        with until_interrupted() as pressed:
            signal.raise_signal(signal.SIGINT)
        assert pressed.is_set()
        assert signal.getsignal(signal.SIGINT) is before
