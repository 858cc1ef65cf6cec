"""What changed between two watches of a process, before and after a deployment: shares of the threads' time.

A watch knows no steps, so it cannot tell whether the program became slower, only whether its time divides otherwise. Threads are
matched by name, those of one name by how busy they are. The interval of a difference combines the two shares' own (Zou and
Donner, Statistics in Medicine 27, 2008, MOVER). A difference is one if it is larger than the margin and significant among all
categories of all threads (Holm)::

    low  = difference - sqrt((new - new_low)^2 + (base_high - base)^2)
    high = difference + sqrt((new_high - new)^2 + (base - base_low)^2)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated

from overhead_lens.budget.threads import ThreadBudget
from overhead_lens.comparison.difference import category_verdicts
from overhead_lens.contract import Rounded, ShareOfTime
from overhead_lens.result import Result
from overhead_lens.stats.shift import Shift, shift_of_interval
from overhead_lens.stats.values import Interval
from overhead_lens.studies.attach.analysis import ProcessBudget
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.host import HostCategory

NO_STEPS = (
    "the watches know no steps: shares of time are compared, which say what changed and not whether it became slower"
)


_VERDICTS = {"slower": "more", "faster": "less"}
_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class ShareDelta:
    """A category's share of a thread's time in both; ``verdict`` is ``more``, ``less`` or ``same``."""

    category: str
    base_share: ShareOfTime
    new_share: ShareOfTime
    delta_share: ShareOfTime
    ci95_share: Annotated[Interval, Rounded(5)]
    verdict: str


@dataclass(frozen=True, slots=True)
class ThreadDelta:
    """Two threads of one name."""

    name: str
    base_thread: int
    new_thread: int
    base_busy_share: ShareOfTime
    new_busy_share: ShareOfTime
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
    pairs = [(before[key], after[key]) for key in before if key in after]
    judged = iter(_judged([row for pair in pairs for row in _rows(*pair)], margin_share))
    threads = tuple(_thread(*pair, tuple(islice(judged, len(HOST_CATEGORIES)))) for pair in pairs)
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
    """Threads by (own process or child, name, index among equal names), the busiest first."""
    seen: Counter[tuple[bool, str]] = Counter()
    threads = {}
    for thread in process.threads:
        own = thread.process == process.pid
        threads[own, thread.name, seen[own, thread.name]] = thread
        seen[own, thread.name] += 1
    return threads


def _thread(base: ThreadBudget, new: ThreadBudget, host: tuple[ShareDelta, ...]) -> ThreadDelta:
    return ThreadDelta(new.name, base.thread, new.thread, base.busy_share, new.busy_share, host)


def _judged(rows: Sequence[ShareDelta], margin_share: float) -> list[ShareDelta]:
    verdicts = category_verdicts([_shift(row) for row in rows], margin_share * _NS_PER_S)
    return [
        replace(row, verdict=_VERDICTS.get(verdict, "same") if abs(row.delta_share) > margin_share else "same")
        for row, verdict in zip(rows, verdicts, strict=True)
    ]


def _shift(row: ShareDelta) -> Shift:
    """The difference in ns of each second watched; a category that neither watch saw has none."""
    if not (row.base_share or row.new_share):
        return Shift(0.0, 0.0, 1.0, 1)
    low, high = row.ci95_share
    return shift_of_interval(row.delta_share * _NS_PER_S, (low * _NS_PER_S, high * _NS_PER_S))


def _rows(base: ThreadBudget, new: ThreadBudget) -> Iterator[ShareDelta]:
    """The differences of two threads, not judged yet."""
    for old, recent in zip(base.host, new.host, strict=True):
        (base_low, base_high), (new_low, new_high) = _bounds(old, base), _bounds(recent, new)
        delta = recent.share - old.share
        low = delta - math.hypot(recent.share - new_low, base_high - old.share)
        high = delta + math.hypot(new_high - recent.share, old.share - base_low)
        yield ShareDelta(old.category, old.share, recent.share, delta, (low, high), "same")


def _bounds(category: HostCategory, thread: ThreadBudget) -> Interval:
    low, high = category.ci95_ns
    return min(category.share, low / thread.wall_ns), max(category.share, high / thread.wall_ns)


def _sentence(threads: Sequence[ThreadDelta]) -> str:
    if not threads:
        return "No thread of the base watch has a counterpart in the new one."
    first = threads[0]
    moved = sorted((row for row in first.host if row.verdict != "same"), key=lambda row: -abs(row.delta_share))
    if not moved:
        return f"The time of {first.name} divides as before."
    changes = ", ".join(f"{row.category} {100 * row.delta_share:+.1f} points" for row in moved)
    return f"The time of {first.name} divides otherwise: {changes}."


def _versions(base: ProcessBudget, new: ProcessBudget) -> list[str]:
    pairs = {"Python": (base.python, new.python), "torch": (base.torch, new.torch)}
    return [f"{name} differs: {old} and {recent}" for name, (old, recent) in pairs.items() if old != recent]
