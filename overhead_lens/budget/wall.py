"""The unprofiled wall time of one call from blocks of several fresh processes, with a bootstrap over processes.

The estimate is the median over processes of each process's median block (``stats/bootstrap.py``).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from overhead_lens.budget.thresholds import DISTURBED_BLOCK_SHARE
from overhead_lens.stats.bootstrap import Estimate, median_over_processes

_LEAST_BLOCKS = 3


def undisturbed(clock: pd.DataFrame, keep: tuple[str, ...] = ("process",)) -> pd.DataFrame:
    """The blocks during which the machine ran at its usual speed, judged by the reference loop alone.

    The loop runs before each block, and so also after the one before; on a shared machine it shows when another tenant
    takes the core (1.6 times as long was seen). Usual is its lower quartile over the whole capture. Every group of ``keep``
    (a process, or one rung in one process) keeps its three least disturbed blocks at least. The timings themselves have no
    say in the choice, so it cannot flatter them.
    """
    after = clock.groupby("process")["reference_ns"].shift(-1).fillna(clock["reference_ns"])
    disturbance = np.maximum(clock["reference_ns"], after) / clock["reference_ns"].quantile(0.25)
    rank = disturbance.groupby([clock[name] for name in keep]).rank(method="first")
    kept: pd.DataFrame = clock[(disturbance <= 1 + DISTURBED_BLOCK_SHARE) | (rank <= _LEAST_BLOCKS)]
    return kept


def time_column(clock: pd.DataFrame) -> str:
    """Which column is a block's time: the steady one, where blocks were timed in pieces."""
    return "steady_ns" if "steady_ns" in clock else "wall_ns"


def estimate_per_call(clock: pd.DataFrame, column: str, *, statistic: str = "median") -> Estimate:
    """Median over processes of the per-process median (or mean) of ``column`` per call.

    Args:
        clock: Rows with ``process``, ``calls`` and ``column``.
        column: ``wall_ns``, ``steady_ns``, ``system_ns`` or ``minor_faults``.
        statistic: ``median`` of a process's blocks, or ``mean`` for counts that most blocks see none of.
    """
    per_process = [
        (rows[column] / rows["calls"]).to_numpy(np.float64) for _, rows in clock.groupby("process", sort=True)
    ]
    return median_over_processes(per_process, statistic=statistic)
