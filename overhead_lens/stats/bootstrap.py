"""Medians over processes with a bootstrap over processes, alone and as paired differences.

Processes differ more than blocks do (address layout, hash seed, physical pages), and their differences include the error of their
medians. So processes are resampled, and blocks only where there is a single process.

The percentile interval of a median of few processes is too narrow. It is rescaled about the estimate by a factor that restores
95 % for normally distributed processes; ``tests/stats/test_wall_interval.py`` simulates its coverage. A time is positive, so
its ratio to the estimate is rescaled, as a power::

    processes     20 ms   21 ms   22 ms      ratios   0.95   1   1.05      to the power of 4.2      0.81   1   1.22

Differences of two sides are rescaled as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from overhead_lens.stats.estimate import FEWEST_PROCESSES, NO_INTERVAL, OVER_BLOCKS, OVER_PROCESSES, range_of
from overhead_lens.stats.values import Floats, Interval

REPLICATES = 2_000

# A seed makes the analysis of a stored capture repeatable.
_SEED = 20_240_229

_SCALES = {1: 1.0, 2: 12.5, 3: 4.2, 4: 1.6, 5: 1.15, 6: 1.1, 7: 1.6}
_SCALE_OF_MANY = 1.2


def interval_scale(processes: int) -> float:
    """Factor that makes the interval of a median over ``processes`` cover 95 %."""
    return _SCALES.get(processes, _SCALE_OF_MANY)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A quantity per call with its bootstrap replicates, rescaled about the estimate.

    Attributes:
        value: Point estimate per call, in the column's unit.
        replicates: float64, shape ``(REPLICATES,)``.
        method: How they were drawn, as ``Measured.interval`` says it.
        few: Lowest and highest of fewer than ``FEWEST_PROCESSES`` processes; None of more, and of one.
    """

    value: float
    replicates: Floats
    method: str = OVER_PROCESSES
    few: Interval | None = None

    def interval(self) -> Interval:
        """95 % percentile interval that contains the estimate."""
        low, high = np.quantile(self.replicates, [0.025, 0.975])
        return min(float(low), self.value), max(float(high), self.value)

    def reported(self) -> Interval:
        """The interval that a report gives, made by ``method``: of few processes their range."""
        return self.interval() if self.few is None else self.few


def exactly(value: float) -> Estimate:
    """A value that was measured once: how far it may be off is unknown."""
    return Estimate(value, np.full(REPLICATES, value), NO_INTERVAL)


def median_over_processes(per_process: Sequence[Floats], *, statistic: str = "median") -> Estimate:
    """Median over processes of each process's median (or mean).

    Args:
        per_process: Values of each process, not below 0.
        statistic: ``median`` of a process's blocks, or ``mean`` for counts that are 0 in most blocks.
    """
    reduce, alone = (np.median, _median) if statistic == "median" else (np.mean, np.mean)
    own = [float(alone(blocks)) for blocks in per_process]
    value, processes = float(np.median(own)), len(own)
    random = np.random.default_rng(_SEED)
    resampled = _values(per_process, own, reduce, random)
    replicates = _ratios(resampled, random.integers(0, processes, (processes, REPLICATES)), value)
    return _of_processes(value, replicates, own)


def _of_processes(value: float, replicates: Floats, own: Sequence[float] | Floats) -> Estimate:
    """The estimate from one value per process, ``own``; the interval of few processes is their range."""
    if len(own) == 1:
        return Estimate(value, replicates, OVER_BLOCKS)
    if len(own) < FEWEST_PROCESSES:
        return Estimate(value, replicates, range_of(len(own)), (float(min(own)), float(max(own))))
    return Estimate(value, replicates)


@dataclass(frozen=True, slots=True)
class PairedSides:
    """Quantities measured in the same processes, for the differences between them.

    Attributes:
        values: Per-process medians by side, float64, shape ``(processes,)``.
        resampled: Values that replicates are drawn from, by side, float64, shape ``(processes, REPLICATES)``.
        chosen: Processes of each replicate, the same for every side, int64, shape ``(processes, REPLICATES)``.
    """

    values: Mapping[str, Floats]
    resampled: Mapping[str, Floats]
    chosen: npt.NDArray[np.int64]

    def estimate(self, side: str, less: str | None = None) -> Estimate:
        """A side, or its paired difference to the side ``less``."""
        values, resampled, replicates = self.values[side], self.resampled[side], _ratios
        if less is not None:
            values, resampled, replicates = values - self.values[less], resampled - self.resampled[less], _differences
        value = float(np.median(values))
        return _of_processes(value, replicates(resampled, self.chosen, value), values)

    def difference(self, side: str, less: str) -> tuple[float, Interval] | None:
        """The paired difference of two sides with its interval; None for a missing side."""
        if not {side, less} <= self.values.keys():
            return None
        estimate = self.estimate(side, less)
        return estimate.value, estimate.interval()


def paired_sides(rows: pd.DataFrame) -> PairedSides:
    """Sides (``rung``) timed in turns in the same processes.

    Args:
        rows: ``process``, ``rung``, ``calls`` and ``wall_ns``; sides that some process lacks are dropped.
    """
    processes = rows["process"].nunique()
    if not processes:
        return PairedSides({}, {}, np.empty((0, REPLICATES), np.int64))
    per_call = (rows["wall_ns"] / rows["calls"]).astype(np.float64)
    random = np.random.default_rng(_SEED)
    chosen = random.integers(0, processes, (processes, REPLICATES))
    values, resampled = {}, {}
    for side, of_side in per_call.groupby(rows["rung"], sort=False):
        per_process = [blocks.to_numpy() for _, blocks in of_side.groupby(rows["process"], sort=True)]
        if len(per_process) == processes:
            values[str(side)] = np.array([np.median(blocks) for blocks in per_process])
            resampled[str(side)] = _values(per_process, values[str(side)], np.median, random)
    return PairedSides(values, resampled, chosen)


def _values(
    per_process: Sequence[Floats], own: Sequence[float] | Floats, reduce: object, random: np.random.Generator
) -> Floats:
    """Values of the processes that replicates are drawn from, float64, shape ``(processes, REPLICATES)``; ``own`` are theirs."""
    assert callable(reduce)
    if len(per_process) > 1:
        return np.broadcast_to(np.asarray(own)[:, None], (len(own), REPLICATES))
    return np.stack(
        [reduce(blocks[random.integers(0, len(blocks), (REPLICATES, len(blocks)))], axis=1) for blocks in per_process]
    )


def _ratios(resampled: Floats, chosen: npt.NDArray[np.int64], value: float) -> Floats:
    """Replicates of a median that is not below 0; of one that is 0, ratios say nothing."""
    if not value:
        return np.maximum(_differences(resampled, chosen, value), 0.0)
    medians = _medians(resampled, chosen)
    return medians * (medians / value) ** (interval_scale(len(resampled)) - 1)


def _differences(resampled: Floats, chosen: npt.NDArray[np.int64], value: float) -> Floats:
    return value + interval_scale(len(resampled)) * (_medians(resampled, chosen) - value)


def _medians(resampled: Floats, chosen: npt.NDArray[np.int64]) -> Floats:
    return _median(np.take_along_axis(resampled, chosen, axis=0))


def _median(values: Floats) -> Floats:
    """The medians along the first axis; of few values in half the time of ``np.median``."""
    ordered = np.sort(values, axis=0)
    middle = len(ordered) // 2
    medians: Floats = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return medians
