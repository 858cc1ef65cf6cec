"""Signals that end a command by an exception, none of which is lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

# The file name of Python's import code, and how long a signal waits before it is sent again.
_IMPORTS = "<frozen importlib._bootstrap>"
_AGAIN_S = 0.05


def listen(number: int, interrupt: Callable[[int], None]) -> Any:
    """Answer a signal by a function, which may raise; returns the handler, which ``signal.getsignal`` knows.

    What a shell ignores for a job in the background stays ignored, by run programs too.

    While the main thread imports, the signal waits: a C extension that is being loaded may clear an exception, and Python
    prints and drops one that is raised where the import's own locks are freed.
    """

    def handle(_number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):
            again = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
        else:
            interrupt(number)

    if signal.getsignal(number) is signal.SIG_IGN:
        return signal.SIG_IGN
    signal.signal(number, handle)
    return handle


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != _IMPORTS:
        frame = frame.f_back
    return frame is not None
