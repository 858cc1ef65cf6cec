"""What a page fault takes beside what the operating system accounts as its own. Runs in the worker.

A thread that touches a fresh page leaves its program and comes back to it. The way there and back, and filling again what the
operating system's work displaced from the caches, is accounted as the program's own time (getrusage(2), ru_utime)::

    touching a page that is there   |t|
    touching a fresh one            |t| way in |--- system: find, clear and enter a page ---| way back, refill |
                                       ^^^^^^^^ user                                         ^^^^^^^^^^^^^^^^^^ user
"""

from __future__ import annotations

import mmap
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Below 2 MiB, so that no huge page serves the buffer.
_PAGES = 480

# The time of a thread is accounted by a tick of 1 to 10 ms.
_BUDGET_NS = 1_000_000_000

# A fault takes no less than this, and a call of whose time faults take less than this share is no better known for it.
_LEAST_FAULT_NS = 100
_LEAST_SHARE = 0.002


def matter(faults: float, wall_ns: float) -> bool:
    """Whether so many page faults in so much time show in it."""
    return faults * _LEAST_FAULT_NS >= _LEAST_SHARE * wall_ns


def measure(budget_ns: int = _BUDGET_NS) -> dict[str, int]:
    """Touch pages, fresh ones and then as many that are there.

    Returns:
        ``faults``: fresh pages touched; ``user_ns``: by how much more user time they took than those that were there.
        Both 0 where the operating system does not account a thread's time.
    """
    if sys.platform != "linux":
        return {"faults": 0, "user_ns": 0}
    with _pages() as (forget, touch):

        def touch_fresh() -> None:
            forget()
            touch()

        rounds, fresh_ns = _user_time(touch_fresh, budget_ns)
        touch()
        warm_rounds, warm_ns = _user_time(touch, budget_ns // 10)
    return {"faults": rounds * _PAGES, "user_ns": max(0, fresh_ns - warm_ns * rounds // warm_rounds)}


def fault_ns(rounds: int = 50) -> float:
    """What one page fault takes in all, in ns of wall time: the fastest rounds; 0 where it is not known."""
    if sys.platform != "linux":
        return 0.0
    fresh_ns: list[int] = []
    warm_ns: list[int] = []
    with _pages() as (forget, touch):
        for _ in range(rounds):
            forget()
            for times_ns in (fresh_ns, warm_ns):
                start_ns = time.perf_counter_ns()
                touch()
                times_ns.append(time.perf_counter_ns() - start_ns)
    return max(0, min(fresh_ns) - min(warm_ns)) / _PAGES


@contextmanager
def _pages() -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """One function that gives pages back to the operating system, and one that touches each of them."""
    with mmap.mmap(-1, _PAGES * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        with memoryview(memory) as view, view[:: mmap.PAGESIZE] as firsts:
            content = bytes(range(240)) * 2

            def touch() -> None:
                firsts[:] = content

            yield lambda: memory.madvise(mmap.MADV_DONTNEED), touch


def _user_time(action: Callable[[], None], budget_ns: int) -> tuple[int, int]:
    """How often ``action`` was done in about ``budget_ns``, and the thread's user time in ns meanwhile."""
    import resource

    end_ns = time.perf_counter_ns() + budget_ns
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_utime
    rounds = 0
    while rounds == 0 or time.perf_counter_ns() < end_ns:
        action()
        rounds += 1
    return rounds, round((resource.getrusage(resource.RUSAGE_THREAD).ru_utime - before) * 1e9)
