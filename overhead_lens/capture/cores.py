"""Who runs where and when: one core for processes that are timed in turns, what others leave for those that only warm up."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

_STAT = Path("/proc/stat")
_WATCH_S = 0.1

# autogroup(7): sessions share the processor by these, whatever their threads' policies are.
_LEAST_NICE, _USUAL_NICE = 19, 0


def share_one_core(pids: Iterable[int]) -> None:
    """Keep the main threads of these processes on the core that is idle most; their other threads stay free.

    Two processes that are called in turns stay on a core each. A neighbour on one of them then made one side 1.8 times as slow
    for a whole round.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    core = quietest_core(os.sched_getaffinity(0))
    for pid in pids:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(pid, {core})


def quietest_core(allowed: Iterable[int]) -> int:
    """The core with the most idle time during a tenth of a second (proc(5), ``/proc/stat``); the last one of several."""
    before = _idle_ticks()
    time.sleep(_WATCH_S)
    after = _idle_ticks()
    return max(allowed, key=lambda core: (after.get(core, 0) - before.get(core, 0), core))


def _idle_ticks() -> dict[int, int]:
    """Idle time of each core since the start of the machine, in ticks; nothing where it cannot be read."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        rows = [line.split() for line in _STAT.read_text(encoding="ascii").splitlines()]
        return {int(row[0][3:]): int(row[4]) for row in rows if row[0].startswith("cpu") and row[0] != "cpu"}
    return {}


def may_stand_back() -> bool:
    """Whether there is a core to spare, and who stood back may step forward again (sched(7): not in every container)."""
    if sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
        return False
    allowed: list[bool] = []
    thread = threading.Thread(target=lambda: allowed.append(_can_return()))
    thread.start()
    thread.join()
    return allowed == [True]


def stand_back(pid: int) -> None:
    """Let a process that was just started run only where no other wants to."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
            _share_of_session(pid, _LEAST_NICE)


def step_forward(pid: int) -> None:
    """Undo ``stand_back`` for every thread of the process."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            _share_of_session(pid, _USUAL_NICE)
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setscheduler(int(task.name), os.SCHED_OTHER, os.sched_param(0))


def _share_of_session(pid: int, nice: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        Path(f"/proc/{pid}/autogroup").write_text(str(nice), encoding="ascii")


def _can_return() -> bool:
    """Try on the calling thread, which is to end afterwards."""
    if sys.platform != "linux":
        return False
    thread = threading.get_native_id()
    try:
        os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
        os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
    except OSError:
        return False
    return True
