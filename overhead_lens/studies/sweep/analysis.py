"""A size sweep: the line ``time = overhead + n / rate`` of every variant, whether it fits, and where the lines cross.

All sizes of all variants are timed in the same processes. One bootstrap draws processes for all of them
together; every line and every crossing is computed in each of its replicates, and an interval is what 95 % of them hold.

A line does not fit where, at some size, it misses the measured time by more than ``TOLERANCE_SHARE`` and by more than the
timing's own error (95 % for all sizes of a variant together): caches, a second algorithm from some size on. It fits where it
misses no size by more than the tolerance; in between the timings cannot tell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from overhead_lens.budget.thresholds import DISTURBED_BLOCKS_SHARE
from overhead_lens.budget.wall import undisturbed
from overhead_lens.errors import UsageError
from overhead_lens.result import Result
from overhead_lens.stats.bootstrap import PairedSides, paired_sides
from overhead_lens.stats.line_fit import Line, crossing, fit_line, fit_lines
from overhead_lens.stats.values import Floats, Interval
from overhead_lens.studies.sweep.stored import SweepMeta, read_sweep
from overhead_lens.subject import Subject

TOLERANCE_SHARE = 0.1

FITS = FIT, DOES_NOT_FIT, UNDECIDED, NOT_CHECKED = ("fits", "does not fit", "undecided", "not checked")

# A stretched replicate of a noisy timing can fall below zero, where no time is.
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class SweptPoint:
    """One size of one variant.

    Attributes:
        params: The swept parameters.
        size: What time is fitted against.
        ns: Median over processes, per call.
        ci95_ns: Its interval.
        residual_share: How far the fitted line lies above the measured time, as a share of it.
        residual_ci95: Its interval, for all sizes of the variant together.
        published_ns: What others measured.
    """

    params: Mapping[str, int]
    size: int
    ns: float
    ci95_ns: Interval
    residual_share: float
    residual_ci95: Interval
    published_ns: float | None

    @property
    def misses(self) -> bool:
        """Whether the line misses this point beyond the tolerance and beyond the timing's error."""
        low, high = self.residual_ci95
        return abs(self.residual_share) > TOLERANCE_SHARE and not low <= 0 <= high


@dataclass(frozen=True, slots=True)
class SweptVariant:
    """One variant: its points by ascending size and its line.

    Attributes:
        line: Overhead in ns per call, ns per element.
        overhead_ci95_ns, element_ci95_ns: Their intervals.
        published: The line through what others measured; None below two of their sizes.
    """

    name: str
    points: tuple[SweptPoint, ...]
    line: Line
    overhead_ci95_ns: Interval
    element_ci95_ns: Interval
    published: Line | None

    @property
    def fit(self) -> str:
        """One of ``FITS``."""
        if len(self.points) < 3:
            return NOT_CHECKED
        if any(point.misses for point in self.points):
            return DOES_NOT_FIT
        return FIT if all(abs(point.residual_share) <= TOLERANCE_SHARE for point in self.points) else UNDECIDED

    @property
    def published_overhead(self) -> bool:
        """Whether others measured the smallest size, without which their line says little about the overhead."""
        return self.published is not None and self.points[0].published_ns is not None


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where the lines of two variants cross.

    Attributes:
        below, above: Which of the two is faster below and above; without a crossing ``below`` is faster at every size.
        size: Where; None without a crossing.
        ci95: Its interval, from 0 to infinity at most; None without a crossing.
        between: Neighbouring measured sizes between which the order of the two changes; None unless it does so once.
        published: Where the published lines cross.
    """

    below: str
    above: str
    size: float | None
    ci95: Interval | None
    between: tuple[int, int] | None
    published: float | None


@dataclass(frozen=True, slots=True)
class Sweep(Result):
    """All variants of one scenario over the same sizes.

    Attributes:
        params: Those that stay.
        against: What time is fitted against: the swept parameter, ``bytes`` or ``flops``.
        fastest: At each size, the fastest variant and those whose intervals reach as low as its own ends.
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
        """Which variant is the fastest from where on; empty for one variant alone."""
        if len(self.variants) < 2:
            return ""
        runs = [(name, [size for _, size in run]) for name, run in itertools.groupby(self._won(), lambda won: won[0])]
        parts = [f"{name} at {self.against} = {_range(sizes)}" for name, sizes in runs]
        return f"Fastest: {', '.join(parts)}."

    def _won(self) -> list[tuple[str, int]]:
        return [(" or ".join(names), size) for names, size in zip(self.fastest, self.sizes, strict=True)]


@dataclass(frozen=True, slots=True)
class _Lines:
    """A variant with the replicates of its line: float64, shape ``(REPLICATES,)`` each."""

    variant: SweptVariant
    overhead_ns: Floats
    element_ns: Floats


def sweep_of(path: Path) -> Sweep:
    """A stored sweep.

    Raises:
        UsageError: It is no sweep, or a damaged one.
    """
    meta, rows = read_sweep(path)
    try:
        return make_sweep(meta, rows, str(path))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"the sweep {path} is damaged: {type(error).__name__}: {error}") from error


