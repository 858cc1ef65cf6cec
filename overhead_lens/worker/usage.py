"""CPU time, waiting for cores, page faults and thread count of this process. Runs in the worker."""

from __future__ import annotations

import gc
import mmap
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

# Below 2 MiB, so that no huge page serves the buffer.
PAGES = 480

# Other threads that run for a smaller share of this thread's time do not take the core from it.
_OTHERS_SHARE = 0.1


def other_threads_ns() -> int:
    """CPU time of all other threads of this process since it began."""
    return time.process_time_ns() - time.thread_time_ns()


@dataclass(frozen=True, slots=True)
class Waits:
    """CPU time of this process's threads so far, and the time for which they were ready to run but waited for a core, in ns.

    Attributes:
        own_ns, others_ns: Waiting of this thread, and of all others (``schedstat``, proc(5)); 0 if the kernel does not say.
        used_ns, others_used_ns: CPU time of this thread, and of all others.
    """

    own_ns: int
    others_ns: int
    used_ns: int
    others_used_ns: int

    @classmethod
    def now(cls) -> Waits:
        """The figures at this moment."""
        waited = {thread: _waited_ns(thread) for thread in _threads()}
        own_ns = waited.pop(threading.get_native_id(), 0)
        return cls(own_ns, sum(waited.values()), time.thread_time_ns(), other_threads_ns())

    def during(self, wall_ns: int) -> dict[str, int]:
        """Waiting since these moments, of which ``wall_ns`` were timed.

        Returns:
            ``delayed_ns``, the part of ``wall_ns`` in which this thread waited for a core that another program had;
            ``contended_ns``, all other waiting. Where the process's other threads run, they may be what has the core.
        """
        now = Waits.now()
        used_ns = now.used_ns - self.used_ns
        # The thread may also have waited before and after what was timed.
        own_ns = max(0, min(now.own_ns - self.own_ns, wall_ns - used_ns))
        contended_ns = max(0, now.others_ns - self.others_ns)
        if now.others_used_ns - self.others_used_ns > _OTHERS_SHARE * used_ns:
            own_ns, contended_ns = 0, contended_ns + own_ns
        return {"delayed_ns": own_ns, "contended_ns": contended_ns}


def _threads() -> list[int]:
    try:
        return [int(task.name) for task in Path("/proc/self/task").iterdir()]
    except OSError:
        return []


def _waited_ns(thread: int) -> int:
    try:
        return int(Path(f"/proc/self/task/{thread}/schedstat").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0


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
    """Time that the garbage collector has taken since watching began; None if it is not."""
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
    """Let torch use this number of threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
