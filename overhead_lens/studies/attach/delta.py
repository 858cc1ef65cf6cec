"""What changed between two watches of a process, before and after a deployment: shares of the threads' time.

A watch knows no steps, so it cannot tell whether the program became slower, only whether its time divides otherwise. Threads are
matched by name, those of one name by how busy they are. The interval of a difference is made of the two shares' own (Zou and
Donner, Statistics in Medicine 27, 2008, MOVER)::

    low  = difference - sqrt((new - new_low)^2 + (base_high - base)^2)
    high = difference + sqrt((new_high - new)^2 + (base - base_low)^2)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from overhead_lens.budget.threads import ThreadBudget
from overhead_lens.result import Result
from overhead_lens.stats.values import Interval
from overhead_lens.studies.attach.analysis import ProcessBudget
from overhead_lens.taxonomy.host import HostCategory

NO_STEPS = (
    "the watches know no steps: shares of time are compared, which say what changed and not whether it became slower"
)


@dataclass(frozen=True, slots=True)
class ShareDelta:
    """A category's share of a thread's time in two watches; ``verdict`` is ``more``, ``less`` or ``same``."""

    category: str
    base_share: float
    new_share: float
    delta_share: float
    ci95_share: Interval
    verdict: str


@dataclass(frozen=True, slots=True)
class ThreadDelta:
    """Two threads of one name; ``host`` has every category in the taxonomy's order."""

    name: str
    base_thread: int
    new_thread: int
    base_busy_share: float
    new_busy_share: float
    host: tuple[ShareDelta, ...]


@dataclass(frozen=True, slots=True)
class ProcessDelta(Result):
    """The difference of two watches; ``gone`` and ``came`` are names of threads without a counterpart."""

    base: ProcessBudget
    new: ProcessBudget
    threads: tuple[ThreadDelta, ...]
    gone: tuple[str, ...]
    came: tuple[str, ...]
    sentence: str
    warnings: tuple[str, ...]


def compare_processes(base: ProcessBudget, new: ProcessBudget, margin_share: float) -> ProcessDelta:
    """The difference of two watches; differences within ``margin_share`` of a thread's time are none."""
    before, after = _by_name(base), _by_name(new)
    threads = tuple(_thread(before[key], after[key], margin_share) for key in before if key in after)
    return ProcessDelta(
        base,
        new,
        threads,
        gone=tuple(before[key].name for key in before if key not in after),
        came=tuple(after[key].name for key in after if key not in before),
        sentence=_sentence(threads),
        warnings=(NO_STEPS, *_versions(base, new)),
    )


def _by_name(process: ProcessBudget) -> dict[tuple[bool, str, int], ThreadBudget]:
    """Threads by whether they are the process's own, name, and place among those; busiest first."""
    seen: Counter[tuple[bool, str]] = Counter()
    found = {}
    for thread in process.threads:
        own = thread.process == process.pid
        found[own, thread.name, seen[own, thread.name]] = thread
        seen[own, thread.name] += 1
    return found


def _thread(base: ThreadBudget, new: ThreadBudget, margin_share: float) -> ThreadDelta:
    host = tuple(
        _category(old, recent, base, new, margin_share) for old, recent in zip(base.host, new.host, strict=True)
    )
    return ThreadDelta(new.name, base.thread, new.thread, base.busy_share, new.busy_share, host)


def _category(
    base: HostCategory, new: HostCategory, base_thread: ThreadBudget, new_thread: ThreadBudget, margin_share: float
) -> ShareDelta:
    (base_low, base_high), (new_low, new_high) = _bounds(base, base_thread), _bounds(new, new_thread)
    delta = new.share - base.share
    low = delta - math.hypot(new.share - new_low, base_high - base.share)
    high = delta + math.hypot(new_high - new.share, base.share - base_low)
    moved = abs(delta) > margin_share and (low > 0 or high < 0)
    verdict = "same" if not moved else "more" if delta > 0 else "less"
    return ShareDelta(base.category, base.share, new.share, delta, (low, high), verdict)


def _bounds(category: HostCategory, thread: ThreadBudget) -> Interval:
    low, high = category.ci95_ns
    return min(category.share, low / thread.wall_ns), max(category.share, high / thread.wall_ns)


def _sentence(threads: Sequence[ThreadDelta]) -> str:
    if not threads:
        return "No thread of the one has a counterpart in the other."
    first = threads[0]
    moved = sorted((row for row in first.host if row.verdict != "same"), key=lambda row: -abs(row.delta_share))
    if not moved:
        return f"The time of {first.name} divides as before."
    changes = ", ".join(f"{row.category} {100 * row.delta_share:+.1f} points" for row in moved)
    return f"The time of {first.name} divides otherwise: {changes}."


def _versions(base: ProcessBudget, new: ProcessBudget) -> list[str]:
    pairs = {"Python": (base.python, new.python), "torch": (base.torch, new.torch)}
    return [f"{name} differs: {old} and {recent}" for name, (old, recent) in pairs.items() if old != recent]
