"""Leaves out stacks that a sampler took of a loop that stood still (pure).

A sampler that was blocked takes the stacks that were due meanwhile one right after another, while its target stands still::

    due      |     |     |     |     |     |     |
    taken    A     B    (blocked.....) CCCC       D

One repeat is ordinary: py-spy draws the times between stacks (exponentially distributed), and a third of them is shorter than it
takes to take a stack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

# Runs of equal stacks that chance makes less often than this, in all of a sampler's stacks, are one stack.
_CHANCE = 1e-4
# How often the next stack is due before one is taken.
_LATE_SHARE = 0.35


def without_overdue(stacks: Sequence[str], per_call: float) -> list[str]:
    """The stacks without those of a loop that stood still: of a run of equal ones that is too long for chance, the first counts.

    Args:
        stacks: In the order in which they were taken.
        per_call: Stacks that may fall into one call. Those of different calls are independent: of ``n`` stacks, one of share
            ``p`` begins about ``n * p**k`` runs through ``k`` calls, and at most ``n * _LATE_SHARE**k`` are late so often.
    """
    count_of = Counter(stacks)
    remaining: list[str] = []
    for stack, group in groupby(stacks):
        length = sum(1 for _ in group)
        share = max(_LATE_SHARE, count_of[stack] / len(stacks))
        by_chance = len(stacks) * share ** (length / max(1.0, per_call))
        remaining += [stack] * (length if by_chance >= _CHANCE else 1)
    return remaining
