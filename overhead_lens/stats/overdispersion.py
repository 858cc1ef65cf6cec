"""How much more counts of stacks scatter than independent ones.

The sampler stops the target again and again at one place where the machine gives it no time in between, and processes differ by
layout. What is seen of either is how the processes of one side differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from overhead_lens.stats.values import Floats


def overdispersion(sides: Sequence[Floats]) -> Floats:
    """How many times the variance of independent counts those of one row have, shape ``(rows,)``, at least 1.

    Pearson's chi-square of the processes over its degrees of freedom: of the row itself or of the middle one of all rows,
    whichever is larger. A clump lies in one row, and shows there: all stacks of one process of six count for one.

    Args:
        sides: Counts of each side, shape ``(rows, processes)``; a process's stacks are those of its column.
    """
    chi_square = np.zeros(len(sides[0]))
    degrees_of_freedom = np.zeros(len(sides[0]))
    for counts in sides:
        share = counts.sum(axis=1, keepdims=True) / max(float(counts.sum()), 1.0)
        variance = share * (1 - share) * counts.sum(axis=0)
        expected = share * counts.sum(axis=0)
        distance = np.divide((counts - expected) ** 2, variance, out=np.zeros_like(counts), where=variance > 0)
        chi_square += distance.sum(axis=1)
        degrees_of_freedom += (variance > 0).any(axis=1) * (counts.shape[1] - 1)
    own = np.divide(chi_square, degrees_of_freedom, out=np.ones_like(chi_square), where=degrees_of_freedom > 0)
    usual = float(np.median(own[degrees_of_freedom > 0])) if (degrees_of_freedom > 0).any() else 1.0
    found: Floats = np.maximum(own, max(1.0, usual))
    return found
