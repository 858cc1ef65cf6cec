"""Attaches the sampler to a warmed-up worker, on a core that the two share."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from overhead_lens.machine.cores import confine_others, put_back, quietest_core, set_batch
from overhead_lens.machine.guard import forget_batch
from overhead_lens.samplers.py_spy import start_py_spy
from overhead_lens.samplers.sampler import SamplerRun, Watch

# A stack takes 1 to 2 ms, and the target must run in between. Stopping several threads takes longer (methodology/sampling.md).
_RATE_HZ, _RATE_OF_THREADS_HZ = 300, 100
# What is reached of a rate by each of two processes that are sampled at once.
_REACHED_SHARE = 0.9
# Between two stacks the target runs for at least about this share of the time.
_RUNNING_SHARE = 0.5


class Sampling:
    """The sampler attached to process ``pid``, for about ``sample_count`` stacks, half as many of a call with threads.

    Native frames and waiting threads are included.

    Args:
        core: Core of the target's main thread and of the sampler; None if it may share the target's cores.
        threads: Whether the target's main thread waits for others.
    """

    def __init__(
        self, pid: int, sample_count: int, folder: Path, name: str, core: int | None = None, *, threads: bool = False
    ) -> None:
        self._rate_hz = _RATE_OF_THREADS_HZ if threads else _RATE_HZ
        self._seconds = (sample_count // 2 if threads else sample_count) / (_REACHED_SHARE * self._rate_hz)
        watch = Watch(pid, self._rate_hz, None, folder / f".{name}.raw", by_thread=False)
        with ExitStack() as stack:
            core = stack.enter_context(_shared_core(pid, core))
            if threads:
                stack.enter_context(_not_preempting(pid))
            with _starting_on(core):
                self._running = stack.enter_context(start_py_spy(watch))
            self._until_closed = stack.pop_all()

    def __enter__(self) -> Sampling:
        return self

    def __exit__(self, *_: object) -> None:
        """End the sampler, if it still runs; leave no file."""
        self._until_closed.close()

    def wait_until_begun(self) -> None:
        """Return when the sampler takes stacks."""
        self._running.wait_until_begun()

    def end(self, since_ns: int) -> None:
        """Wait until it has enough stacks, from ``since_ns`` of ``time.monotonic_ns`` on, and have it end."""
        time.sleep(max(0.0, self._seconds + (since_ns - time.monotonic_ns()) / 1e9))
        self._running.stop()

    def stacks_per_call(self, call_ns: float) -> float:
        """How many stacks may fall into a call that takes so long."""
        return call_ns / 1e9 * self._rate_hz / _RUNNING_SHARE

    def finish(self) -> SamplerRun:
        """The stacks."""
        return self._running.finish()


@contextlib.contextmanager
def _shared_core(pid: int, core: int | None) -> Iterator[int | None]:
    """Keep the main thread of ``pid`` on a core of its own; yields the core, None where unknown.

    py-spy is to share it, so that one runs while the other does not: from a core beside, which shares caches or execution units,
    py-spy slows the target down just before it stops it, and not all code by as much (docs/methodology/sampling.md).
    """
    before: dict[int, set[int]] = {}
    try:
        with contextlib.suppress(OSError, AttributeError):
            core = quietest_core(os.sched_getaffinity(pid)) if core is None else core
            before = confine_others(pid, core)
        yield core
    finally:
        put_back(pid, before)


@contextlib.contextmanager
def _starting_on(core: int | None) -> Iterator[None]:
    """Let processes that are started meanwhile start on a core, if one is named."""
    before = None
    try:
        with contextlib.suppress(OSError):
            if core is not None:
                before = os.sched_getaffinity(0)
                os.sched_setaffinity(0, {core})
        yield
    finally:
        if before is not None:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, before)


@contextlib.contextmanager
def _not_preempting(thread: int) -> Iterator[None]:
    """Let a thread that wakes up wait for what runs on its core.

    py-spy stops all threads and lets the main one go first. Taking the core from py-spy, it would wait at its next barrier for
    threads that are still stopped, and be sampled there (docs/methodology/sampling.md).
    """
    is_set = set_batch(thread)
    try:
        yield
    finally:
        if is_set:
            forget_batch(thread)
