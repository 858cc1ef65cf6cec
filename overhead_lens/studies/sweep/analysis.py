"""Fits ``time = overhead + n / rate`` to every variant, and crosses the lines.

All sizes of all variants are timed in the same processes. One bootstrap draws processes for all of them; lines and crossings are
computed in every replicate, and an interval holds 95 % of the replicates.

A line does not fit if it misses some size by more than ``TOLERANCE_SHARE`` and by more than the timing's error (95 % for all
sizes of a variant together): caches, or another algorithm for large sizes. It fits if it misses no size by more than the
tolerance. Otherwise the timings cannot decide.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from overhead_lens.budget.thresholds import DISTURBED_BLOCKS_SHARE
from overhead_lens.budget.wall import undisturbed
from overhead_lens.contract import derive
from overhead_lens.errors import UsageError, in_one_line
from overhead_lens.result import Result
from overhead_lens.stats.bootstrap import PairedSides, paired_sides
from overhead_lens.stats.line_fit import Line, crossing, fit_line, fit_lines
from overhead_lens.stats.values import Floats, Interval
from overhead_lens.studies.sweep.stored import SweepMeta, read_sweep
from overhead_lens.subject import Subject

TOLERANCE_SHARE = 0.1

FITS = FIT, DOES_NOT_FIT, UNDECIDED, NOT_CHECKED = ("fits", "does not fit", "undecided", "not checked")

# Rescaled replicates of a noisy timing can fall below 0; they are kept above this share of the estimate.
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class SweptPoint:
    """A size: time per call in ns, and the line's deviation as a share; ``misses`` if it exceeds tolerance and error."""

    params: Mapping[str, int]
    size: int  # The n of the line.
    ns: float  # Median over processes.
    ci95_ns: Interval
    residual_share: float
    residual_ci95: Interval  # Simultaneous for all sizes of the variant.
    misses: bool = field(init=False)

    def __post_init__(self) -> None:
        low, high = self.residual_ci95
        derive(self, misses=abs(self.residual_share) > TOLERANCE_SHARE and not low <= 0 <= high)


@dataclass(frozen=True, slots=True)
class SweptVariant:
    """One variant: its points by ascending size and its line."""

    name: str
    points: tuple[SweptPoint, ...]
    line: Line
    overhead_ci95_ns: Interval
    element_ci95_ns: Interval

    @property
    def fit(self) -> str:
        """One of ``FITS``."""
        if len(self.points) < 3:
            return NOT_CHECKED
        if any(point.misses for point in self.points):
            return DOES_NOT_FIT
        return FIT if all(abs(point.residual_share) <= TOLERANCE_SHARE for point in self.points) else UNDECIDED


