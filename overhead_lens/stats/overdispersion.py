"""Overdispersion of stack counts: their variance over that of independent counts.

The sampler hits one place repeatedly where the machine gives the target no time in between, and processes differ by layout.
Both show as differences between the processes of one side, the first also between consecutive blocks of one process.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from overhead_lens.stats.values import Floats


def overdispersion(sides: Sequence[Floats]) -> Floats:
    """Overdispersion of each row, at least 1, shape ``(rows,)``.

    Pearson's chi-square of the processes, or blocks, over its degrees of freedom, of the row itself or the median of all rows,
    whichever is larger.

    Args:
        sides: Counts by side, shape ``(rows, processes)`` or ``(rows, blocks)``.
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
    return np.maximum(own, max(1.0, usual))
