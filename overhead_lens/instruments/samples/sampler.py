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
from overhead_lens.samplers.sampler import Watch

# A stack takes 1 to 2 ms, and the target must run in between. Stopping several threads takes longer (methodology/sampling.md).
_RATE_HZ, _RATE_OF_THREADS_HZ = 300, 100
# What is reached of a rate by each of two processes that are sampled at once.
_REACHED_SHARE = 0.9
# Between two stacks the target runs for at least about this share of the time.
_RUNNING_SHARE = 0.5


class Sampling(ExitStack):
    """The sampler attached to process ``pid``, for about ``sample_count`` stacks, half as many of a call with threads.

    Native frames and waiting threads are included. Leaving the context ends the sampler and leaves no file.

    Args:
        core: Core of the target's main thread and of the sampler; None for the quietest.
        threads: Whether the target's main thread waits for others.
    """

    def __init__(
        self, pid: int, sample_count: int, folder: Path, name: str, core: int | None = None, *, threads: bool = False
    ) -> None:
        super().__init__()
        self._rate_hz = _RATE_OF_THREADS_HZ if threads else _RATE_HZ
        self._seconds = (sample_count // 2 if threads else sample_count) / (_REACHED_SHARE * self._rate_hz)
        watch = Watch(pid, self._rate_hz, None, folder / f".{name}.raw", by_thread=False)
        with ExitStack() as stack:
            # One runs while the other does not: from a core beside, which shares caches or execution units, py-spy slows the
            # target down just before it stops it, and not all code by as much (docs/methodology/sampling.md).
            with contextlib.suppress(OSError, AttributeError):
                core = quietest_core(os.sched_getaffinity(pid)) if core is None else core
                stack.callback(put_back, pid, confine_others(pid, core))
            # py-spy stops all threads and lets the main one go first. Taking the core from py-spy, that would wait at its next
            # barrier for threads that are still stopped, and be sampled there (docs/methodology/sampling.md).
            if threads and set_batch(pid):
                stack.callback(forget_batch, pid)
            with _starting_on(core):
                self._running = stack.enter_context(start_py_spy(watch))
            self.enter_context(stack.pop_all())
        self.wait_until_begun, self.finish = self._running.wait_until_begun, self._running.finish

    def end(self, since_ns: int) -> None:
        """Wait until it has enough stacks, from ``since_ns`` of ``time.monotonic_ns`` on, and have it end."""
        time.sleep(max(0.0, self._seconds + (since_ns - time.monotonic_ns()) / 1e9))
        self._running.stop()

    def stacks_per_call(self, call_ns: float) -> float:
        """How many stacks may fall into a call that takes so long."""
        return call_ns / 1e9 * self._rate_hz / _RUNNING_SHARE


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
