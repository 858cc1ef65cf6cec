"""The CPU clocks of another process's threads."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from overhead_lens.machine.other_process import thread_cpu_ns, thread_system_ns

PERIOD_NS = 100_000_000
"""A shorter time shows whether threads begin, which takes each some 0.1 ms, and not whether they compute."""

# Cores that threads take together while no two of them compute at once; the clocks of running threads are late by a tick.
_MOST_IN_TURNS = 1.05
# What all but the busiest thread take at least if there are turns.
_LEAST_OF_OTHERS = 0.02


@dataclass(frozen=True, slots=True)
class Clocks:
    """The wall clock and the CPU clocks of each thread of a process, ns; ``system_ns``: in the operating system."""

    wall_ns: int
    cpu_ns: Mapping[int, int]
    system_ns: Mapping[int, int]

    @classmethod
    def of(cls, pid: int) -> Clocks:
        """Read them now; those of threads are missing if they cannot be read."""
        return cls(time.monotonic_ns(), thread_cpu_ns(pid), thread_system_ns(pid))

    def since(self, before: Clocks) -> Clocks:
        """What was added to each."""
        both = (self.cpu_ns, before.cpu_ns), (self.system_ns, before.system_ns)
        spent_ns = ({thread: ns - past.get(thread, 0) for thread, ns in now.items()} for now, past in both)
        return Clocks(self.wall_ns - before.wall_ns, *spent_ns)

    def others_share(self, before: Clocks, thread: int) -> float:
        """Number of cores that all threads except ``thread`` used since, for at least ``PERIOD_NS``; one if unknown."""
        if not self.cpu_ns:
            return 1.0
        since = self.since(before)
        return sum(ns for each, ns in since.cpu_ns.items() if each != thread) / max(PERIOD_NS, since.wall_ns)


class ThreadClocks:
    """What the threads of a process run, in periods that are added up."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._begun: Clocks | None = Clocks.of(pid)
        self._wall_ns, self._cpu_ns, self._system_ns = 0, Counter[int](), Counter[int]()

    def begin(self) -> None:
        """Begin a period; what one that did not end would add is forgotten."""
        self._begun = Clocks.of(self._pid)

    def end(self) -> bool:
        """End the period and add it; whether several threads took turns in it, no two of them computing at once."""
        if self._begun is None:
            return False
        since, self._begun = Clocks.of(self._pid).since(self._begun), None
        self._wall_ns += since.wall_ns
        self._cpu_ns.update(since.cpu_ns)
        self._system_ns.update(since.system_ns)
        together_ns = sum(since.cpu_ns.values())
        others_ns = together_ns - max(since.cpu_ns.values(), default=0)
        return together_ns <= _MOST_IN_TURNS * since.wall_ns and others_ns > _LEAST_OF_OTHERS * since.wall_ns

    @property
    def running(self) -> dict[int, float]:
        """The share of the periods that each thread was on a core; of threads whose clock was read."""
        return self._shares(self._cpu_ns)

    @property
    def in_system(self) -> dict[int, float]:
        """The share of the periods that each thread was in the operating system."""
        return self._shares(self._system_ns)

    def _shares(self, spent_ns: Mapping[int, int]) -> dict[int, float]:
        return {thread: min(1.0, ns / self._wall_ns) for thread, ns in spent_ns.items()} if self._wall_ns else {}
