"""Estimates the unprofiled wall time of one call from the timed blocks of several processes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overhead_lens.budget.thresholds import DISTURBED_BLOCK_SHARE
from overhead_lens.stats.bootstrap import Estimate, median_over_processes

_LEAST_BLOCKS = 3


def without_delays(clock: pd.DataFrame) -> pd.DataFrame:
    """Blocks whose ``wall_ns`` lacks the time that the calling thread waited for a core, which other programs had."""
    if "delayed_ns" not in clock:
        return clock
    without: pd.DataFrame = clock.assign(wall_ns=clock["wall_ns"] - clock["delayed_ns"]).drop(columns="delayed_ns")
    return without


def delay_ns_per_call(clock: pd.DataFrame) -> float:
    """Time that the threads of the process waited for a core, ns per call; 0 where that was not measured."""
    waited = sum(float(clock[name].sum()) for name in ("delayed_ns", "contended_ns") if name in clock)
    return waited / float(clock["calls"].sum())


def undisturbed(clock: pd.DataFrame, keep: tuple[str, ...] = ("process",)) -> pd.DataFrame:
    """Blocks with the machine at its usual speed, judged by the reference loop alone.

    The loop runs before and after every block and slows down when another program takes the core. Usual is its lower quartile
    over the capture. Every group of ``keep`` (a process, or one rung in one process) keeps at least its three least disturbed
    blocks. The blocks' own times do not decide, so the choice does not bias them. Delays are taken out.
    """
    clock = without_delays(clock)
    after = clock.groupby("process")["reference_ns"].shift(-1).fillna(clock["reference_ns"])
    disturbance = np.maximum(clock["reference_ns"], after) / clock["reference_ns"].quantile(0.25)
    rank = disturbance.groupby([clock[name] for name in keep]).rank(method="first")
    kept: pd.DataFrame = clock[(disturbance <= 1 + DISTURBED_BLOCK_SHARE) | (rank <= _LEAST_BLOCKS)]
    return kept


def time_column(clock: pd.DataFrame) -> str:
    """The column with a block's time: the steady one where blocks were timed in pieces."""
    return "steady_ns" if "steady_ns" in clock else "wall_ns"


def estimate_per_call(clock: pd.DataFrame, column: str, *, statistic: str = "median") -> Estimate:
    """Median over processes of the per-process median (or mean) of ``column`` per call.

    Args:
        clock: Rows with ``process``, ``calls`` and ``column``.
        column: ``wall_ns``, ``steady_ns``, ``system_ns`` or ``minor_faults``.
        statistic: ``median`` of a process's blocks, or ``mean`` for counts that are 0 in most blocks.
    """
    per_call = clock[column] / clock["calls"]
    per_process = [values.to_numpy(np.float64) for _, values in per_call.groupby(clock["process"], sort=True)]
    return median_over_processes(per_process, statistic=statistic)
