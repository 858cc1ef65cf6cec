"""Which core a measured process runs on, and which ones its threads.

Processes that are timed in turns share one: where a neighbour holds another core, all of them are spared, or none.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

_PROCESSES = Path("/proc")
_STAT = _PROCESSES / "stat"
_CORES = Path("/sys/devices/system/cpu")
_WATCH_S = 0.1

# Threads of GNU's OpenMP spin for 5 ms here, those of Intel's for 200 (KMP_BLOCKTIME).
_SPIN_AT_MOST_S = 0.25
_LOOK_S = 0.001
_IDLE_SHARE = 0.7


def share_one_core(pids: Iterable[int]) -> dict[int, dict[int, set[int]]]:
    """Keep the main threads of these processes on the core that is idle most, and their other threads off it.

    Returns for each process where its threads could run before.

    Two processes that are called in turns stay on a core each. A neighbour on one of them then made one side 1.8 times as slow
    for a whole round.
    """
    if not hasattr(os, "sched_setaffinity"):
        return {}
    core = quietest_core(os.sched_getaffinity(0))
    return {pid: set_apart(pid, core) for pid in pids}


def set_apart(pid: int, core: int) -> dict[int, set[int]]:
    """Keep the main thread of a process on a core and its other threads off it; returns where each one that was moved could run.

    A thread that is woken up on the core of a main thread that spins and waits for it does not run until the next tick of the
    scheduler, milliseconds later. Where there is no other core it stays.
    """
    elsewhere = os.sched_getaffinity(0) - {core}
    before: dict[int, set[int]] = {}
    for thread in _threads_of(pid):
        with contextlib.suppress(OSError):
            free = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, {core} if thread == pid else free - {core} or elsewhere)
            before[thread] = free
    return before


def put_back(pid: int, before: Mapping[int, set[int]]) -> None:
    """Let the threads of a process run where they could before; those that have ended are gone.

    One that was started since has taken over the core of the one that started it, and is let run where the main thread could.
    """
    for thread in _threads_of(pid):
        with contextlib.suppress(OSError, KeyError):
            os.sched_setaffinity(thread, before[thread if thread in before else pid])


def _threads_of(pid: int) -> list[int]:
    """The threads of a process; none where that cannot be read."""
    with contextlib.suppress(OSError):
        return [int(path.name) for path in (_PROCESSES / str(pid) / "task").iterdir()]
    return []


def wait_until_idle(pids: Sequence[int]) -> None:
    """Wait, for a quarter of a second at most, until no thread of these processes runs.

    OpenMP's threads spin for some time after a call. Those of another process that is called meanwhile do not get their core.
    """
    until_s = time.monotonic() + _SPIN_AT_MOST_S
    while any(map(_runs, pids)) and time.monotonic() < until_s:
        time.sleep(_LOOK_S)


def _runs(pid: int) -> bool:
    """Whether a thread of the process runs or wants to (proc(5), ``stat``); none does where that cannot be read."""
    with contextlib.suppress(OSError):
        texts = [(path / "stat").read_text(encoding="utf-8") for path in (_PROCESSES / str(pid) / "task").iterdir()]
        return any(text.rpartition(")")[2].split()[0] == "R" for text in texts)
    return False


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
