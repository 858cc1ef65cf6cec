"""One core for processes that are timed in turns: where a neighbour holds another core, all of them are spared, or none."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

_STAT = Path("/proc/stat")
_CORES = Path("/sys/devices/system/cpu")
_WATCH_S = 0.1
_IDLE_SHARE = 0.7


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
    """The core with the most idle time during a tenth of a second; the last one of several."""
    idle = _idle_shares()
    return max(allowed, key=lambda core: (idle.get(core, 0.0), core))


def idle_cores() -> list[int]:
    """Cores that this thread may use and that nothing else used during most of a tenth of a second.

    Logical ones; of those that are threads of one core all but the first come last, since they share what executes.
    """
    if not hasattr(os, "sched_getaffinity"):
        return []
    idle = _idle_shares()
    found = sorted(core for core in os.sched_getaffinity(0) if idle.get(core, 0.0) >= _IDLE_SHARE)
    threads = [_threads_beside(core) for core in found]
    return [
        core for _, core in sorted((threads[:place].count(threads[place]), core) for place, core in enumerate(found))
    ]


def _threads_beside(core: int) -> str:
    """All logical cores of the core that this one is of (sysfs, ``cpu/topology``); this one alone where that cannot be read."""
    with contextlib.suppress(OSError):
        return (_CORES / f"cpu{core}/topology/thread_siblings_list").read_text(encoding="ascii")
    return str(core)


def _idle_shares() -> dict[int, float]:
    """Share of time that each core was idle (proc(5), ``/proc/stat``); nothing where it cannot be read."""
    before = _idle_ticks()
    start_s = time.monotonic()
    time.sleep(_WATCH_S)
    after = _idle_ticks()
    ticks = (time.monotonic() - start_s) * os.sysconf("SC_CLK_TCK") if before else 1.0
    return {core: (count - before.get(core, count)) / ticks for core, count in after.items()}


def _idle_ticks() -> dict[int, int]:
    """Idle time of each core since the start of the machine, in ticks; nothing where it cannot be read."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        rows = [line.split() for line in _STAT.read_text(encoding="ascii").splitlines()]
        return {int(row[0][3:]): int(row[4]) for row in rows if row[0].startswith("cpu") and row[0] != "cpu"}
    return {}
