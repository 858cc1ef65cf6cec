"""The line ``time = overhead + n / rate``: fitted, and crossed with another one.

Weighted least squares of the relative errors: each point counts with the inverse square of its own time, since a timing of
100 ns and one of 100 ms are wrong by the same share rather than by the same time. For small errors that is least squares of the
logarithms, in closed form. Neither an overhead nor a time per element is below zero: where the free line has one, the best
line without it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.stats.values import Floats


@dataclass(frozen=True, slots=True)
class Line:
    """``overhead_ns + n * element_ns``, and the largest error relative to a point it was fitted to."""

    overhead_ns: float
    element_ns: float
    worst_share: float


def fit_line(points: Sequence[tuple[int, float]]) -> Line:
    """The line of ``(n, ns)`` of two sizes at least."""
    sizes = np.array([n for n, _ in points], dtype=np.float64)
    ns = np.array([each for _, each in points], dtype=np.float64)
    overhead_ns, element_ns = (float(each[0]) for each in fit_lines(sizes, ns[None, :]))
    worst = np.abs((overhead_ns + sizes * element_ns) / ns - 1).max()
    return Line(overhead_ns, element_ns, float(worst))


def fit_lines(sizes: Floats, ns: Floats) -> tuple[Floats, Floats]:
    """Many lines over the same sizes.

    Args:
        sizes: float64, shape ``(points,)``, two different ones at least.
        ns: Times above 0, float64, shape ``(lines, points)``.

    Returns:
        ``overhead_ns`` and ``element_ns``, float64, shape ``(lines,)`` each.
    """
    weights = 1 / ns**2
    total = weights.sum(axis=1)
    center, height = (weights * sizes).sum(axis=1) / total, (weights * ns).sum(axis=1) / total
    away = sizes - center[:, None]
    element_ns = (weights * away * ns).sum(axis=1) / (weights * away**2).sum(axis=1)
    overhead_ns = height - element_ns * center
    through_zero = (weights * sizes * ns).sum(axis=1) / (weights * sizes**2).sum(axis=1)
    no_overhead, flat = overhead_ns < 0, element_ns < 0
    return (
        np.where(flat, height, np.where(no_overhead, 0.0, overhead_ns)),
        np.where(flat, 0.0, np.where(no_overhead, through_zero, element_ns)),
    )


def crossing(left: Line, right: Line) -> float | None:
    """The n from which on the side with the larger overhead is the faster one; None if there is none."""
    if left.element_ns == right.element_ns:
        return None
    n = (right.overhead_ns - left.overhead_ns) / (left.element_ns - right.element_ns)
    return n if n > 0 else None
