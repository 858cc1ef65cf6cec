"""Puts the threads of a placed process back; run as a script, also when the program that placed them is killed.

``python guard.py`` reads lines, each the newest ``Placed`` as JSON or ``null``. When its input ends, it puts the threads back as
the last line says. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

_OTHER, _BATCH = 0, 3


class Placed(TypedDict):
    """The placement of a process's threads: cores and policies.

    Attributes:
        core: Of the sampled thread; threads and processes that it starts inherit it.
        others: Cores of the other threads.
        free: Cores that every thread could use before.
        batch: Whether the sampled thread may have been given ``SCHED_BATCH``, which is inherited as well.
    """

    pid: int
    core: int
    others: list[int]
    free: list[int]
    batch: bool


def put_back(placed: Placed) -> None:
    """Let all threads and child processes run where the threads could before; a thread that the program moved itself stays."""
    pids = [placed["pid"], *descendants(placed["pid"])]
    for thread in (thread for pid in pids for thread in threads_of(pid)):
        let_go(thread, placed)


def let_go(thread: int, placed: Placed) -> None:
    """Undo a thread's placement, its own or an inherited one."""
    with contextlib.suppress(OSError):
        if os.sched_getaffinity(thread) in ({placed["core"]}, set(placed["others"])):
            os.sched_setaffinity(thread, placed["free"])
    if placed["batch"]:
        forget_batch(thread)


def forget_batch(thread: int) -> None:
    """Give a thread the usual policy instead of ``SCHED_BATCH``."""
    with contextlib.suppress(OSError):
        if os.sched_getscheduler(thread) == _BATCH:
            os.sched_setscheduler(thread, _OTHER, os.sched_param(0))


def threads_of(pid: int) -> list[int]:
    """The threads of a process; none if they cannot be read."""
    with contextlib.suppress(OSError):
        return [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]
    return []


def text_of(path: Path) -> str:
    """The text of a file of the system; empty if it cannot be read, or its process has ended."""
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def descendants(pid: int) -> Iterator[int]:
    """Children of a process and theirs (proc(5), ``children``)."""
    for thread in threads_of(pid):
        for child in map(int, text_of(Path(f"/proc/{pid}/task/{thread}/children")).split()):
            yield child
            yield from descendants(child)


def main() -> None:
    """Wait for the end of the input, and put back."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    placed = None
    for line in sys.stdin:
        with contextlib.suppress(ValueError):
            placed = json.loads(line)
    if placed is not None:
        put_back(placed)


if __name__ == "__main__":
    main()
