"""Signals that end a command by an exception, none of which is lost; Ctrl-C and q as what ends a watch."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from types import FrameType
from typing import Any

# The file name of Python's import code, and how long a signal waits before it is sent again.
_IMPORTS = "<frozen importlib._bootstrap>"
_AGAIN_S = 0.05
_LOOK_S, _MOST_BYTES = 0.1, 1024


def listen(number: int, interrupt: Callable[[int], None]) -> Any:
    """Answer a signal by a function, which may raise; returns the handler, which ``signal.getsignal`` knows.

    What a shell ignores for a job in the background stays ignored, by run programs too.

    While the main thread imports, the signal waits: a C extension that is being loaded may clear an exception, and Python
    prints and drops one that is raised where the import's own locks are freed.
    """

    def handle(_number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):
            send_again(number)
        else:
            interrupt(number)

    if signal.getsignal(number) is signal.SIG_IGN:
        return signal.SIG_IGN
    signal.signal(number, handle)
    return handle


def send_again(number: int) -> None:
    """Send a signal to this process in 50 ms."""
    again = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != _IMPORTS:
        frame = frame.f_back
    return frame is not None


@contextmanager
def until_interrupted() -> Iterator[Event]:
    """An event that Ctrl-C sets while the block runs, instead of ending the program."""
    pressed = Event()
    before = signal.getsignal(signal.SIGINT)
    listen(signal.SIGINT, lambda _number: pressed.set())
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def until_q(pressed: Event) -> Iterator[None]:
    """Set ``pressed`` when q is pressed while the block runs; on a terminal only."""
    import termios
    import tty

    number = sys.stdin.fileno()
    before, over = termios.tcgetattr(number), Event()

    def read() -> None:
        while not over.is_set():
            # Not from sys.stdin: it would read all that was typed, hand out one key, and keep the others where select sees none.
            if select.select([number], [], [], _LOOK_S)[0]:
                keys = os.read(number, _MOST_BYTES)
                if not keys or b"q" in keys.lower():
                    pressed.set()
                    return

    tty.setcbreak(number)
    reader = Thread(target=read, daemon=True)
    reader.start()
    try:
        yield
    finally:
        over.set()
        reader.join()
        termios.tcsetattr(number, termios.TCSADRAIN, before)
