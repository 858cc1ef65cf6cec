"""Overdispersion of stack counts: their variance over that of independent counts.

The sampler hits one place repeatedly where the machine gives the target no time in between, and processes differ by layout.
Both show as differences between the processes of one side, the first also between consecutive blocks of one process.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from overhead_lens.stats.values import Bools, Floats


def overdispersion(sides: Sequence[Floats]) -> Floats:
    """Overdispersion of each row, at least 1, shape ``(rows,)``.

    Pearson's chi-square of the processes, or blocks, over its degrees of freedom, of the row itself or the median of all rows,
    whichever is larger.

    Args:
        sides: Counts by side, shape ``(rows, processes)`` or ``(rows, blocks)``.
    """
    own, is_known = _of_rows(sides)
    usual = float(np.median(own[is_known])) if is_known.any() else 1.0
    return np.maximum(own, max(1.0, usual))


def overdispersion_by_size(sides: Sequence[Floats]) -> Floats:
    """``overdispersion``, and at least what the row's size suggests, shape ``(rows,)``.

    If all times differ between processes by the same share, a count's overdispersion less 1 grows in proportion to the count. The
    proportion is fitted to all rows: two or three processes can agree by chance in one row, but not in many.
    """
    own, _ = _of_rows(sides)
    sizes = np.sum([counts.sum(axis=1) for counts in sides], axis=0)
    slope = float(sizes @ (own - 1)) / max(float(sizes @ sizes), 1.0)
    by_size: Floats = np.maximum(overdispersion(sides), 1 + slope * sizes)
    return by_size


def _of_rows(sides: Sequence[Floats]) -> tuple[Floats, Bools]:
    """Each row's own overdispersion, and whether it is known; else it is 1."""
    chi_square = np.zeros(len(sides[0]))
    degrees_of_freedom = np.zeros(len(sides[0]))
    for counts in sides:
        share = counts.sum(axis=1, keepdims=True) / max(float(counts.sum()), 1.0)
        variance = share * (1 - share) * counts.sum(axis=0)
        expected = share * counts.sum(axis=0)
        distance = np.divide((counts - expected) ** 2, variance, out=np.zeros_like(counts), where=variance > 0)
        chi_square += distance.sum(axis=1)
        degrees_of_freedom += (variance > 0).any(axis=1) * (counts.shape[1] - 1)
    is_known = degrees_of_freedom > 0
    return np.divide(chi_square, degrees_of_freedom, out=np.ones_like(chi_square), where=is_known), is_known
