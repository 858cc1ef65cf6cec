"""Places a process's threads so that sampling one of them does not make it wait for the others.

A sampler stops all threads of a process, one after the other, and lets them go in the same order. Where it takes the core of one
thread of an OpenMP team to do so, the thread that called the team reaches the end of the parallel region alone, waits there, and
is sampled there (docs/methodology/sampling.md). Three things together prevent it:

- the sampled thread and the sampler share a core, so that one runs while the other does not; this program joins them;
- all other threads run on the other cores;
- where other threads compute, the sampled one does not preempt the sampler when it is let go (sched(7), ``SCHED_BATCH``): its
  team would still be stopped.

Threads that take turns, as one that waits for the backward pass of another, must not be placed (``thread_clocks.py``): a sampler
on the core of a thread comes to run when that thread waits, and would find it waiting too often.

A guard in a process of its own puts everything back even if this program is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

from overhead_lens.machine.cores import last_core, set_batch
from overhead_lens.machine.guard import Placed, descendants, forget_batch, let_go, put_back, threads_of
from overhead_lens.machine.thread_clocks import PERIOD_NS, Clocks

# Of the sampled thread, and of the others.
_FEWEST_CORES = 2
# Fraction of a core: threads that use less do not count as a team.
_TEAM_SHARE = 0.02

_GUARD = Path(__file__).with_name("guard.py")


class Placement:
    """Places a process's threads while a sampler looks at one of them; leaving the context puts them back.

    Attributes:
        reason: Why the threads are not placed, for people; empty if they are or can be.
    """

    def __init__(self, pid: int) -> None:
        self._pid = self._thread = pid
        self._placed: Placed | None = None
        self._known: set[int] = set()
        self._own: set[int] = set()
        self._clocks = Clocks.of(pid)
        self._guard: subprocess.Popen[bytes] | None = None
        self.reason = ""

    def __enter__(self) -> Placement:
        return self

    def __exit__(self, *_: object) -> None:
        self.put_back()
        if self._guard is not None:
            with self._guard:
                pass  # Closes its input and waits for it.

    @property
    def core(self) -> int | None:
        """The core of the sampled thread; None if nothing is placed."""
        return None if self._placed is None else self._placed["core"]

    def place(self, thread: int, sampler: int) -> bool:
        """Place the threads, the sampler's process and this one; whether that could be done."""
        self._thread = thread
        self.reason, free = self._why_not()
        if self.reason or len(free) < _FEWEST_CORES:
            return False
        # Of several programs, each keeps the core on which it runs.
        core = last_core(self._thread)
        core = core if core in free else max(free)
        batch = all(_policy(each) == os.SCHED_OTHER for each in threads_of(self._pid))
        self._placed = {
            "pid": self._pid,
            "core": core,
            "others": sorted(free - {core}),
            "free": sorted(free),
            "batch": batch,
        }
        self._known = set()
        self._update_guard()
        self.follow()
        # This program wakes up now and then, and would take the core of one of the team.
        self._own = os.sched_getaffinity(0)
        for each in (*threads_of(sampler), *threads_of(os.getpid())):
            _move(each, {core})
        return True

    def follow(self) -> None:
        """Place threads that have begun since; let go of child processes, which have inherited their parent's core."""
        placed = self._placed
        if placed is None:
            return
        for thread in set(threads_of(self._pid)) - self._known:
            self._known.add(thread)
            if thread == self._thread:
                _move(thread, {placed["core"]})
                continue
            _move(thread, set(placed["others"]))
            if placed["batch"]:
                forget_batch(thread)
        now = Clocks.of(self._pid)
        if placed["batch"] and now.others_share(self._clocks, self._thread) > _TEAM_SHARE:
            set_batch(self._thread)
        if now.wall_ns - self._clocks.wall_ns > PERIOD_NS:
            self._clocks = now
        for child in descendants(self._pid):
            for thread in threads_of(child):
                let_go(thread, placed)

    def put_back(self) -> None:
        """Restore the threads' previous cores."""
        placed, self._placed = self._placed, None
        if placed is not None:
            put_back(placed)
            self._update_guard()
            for thread in threads_of(os.getpid()):
                _move(thread, self._own)

    def _why_not(self) -> tuple[str, set[int]]:
        """Why the threads cannot be placed, empty if they can; the cores that they may use."""
        if not hasattr(os, "sched_setaffinity"):
            return "this system does not let threads be placed on cores", set()
        masks: list[set[int]] = []
        for thread in threads_of(self._pid):
            with contextlib.suppress(OSError):
                masks.append(os.sched_getaffinity(thread))
        if not masks:
            return "its threads cannot be read", set()
        free = masks[0]
        if any(mask != free for mask in masks):
            return "the program places its threads on cores itself", free
        if len(free) < _FEWEST_CORES:
            return "it has a single core" if len(masks) > 1 else "", free
        try:
            os.sched_setaffinity(self._thread, free)
        except OSError as error:
            return f"its threads may not be placed on cores ({error.strerror})", free
        return "", free

    def _update_guard(self) -> None:
        """Give the guard the newest state, and start it for the first one."""
        with contextlib.suppress(OSError):
            if self._guard is None:
                command = [sys.executable, "-I", "-S", str(_GUARD)]
                self._guard = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True, bufsize=0
                )
            assert self._guard.stdin is not None
            self._guard.stdin.write(json.dumps(self._placed).encode() + b"\n")


def _move(thread: int, cores: set[int]) -> None:
    with contextlib.suppress(OSError):
        os.sched_setaffinity(thread, cores)


def _policy(thread: int) -> int | None:
    """The scheduling policy of a thread; None if it has ended."""
    with contextlib.suppress(OSError):
        return os.sched_getscheduler(thread)
    return None
