"""What a hot loop of one step would have missed of a program's run (pure).

``profile`` calls one function over and over: compiled, with filled caches, nothing else running, garbage of the rest of the
program out of the collector's sight. What its figure lacks is in the budget of a run, by the parts that only a program has. The
rows are not to be added up: a slow step may be slow by one of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from overhead_lens.contract import ShareOfTime
from overhead_lens.program.area import Phase
from overhead_lens.remedies.registry import built_in
from overhead_lens.result import Result
from overhead_lens.stats.values import Ints
from overhead_lens.studies.run.analysis import RunBudget
from overhead_lens.studies.run.slowest import SLOW

SLOW_STEPS = "slow steps"

# A figure below this share of the step is left out.
_LEAST_SHARE = 0.002

# A category, or a part of one; why a hot loop lacks it; the remedy for it.
_LACKING = (
    ("compile", "", "it compiles before it measures", "dynamic_on"),
    ("python", "gc", "its collector does not see the objects of the rest of the program", "gc_rarely"),
    ("python", "import", "modules are loaded before it measures", ""),
    ("allocation", "page_fault", "its next call gets the pages that the last one gave back", "malloc_keeps_pages"),
    ("wait", "data", "its arguments are there", "loader_workers"),
    ("wait", "collective", "it calls the step in a single process", ""),
    ("wait", "io", "it calls the step alone", ""),
    ("wait", "gil", "no other thread runs Python beside it", ""),
    ("wait", "lock", "no other thread holds a lock beside it", ""),
)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A category, ``category/part`` or ``slow steps``; ``remedy`` and ``how`` are empty if nothing is known against it."""

    figure: str  # Slow steps: what the mean step takes more than the median one.
    ns: int
    share: ShareOfTime
    because: str  # Why a hot loop does not have it.
    remedy: str
    how: str  # The line of code that does it.


@dataclass(frozen=True, slots=True)
class EndToEnd(Result):
    """A run compared with what a hot loop of its step could measure.

    Attributes:
        run: The run's budget.
        median_ns: The median of its bare steps, which a hot loop would report at most; None without steps.
        missed: The most time first; not to be added up.
        notes: What a run cannot tell.
    """

    run: RunBudget
    median_ns: int | None
    missed: tuple[Shortfall, ...]
    sentence: str
    notes: tuple[str, ...]


def end_to_end(run: RunBudget) -> EndToEnd:
    """The figures of a run that a hot loop of its step would miss."""
    bare = _bare_ns(run)
    hows = {remedy.name: remedy.how for remedy in built_in()}
    shortfalls = [
        Shortfall(figure, ns, ns / run.wall.ns, because, remedy, hows.get(remedy, ""))
        for figure, ns, because, remedy in (*_slow(run, bare), *_lacking(run))
        if run.wall.ns and ns >= max(1, _LEAST_SHARE * run.wall.ns)
    ]
    missed = tuple(sorted(shortfalls, key=lambda row: -row.ns))
    median_ns = round(float(np.median(bare))) if len(bare) else None
    return EndToEnd(run, median_ns, missed, _sentence(run, missed), _notes(run))


def _bare_ns(run: RunBudget) -> Ints:
    """Times of bare steps; the first step of an interval has the after-effects of an instrument."""
    if run.times is None or run.per != "step":
        return np.empty(0, dtype=np.int64)
    is_bare = run.times.phase == Phase.BARE
    bare_ns: Ints = run.times.ns[is_bare & np.append(False, is_bare[:-1])]
    return bare_ns


def _slow(run: RunBudget, bare: Ints) -> list[tuple[str, int, str, str]]:
    median = float(np.median(bare)) if len(bare) else 0.0
    slow = int((bare > SLOW * median).sum())
    if not slow:
        return []
    reasons = Counter(step.because.partition(":")[0].partition(" (")[0] for step in run.slowest)
    causes = ", ".join(f"{reason} {count}x" for reason, count in reasons.most_common())
    why = f"{slow:,} of {len(bare):,} steps took more than twice the median"
    why += f" (the slowest: {causes})" if causes else ""
    return [(SLOW_STEPS, round(bare.mean() - median), why, "")]


def _lacking(run: RunBudget) -> Iterator[tuple[str, int, str, str]]:
    for name, part, because, remedy in _LACKING:
        category = run.category(name)
        if part:
            yield f"{name}/{part}", category.part_ns(part), because, remedy
        else:
            yield name, category.ns, because, remedy


def _sentence(run: RunBudget, missed: tuple[Shortfall, ...]) -> str:
    if not run.samples and not missed:
        return f"nothing is known of the {run.per} but its time: there are no samples"
    if not missed:
        return f"a hot loop of the {run.per} would have missed nothing that a run shows"
    first = missed[0]
    more = f", and {len(missed) - 1} more" if len(missed) > 1 else ""
    return f"a hot loop of the {run.per} would have missed {first.figure} ({first.share:.1%} of it){more}"


def _notes(run: RunBudget) -> tuple[str, ...]:
    caches = "a run cannot tell what cold caches cost the step"
    further = "remedies are tried on a function: `advise my.py:step --inputs my.py:make`"
    if run.per != "step":
        further = "no steps were found, so slow steps are unknown: --step names one"
    return f"{caches}: `profile TARGET --cold SIZE` does", further