def make_sweep(meta: SweepMeta, rows: pd.DataFrame, directory: str) -> Sweep:
    """The sweep of stored blocks.

    Args:
        meta: ``meta.json`` of the sweep.
        rows: ``process``, ``variant``, ``point``, ``block``, ``calls``, ``wall_ns``, ``reference_ns``.
        directory: Where it is stored.
    """
    kept = undisturbed(
        rows.assign(rung=[_side(*each) for each in zip(rows["variant"], rows["point"], strict=True)]),
        ("process", "rung"),
    )
    sides = paired_sides(kept)
    params = meta.points[0].params
    found = [_variant(name, meta, sides) for name in meta.variants]
    variants = tuple(each.variant for each in found)
    return Sweep(
        replace(meta.subject, params={name: params[name] for name in params if name not in meta.swept}),
        meta.against.name,
        int(rows["process"].nunique()),
        variants,
        tuple(_crossing(left, right) for left, right in itertools.combinations(found, 2)),
        tuple(_fastest_at(variants, at) for at in range(len(variants[0].points))),
        tuple(_warnings(meta, len(kept) / len(rows))),
        meta.environment,
        directory,
    )


def _fastest_at(variants: Sequence[SweptVariant], at: int) -> tuple[str, ...]:
    least_ns = min(variant.points[at].ci95_ns[1] for variant in variants)
    return tuple(variant.name for variant in variants if variant.points[at].ci95_ns[0] <= least_ns)


def _side(variant: str, point: int) -> str:
    return f"{point} {variant}"


def _variant(name: str, meta: SweepMeta, sides: PairedSides) -> _Lines:
    sizes = meta.against.sizes
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    estimates = [sides.estimate(_side(name, at)) for at in order]
    ascending = np.array([sizes[at] for at in order], dtype=np.float64)
    line = fit_line([(sizes[at], each.value) for at, each in zip(order, estimates, strict=True)])
    drawn = np.stack([np.maximum(each.replicates, _LEAST_SHARE * each.value) for each in estimates], axis=1)
    overheads_ns, elements_ns = fit_lines(ascending, drawn)
    missed = (overheads_ns[:, None] + elements_ns[:, None] * ascending) / drawn - 1
    tail = 0.025 / len(order)
    published = [_published(meta, name, meta.points[at].params) for at in order]
    points = []
    for at, estimate, theirs, times_ns, misses in zip(order, estimates, published, drawn.T, missed.T, strict=True):
        residual = (line.overhead_ns + sizes[at] * line.element_ns) / estimate.value - 1
        params = {each: meta.points[at].params[each] for each in meta.swept}
        spread = _interval(misses, residual, tail)
        timed = _interval(times_ns, estimate.value)
        points.append(SweptPoint(params, sizes[at], estimate.value, timed, residual, spread, theirs))
    known = [(point.size, point.published_ns) for point in points if point.published_ns]
    variant = SweptVariant(
        name,
        tuple(points),
        line,
        _interval(overheads_ns, line.overhead_ns),
        _interval(elements_ns, line.element_ns),
        fit_line(known) if len({size for size, _ in known}) > 1 else None,
    )
    return _Lines(variant, overheads_ns, elements_ns)


def _published(meta: SweepMeta, variant: str, params: Mapping[str, Any]) -> float | None:
    for each in meta.published:
        same_call = each.variant == variant and each.compile == meta.subject.compile and not each.rung
        if same_call and {**meta.default_params, **each.params} == params:
            return float(each.ns)
    return None


def _crossing(left: _Lines, right: _Lines) -> Crossing:
    lines = (left.variant.line, right.variant.line)
    size = crossing(*lines)
    published = _published_crossing(left.variant, right.variant)
    if size is None:
        first, last = sorted((left, right), key=_steepness)
        return Crossing(first.variant.name, last.variant.name, None, None, _between(first, last), published)
    below, above = (left, right) if lines[0].overhead_ns < lines[1].overhead_ns else (right, left)
    head_start, gain = above.overhead_ns - below.overhead_ns, below.element_ns - above.element_ns
    # A replicate in which the one with less overhead is also the faster one never crosses; one without a head start does at 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.where(head_start <= 0, 0.0, np.where(gain <= 0, math.inf, head_start / gain))
    between = _between(below, above)
    return Crossing(below.variant.name, above.variant.name, size, _interval(drawn, size), between, published)


def _steepness(lines: _Lines) -> tuple[float, float]:
    line = lines.variant.line
    return line.element_ns, line.overhead_ns


def _published_crossing(left: SweptVariant, right: SweptVariant) -> float | None:
    if not (left.published_overhead and right.published_overhead):
        return None
    assert left.published is not None
    assert right.published is not None
    return crossing(left.published, right.published)


def _between(below: _Lines, above: _Lines) -> tuple[int, int] | None:
    points = list(zip(below.variant.points, above.variant.points, strict=True))
    wins = [first.ns <= last.ns for first, last in points]
    flips = [at for at in range(1, len(wins)) if wins[at] != wins[at - 1]]
    return (points[flips[0] - 1][0].size, points[flips[0]][0].size) if len(flips) == 1 else None


def _interval(drawn: Floats, value: float, tail: float = 0.025) -> Interval:
    # Of two neighbours the outer one: nothing can be interpolated to infinity.
    low = float(np.quantile(drawn, tail, method="lower"))
    high = float(np.quantile(drawn, 1 - tail, method="higher"))
    return min(low, value), max(high, value)


def _warnings(meta: SweepMeta, kept_share: float) -> list[str]:
    found = []
    if meta.unsettled:
        found.append(f"{meta.unsettled} workloads had not settled after their warm-up: their blocks may still drift")
    if 1 - kept_share > DISTURBED_BLOCKS_SHARE:
        found.append(f"{1 - kept_share:.0%} of the blocks were left out: the machine was disturbed")
    return found


def _range(sizes: Sequence[int]) -> str:
    return f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
