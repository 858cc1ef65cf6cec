"""Fits the line ``time = overhead + n / rate``, and crosses two lines.

Least squares of the relative errors, since timings of 100 ns and of 100 ms err by the same share: a point's weight is the inverse
square of its time. Neither overhead nor time per element is negative: where the free line has a negative one, the best line
without it is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.stats.values import Floats


@dataclass(frozen=True, slots=True)
class Line:
    """``overhead_ns + n * element_ns``, and the largest relative error of its points."""

    overhead_ns: float
    element_ns: float
    worst_share: float


def fit_line(points: Sequence[tuple[int, float]]) -> Line:
    """The line through points ``(n, ns)`` of at least two sizes."""
    sizes, ns = (np.array(column, dtype=np.float64) for column in zip(*points, strict=True))
    overhead_ns, element_ns = (float(values[0]) for values in fit_lines(sizes, ns[None, :]))
    worst = np.abs((overhead_ns + sizes * element_ns) / ns - 1).max()
    return Line(overhead_ns, element_ns, float(worst))


def fit_lines(sizes: Floats, ns: Floats) -> tuple[Floats, Floats]:
    """Many lines over the same sizes.

    Args:
        sizes: float64, shape ``(points,)``, at least two different ones.
        ns: Times above 0, float64, shape ``(lines, points)``.

    Returns:
        ``overhead_ns`` and ``element_ns``, float64, shape ``(lines,)``.
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
    """The n above which the line with the larger overhead is faster; None without a crossing."""
    if left.element_ns == right.element_ns:
        return None
    n = (right.overhead_ns - left.overhead_ns) / (left.element_ns - right.element_ns)
    return n if n > 0 else None
