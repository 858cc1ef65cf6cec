"""Bounds the time that stacks show a thread asleep by its CPU clock (pure).

py-spy stops the threads of a process one after another. A thread that works while another one waits for it may finish before it
is stopped, and then both are seen waiting::

    first stopped   waits ....|stopped
    last stopped    works ####|##### waits ...|stopped

A thread's CPU clock (proc(5), ``schedstat``; getrusage(2)) stands still while it sleeps, whoever looks. A thread cannot sleep for
longer than it is off the cores. If its stacks show more sleep, the clock's bound replaces it, and the rest of the time is divided
as the other stacks are. Reading a file that is in memory looks like sleep in I/O, but runs in the operating system.
"""

from __future__ import annotations

from dataclasses import dataclass

from overhead_lens.budget.shares import Shares, moved, reweighted
from overhead_lens.taxonomy.classifier import UNATTRIBUTED
from overhead_lens.taxonomy.rules import Attribution

FEWEST_AWAKE = 30
"""At least this many stacks of a running thread show what it does."""

# A device or the end of a parallel region may be waited for on a core.
_ASLEEP = frozenset(Attribution("wait", part) for part in ("gil", "lock", "io", "data"))
_IO = Attribution("wait", "io")
_RAN = "ran by its CPU clock, while stacks show it waiting"
# Less than this is what the clock of an idle thread shows, and chance.
_LEAST_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Slept:
    """A thread's sleep by its stacks, and the bound by its CPU clock; shares of the time, 0 to 1."""

    by_stacks: float
    at_most: float

    @property
    def disagree(self) -> bool:
        """Whether stacks show more sleep than the clock leaves."""
        return self.by_stacks - self.at_most > _LEAST_SHARE


def slept(shares: Shares, off_cores: float, in_system: float = 0.0) -> Slept:
    """How much a thread slept that was on no core for ``off_cores`` (0 to 1) of the time, in the system for ``in_system``."""
    asleep = sum(weight for attribution, weight in shares.attributions.items() if attribution in _ASLEEP)
    of_io = min(in_system, shares.attributions.get(_IO, 0.0) / shares.weight)
    return Slept(asleep / shares.weight, min(1.0, max(0.0, off_cores + of_io)))


def bounded(shares: Shares, sleep: Slept) -> Shares:
    """The shares with sleep cut to the clock's bound; with fewer than ``FEWEST_AWAKE`` stacks awake, the rest is unattributed."""
    if not sleep.disagree:
        return shares
    if (1.0 - sleep.by_stacks) * shares.weight >= FEWEST_AWAKE:
        return reweighted(shares, _ASLEEP.__contains__, sleep.at_most)
    return moved(shares, "wait", _ASLEEP, 1.0 - sleep.at_most / sleep.by_stacks, UNATTRIBUTED, _RAN)


def why_unattributed(costliest: str) -> str:
    """Why time is unattributed, by its costliest frame."""
    if costliest == _RAN:
        return "the thread's CPU clock ran while its stacks show it waiting"
    return "no rule claims the frames listed under it"
