"""What the user presses while a command runs: Ctrl-C, and q."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from overhead_lens.terminal.interrupt import listen

_LOOK_S = 0.1
_MOST_BYTES = 1024


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
