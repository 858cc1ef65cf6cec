"""Chooses the cores of a measured process's main thread and of its other threads.

Processes that are timed in turns share a core: what else runs on it slows down all of them, or none.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from overhead_lens.machine.guard import text_of, threads_of
from overhead_lens.machine.process import Worker

_PROCESSES = Path("/proc")
_STAT = _PROCESSES / "stat"
_CORES = Path("/sys/devices/system/cpu")
_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUP = _PROCESSES / "self" / "cgroup"
_WATCH_S = 0.1

# Threads of GNU's OpenMP spin for some ms after a call, those of Intel's for 200 (KMP_BLOCKTIME).
_SPIN_AT_MOST_S = 0.25
_LOOK_S = 0.001
_IDLE_SHARE = 0.7

# Of a thread's ``stat``, counted from behind its name.
_PROCESSOR = 36


def share_one_core(pids: Iterable[int]) -> dict[int, dict[int, set[int]]]:
    """Keep the main threads of processes on the idlest core, and their other threads off it.

    Returns:
        By process and thread, the cores it could use before.
    """
    if not hasattr(os, "sched_setaffinity"):
        return {}
    core = quietest_core(os.sched_getaffinity(0))
    return {pid: confine_others(pid, core) for pid in pids}


def confine_others(pid: int, core: int) -> dict[int, set[int]]:
    """Keep the main thread of a process on a core, its others off it; returns their former cores.

    A thread that wakes up on the core of a main thread that spins and waits for it does not run until the scheduler's next tick,
    milliseconds later. Where there is no other core it stays.
    """
    elsewhere = os.sched_getaffinity(0) - {core}
    before: dict[int, set[int]] = {}
    for thread in threads_of(pid):
        with contextlib.suppress(OSError):
            free = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, {core} if thread == pid else free - {core} or elsewhere)
            before[thread] = free
    return before


def put_back(pid: int, before: Mapping[int, set[int]]) -> None:
    """Let the threads of a process run where they, or else the main thread, could before.

    A newer thread has inherited the core of its parent thread.
    """
    for thread in threads_of(pid):
        with contextlib.suppress(OSError, KeyError):
            os.sched_setaffinity(thread, before[thread if thread in before else pid])


def set_batch(thread: int) -> bool:
    """Let a thread that wakes up wait for what runs on its core (sched(7), ``SCHED_BATCH``); false if it has another policy."""
    with contextlib.suppress(OSError, AttributeError):
        if os.sched_getscheduler(thread) == os.SCHED_OTHER:
            os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))
            return True
    return False


def last_core(thread: int) -> int | None:
    """The core on which a thread runs or ran last (proc(5), ``stat``); None where unknown."""
    stat = text_of(_PROCESSES / str(thread) / "stat").rpartition(")")[2].split()
    return int(stat[_PROCESSOR]) if len(stat) > _PROCESSOR else None


def cpu_quota() -> float | None:
    """CPUs that this process's control group may use at a time (cgroups(7), ``cpu.max``); None without a limit."""
    groups = text_of(_OWN_GROUP).splitlines()
    folder = _GROUPS / next((line[3:].strip("/") for line in groups if line.startswith("0::")), "")
    inside = (each for each in (folder, *folder.parents) if each.is_relative_to(_GROUPS))
    limits = (text_of(each / "cpu.max").split() for each in inside)
    return min((int(each[0]) / int(each[1]) for each in limits if each and each[0] != "max"), default=None)


def wait_until_idle(processes: Sequence[Worker]) -> None:
    """Wait until no thread of these processes runs, for a quarter of a second at most; one that still runs then is stopped.

    OpenMP's threads spin for some time after a call, with ``OMP_WAIT_POLICY=active`` without end. Those of another process that
    is called meanwhile do not get their core.
    """
    until_s = time.monotonic() + _SPIN_AT_MOST_S
    while any(_runs(process.pid) for process in processes) and time.monotonic() < until_s:
        time.sleep(_LOOK_S)
    for process in processes:
        if _runs(process.pid):
            process.stop()


def _runs(pid: int) -> bool:
    """Whether a thread of the process runs or is ready to (proc(5), ``stat``)."""
    with contextlib.suppress(OSError):
        stats = [text_of(path / "stat") for path in (_PROCESSES / str(pid) / "task").iterdir()]
        return any(stat.rpartition(")")[2].split()[:1] == ["R"] for stat in stats)
    return False


def quietest_core(allowed: Iterable[int]) -> int:
    """The core that is idle most during a tenth of a second; the last of several."""
    idle = _idle_shares()
    return max(allowed, key=lambda core: (idle.get(core, 0.0), core))


def idle_cores() -> list[int]:
    """Logical cores that this thread may use and that are mostly idle now.

    All but the first logical core of a physical one come last, since they share its execution units.
    """
    if not hasattr(os, "sched_getaffinity"):
        return []
    idle = _idle_shares()
    cores = sorted(core for core in os.sched_getaffinity(0) if idle.get(core, 0.0) >= _IDLE_SHARE)
    # Sysfs, ``cpu/topology``: all logical cores of the same physical one.
    siblings = [text_of(_CORES / f"cpu{core}/topology/thread_siblings_list") or str(core) for core in cores]
    earlier = [siblings[:index].count(siblings[index]) for index in range(len(cores))]
    return [core for _, core in sorted(zip(earlier, cores, strict=True))]


def _idle_shares() -> dict[int, float]:
    """Share of time that each core was idle (proc(5), ``/proc/stat``); empty if it cannot be read."""
    before = _idle_ticks()
    start_s = time.monotonic()
    time.sleep(_WATCH_S)
    after = _idle_ticks()
    ticks = (time.monotonic() - start_s) * os.sysconf("SC_CLK_TCK") if before else 1.0
    return {core: (count - before.get(core, count)) / ticks for core, count in after.items()}


def _idle_ticks() -> dict[int, int]:
    """Idle time of each core since boot, in ticks; empty if it cannot be read."""
    rows = [line.split() for line in text_of(_STAT).splitlines()]
    return {int(row[0][3:]): int(row[4]) for row in rows if row[0].startswith("cpu") and row[0] != "cpu"}