@dataclass(frozen=True, slots=True)
class Crossing:
    """The crossing of two variants' lines.

    Attributes:
        below, above: The faster variant below and above; without a crossing ``below`` is faster at every size.
        size: None without a crossing.
        ci95: From 0 to infinity at most; None without a crossing.
        between: Neighbouring measured sizes between which the faster variant changes; None unless it changes once.
    """

    below: str
    above: str
    size: float | None
    ci95: Interval | None
    between: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Sweep(Result):
    """All variants of one scenario over the same sizes.

    Attributes:
        subject: The call; its parameters are those that stay.
        against: Name of the size: the swept parameter, ``bytes`` or ``flops``.
        fastest: By size, the fastest variant and those whose intervals overlap its own.
    """

    subject: Subject
    against: str
    processes: int
    variants: tuple[SweptVariant, ...]
    crossings: tuple[Crossing, ...]
    fastest: tuple[tuple[str, ...], ...]
    warnings: tuple[str, ...]
    environment: Mapping[str, Any]
    directory: str

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes, ascending."""
        return tuple(point.size for point in self.variants[0].points)

    @property
    def sentence(self) -> str:
        """The fastest variants by ranges of sizes; empty for a single variant."""
        if len(self.variants) < 2:
            return ""
        parts = []
        for names, run in itertools.groupby(zip(self.fastest, self.sizes, strict=True), lambda pair: pair[0]):
            first, *others = [f"{size:,}" for _, size in run]
            sizes = f"{first} to {others[-1]}" if others else first
            parts.append(f"{' or '.join(names)} at {self.against} = {sizes}")
        return f"Fastest: {', '.join(parts)}."


@dataclass(frozen=True, slots=True)
class _Lines:
    """A variant with the replicates of its line: float64, shape ``(REPLICATES,)`` each."""

    variant: SweptVariant
    overhead_ns: Floats
    element_ns: Floats


def sweep_of(path: Path) -> Sweep:
    """The sweep stored in a directory.

    Raises:
        UsageError: It is not a sweep, or damaged.
    """
    meta, rows = read_sweep(path)
    try:
        return make_sweep(meta, rows, str(path))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"the sweep {path} is damaged: {in_one_line(error)}") from error


def make_sweep(meta: SweepMeta, rows: pd.DataFrame, directory: str) -> Sweep:
    """The sweep of blocks: ``process``, ``variant``, ``point``, ``block``, ``calls``, ``wall_ns``, ``reference_ns``."""
    numbers = {name: number for number, name in enumerate(meta.variants)}
    labels = [_side(numbers.get(name, -1), point) for name, point in zip(rows["variant"], rows["point"], strict=True)]
    blocks = undisturbed(rows.assign(rung=labels), ("process", "rung"))
    sides = paired_sides(blocks)
    params = meta.points[0].params
    lines = [_variant(number, meta, sides) for number in range(len(meta.variants))]
    variants = tuple(line.variant for line in lines)
    return Sweep(
        replace(meta.subject, params={name: params[name] for name in params if name not in meta.swept}),
        meta.against.name,
        int(rows["process"].nunique()),
        variants,
        tuple(_crossing(left, right) for left, right in itertools.combinations(lines, 2)),
        tuple(_fastest_at(variants, at) for at in range(len(variants[0].points))),
        tuple(_warnings(meta, len(blocks) / len(rows))),
        meta.environment,
        directory,
    )


def _fastest_at(variants: Sequence[SweptVariant], at: int) -> tuple[str, ...]:
    least_ns = min(variant.points[at].ci95_ns[1] for variant in variants)
    return tuple(variant.name for variant in variants if variant.points[at].ci95_ns[0] <= least_ns)


def _side(variant: int, point: int) -> str:
    """By number: pandas 2 ends a text at a NUL."""
    return f"{point} {variant}"


def _variant(number: int, meta: SweepMeta, sides: PairedSides) -> _Lines:
    sizes = meta.against.sizes
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    estimates = [sides.estimate(_side(number, at)) for at in order]
    ascending = np.array([sizes[at] for at in order], dtype=np.float64)
    line = fit_line([(sizes[at], estimate.value) for at, estimate in zip(order, estimates, strict=True)])
    drawn_ns = [np.maximum(estimate.replicates, _LEAST_SHARE * estimate.value) for estimate in estimates]
    overheads_ns, elements_ns = fit_lines(ascending, np.stack(drawn_ns, axis=1))
    points = []
    for at, estimate, times_ns in zip(order, estimates, drawn_ns, strict=True):
        residual = (line.overhead_ns + sizes[at] * line.element_ns) / estimate.value - 1
        residuals = (overheads_ns + elements_ns * float(sizes[at])) / times_ns - 1
        params = {name: meta.points[at].params[name] for name in meta.swept}
        ci95_ns, off = _interval(times_ns, estimate.value), _interval(residuals, residual, 0.025 / len(order))
        points.append(SweptPoint(params, sizes[at], estimate.value, ci95_ns, residual, off))
    intervals = _interval(overheads_ns, line.overhead_ns), _interval(elements_ns, line.element_ns)
    return _Lines(SweptVariant(meta.variants[number], tuple(points), line, *intervals), overheads_ns, elements_ns)


def _crossing(left: _Lines, right: _Lines) -> Crossing:
    lines = (left.variant.line, right.variant.line)
    size = crossing(*lines)
    if size is None:
        first, last = sorted(
            (left, right), key=lambda side: (side.variant.line.element_ns, side.variant.line.overhead_ns)
        )
        return Crossing(first.variant.name, last.variant.name, None, None, _between(first, last))
    below, above = (left, right) if lines[0].overhead_ns < lines[1].overhead_ns else (right, left)
    head_start, gain = above.overhead_ns - below.overhead_ns, below.element_ns - above.element_ns
    # A replicate crosses at 0 without a head start, and never without a gain per element.
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.where(head_start <= 0, 0.0, np.where(gain <= 0, math.inf, head_start / gain))
    return Crossing(below.variant.name, above.variant.name, size, _interval(drawn, size), _between(below, above))


def _between(below: _Lines, above: _Lines) -> tuple[int, int] | None:
    points = list(zip(below.variant.points, above.variant.points, strict=True))
    wins = [first.ns <= last.ns for first, last in points]
    flips = [at for at in range(1, len(wins)) if wins[at] != wins[at - 1]]
    return (points[flips[0] - 1][0].size, points[flips[0]][0].size) if len(flips) == 1 else None


def _interval(drawn: Floats, value: float, tail: float = 0.025) -> Interval:
    # Outer neighbours: infinite replicates cannot be interpolated.
    low = float(np.quantile(drawn, tail, method="lower"))
    high = float(np.quantile(drawn, 1 - tail, method="higher"))
    return min(low, value), max(high, value)


def _warnings(meta: SweepMeta, undisturbed_share: float) -> Iterator[str]:
    if meta.unsettled:
        yield f"{meta.unsettled} workloads had not settled after their warm-up: their blocks may still drift"
    if 1 - undisturbed_share > DISTURBED_BLOCKS_SHARE:
        yield f"{1 - undisturbed_share:.0%} of the blocks were left out: the machine was disturbed"
