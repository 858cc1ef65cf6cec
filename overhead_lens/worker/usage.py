"""CPU time, page faults and thread count of this process. Runs in the worker."""

from __future__ import annotations

import gc
import mmap
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

# Below 2 MiB, so that no huge page serves the buffer.
PAGES = 480


def other_threads_ns() -> int:
    """CPU time of all other threads of this process since it began."""
    return time.process_time_ns() - time.thread_time_ns()


class _Collections:
    """A callback of the garbage collector that adds up its time, ns."""

    ns = 0
    _begun_ns = 0

    def __call__(self, phase: str, _info: object) -> None:
        now_ns = time.perf_counter_ns()
        if phase == "start":
            self._begun_ns = now_ns
        else:
            self.ns += now_ns - self._begun_ns


def watch_collections() -> None:
    """Time garbage collections from now on; a collection costs about 0.3 us more."""
    if collected_ns() is None:
        gc.callbacks.append(_Collections())


def collected_ns() -> int | None:
    """Time that the garbage collector took since it is watched; None where it is not."""
    return next((callback.ns for callback in gc.callbacks if isinstance(callback, _Collections)), None)


def usage_of_thread() -> tuple[int, int]:
    """Minor page faults and system time in ns of this thread since it began (getrusage(2), RUSAGE_THREAD)."""
    if sys.platform != "linux":
        return 0, 0
    import resource

    usage: Any = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_minflt, round(usage.ru_stime * 1e9)


def fault_ns(rounds: int = 50) -> float:
    """Wall time of one page fault, by the fastest rounds; 0 where unknown."""
    if sys.platform != "linux":
        return 0.0
    fresh_ns: list[int] = []
    warm_ns: list[int] = []
    with fresh_pages() as (forget, touch):
        for _ in range(rounds):
            forget()
            for times_ns in (fresh_ns, warm_ns):
                start_ns = time.perf_counter_ns()
                touch()
                times_ns.append(time.perf_counter_ns() - start_ns)
    return max(0, min(fresh_ns) - min(warm_ns)) / PAGES


@contextmanager
def fresh_pages() -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """Two functions: one gives pages back to the operating system, one touches each of them."""
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        with memoryview(memory) as view, view[:: mmap.PAGESIZE] as firsts:
            content = bytes(range(240)) * 2

            def touch() -> None:
                firsts[:] = content

            yield lambda: memory.madvise(mmap.MADV_DONTNEED), touch


@contextmanager
def threads_in_use(count: int) -> Iterator[None]:
    """Have torch use so many threads meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
