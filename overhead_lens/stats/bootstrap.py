"""Medians over processes with a bootstrap over processes, alone and as paired differences.

Processes differ more than blocks do (address layout, hash seed, physical pages), and what they are seen to differ by holds
the error of each one's median already, so only they are resampled: blocks as well would count that error twice. Only a
single process has its blocks resampled.

A median of few processes has few possible values, and its percentile interval covers too seldom (75 % instead of 95 %
for three). The interval is therefore stretched about the estimate by a factor that restores 95 % for normally
distributed values of processes; ``scripts/validation/wall_interval.py`` simulates what it covers with the factor and without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from overhead_lens.stats.values import Floats, Interval

REPLICATES = 2_000

# A seed makes the analysis of a stored capture repeatable.
_SEED = 20_240_229

_STRETCH = {1: 1.0, 2: 12.5, 3: 4.2, 4: 1.6, 5: 1.15, 6: 1.1, 7: 1.6}
_STRETCH_OF_MANY = 1.2


def stretch(processes: int) -> float:
    """Factor that makes the interval of a median over so many processes a 95 % one."""
    return _STRETCH.get(processes, _STRETCH_OF_MANY)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A quantity per call with its bootstrap replicates, rescaled about the estimate.

    Attributes:
        value: Point estimate, in ns (or in whatever the column holds) per call.
        replicates: float64, shape ``(REPLICATES,)``.
    """

    value: float
    replicates: Floats

    def interval(self) -> tuple[float, float]:
        """95 % percentile interval that contains the estimate."""
        low, high = np.quantile(self.replicates, [0.025, 0.975])
        return min(float(low), self.value), max(float(high), self.value)


def median_over_processes(per_process: Sequence[Floats], *, statistic: str = "median") -> Estimate:
    """Median over processes of each process's median (or mean).

    Args:
        per_process: Values of each process, not below 0.
        statistic: ``median`` of a process's blocks, or ``mean`` for counts that most blocks see none of.
    """
    reduce = np.median if statistic == "median" else np.mean
    value = float(np.median([reduce(blocks) for blocks in per_process]))
    return Estimate(value, _replicates(per_process, value, reduce))


@dataclass(frozen=True, slots=True)
class PairedSides:
    """Quantities measured in the same processes, for the differences between them.

    Attributes:
        values: Per-process medians by side, float64, shape ``(processes,)`` each.
        resampled: What replicates draw from, by side, float64, shape ``(processes, REPLICATES)`` each.
        chosen: Processes drawn for each replicate, the same for every side, int64, shape ``(processes, REPLICATES)``.
    """

    values: Mapping[str, Floats]
    resampled: Mapping[str, Floats]
    chosen: npt.NDArray[np.int64]

    def estimate(self, side: str, less: str | None = None) -> Estimate:
        """A side, or its paired difference to another one."""
        values, resampled = self.values[side], self.resampled[side]
        if less is not None:
            values, resampled = values - self.values[less], resampled - self.resampled[less]
        value = float(np.median(values))
        replicates = _over_processes(resampled, self.chosen, value)
        return Estimate(value, replicates if less is not None else np.maximum(replicates, 0.0))

    def difference(self, side: str, less: str) -> tuple[float, Interval] | None:
        """The paired difference of two sides with its interval; None where one is missing."""
        if not {side, less} <= self.values.keys():
            return None
        estimate = self.estimate(side, less)
        return estimate.value, estimate.interval()


def paired_sides(rows: pd.DataFrame, column: str = "wall_ns") -> PairedSides:
    """Sides (``rung``) timed in turns in the same processes.

    Args:
        rows: ``process``, ``rung``, ``calls`` and ``column``; only sides that every process has are kept, none of no rows.
    """
    processes = rows["process"].nunique()
    if not processes:
        return PairedSides({}, {}, np.empty((0, REPLICATES), np.int64))
    per_call = (rows[column] / rows["calls"]).astype(np.float64)
    random = np.random.default_rng(_SEED)
    chosen = random.integers(0, processes, (processes, REPLICATES))
    values, resampled = {}, {}
    for side, of_side in per_call.groupby(rows["rung"], sort=False):
        blocks = [each.to_numpy() for _, each in of_side.groupby(rows["process"], sort=True)]
        if len(blocks) == processes:
            values[str(side)] = np.array([np.median(each) for each in blocks])
            resampled[str(side)] = _values(blocks, np.median, random)
    return PairedSides(values, resampled, chosen)


def _replicates(per_process: Sequence[Floats], value: float, reduce: object) -> Floats:
    random = np.random.default_rng(_SEED)
    resampled = _values(per_process, reduce, random)
    chosen = random.integers(0, len(per_process), (len(per_process), REPLICATES))
    return np.maximum(_over_processes(resampled, chosen, value), 0.0)


def _values(per_process: Sequence[Floats], reduce: object, random: np.random.Generator) -> Floats:
    """What each replicate draws processes from, float64, shape ``(processes, REPLICATES)``; see the module's docstring."""
    assert callable(reduce)
    if len(per_process) > 1:
        return np.tile([[reduce(blocks)] for blocks in per_process], REPLICATES)
    return np.stack(
        [reduce(blocks[random.integers(0, len(blocks), (REPLICATES, len(blocks)))], axis=1) for blocks in per_process]
    )


def _over_processes(resampled: Floats, chosen: npt.NDArray[np.int64], value: float) -> Floats:
    medians = np.median(np.take_along_axis(resampled, chosen, axis=0), axis=0)
    stretched: Floats = value + stretch(len(resampled)) * (medians - value)
    return stretched
