"""The unprofiled wall time of one call from the timed blocks of several processes, and the floor under it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overhead_lens.budget.model import Floor
from overhead_lens.budget.thresholds import DISTURBED_BLOCK_SHARE
from overhead_lens.instruments.peaks.record import Peaks
from overhead_lens.scenario import Work
from overhead_lens.stats.bootstrap import Estimate, median_over_processes

DEVICE_MEMORY = "device memory"

_LEAST_BLOCKS = 3
_MEDIAN = 0.5

_WAITING = ("delayed_ns", "contended_ns")

# Processors have units of their own for types of less than 32 bits; the peak is that of float32.
_NARROW = re.compile(r"(torch\.)?(half|b?float_?(4|8|16)\w*|(bf|fp)(4|8|16)|u?int(4|8|16)|complex32)")


def without_delays(clock: pd.DataFrame) -> pd.DataFrame:
    """Blocks whose ``wall_ns`` lacks the time that the calling thread waited for a core, which other programs had."""
    if "delayed_ns" not in clock:
        return clock
    without: pd.DataFrame = clock.assign(wall_ns=clock["wall_ns"] - clock["delayed_ns"]).drop(columns="delayed_ns")
    return without


@dataclass(frozen=True, slots=True)
class Waited:
    """Waiting of threads for a core, as shares of the blocks' whole time; 0 if that was not measured.

    Attributes:
        delayed: Of the calling thread for other programs, which is taken out of the wall time.
        contended: All other waiting, added up over threads.
    """

    delayed: float = 0.0
    contended: float = 0.0


NO_WAITING = Waited()


def waited(clock: pd.DataFrame) -> Waited:
    """The waiting beside all blocks of a capture."""
    whole_ns = max(float(clock["wall_ns"].sum()), 1.0)
    return Waited(*(float(clock[name].sum()) / whole_ns if name in clock else 0.0 for name in _WAITING))


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
    blocks: pd.DataFrame = clock[(disturbance <= 1 + DISTURBED_BLOCK_SHARE) | (rank <= _LEAST_BLOCKS)]
    return blocks


def time_column(clock: pd.DataFrame) -> str:
    """The column with a block's time: the steady one if blocks were timed in pieces."""
    return "steady_ns" if "steady_ns" in clock else "wall_ns"


def compiles_at_times(clock: pd.DataFrame) -> bool:
    """Whether the call compiled in some blocks, but in fewer than half of any process's."""
    if "compiles" not in clock or not clock["compiles"].any():
        return False
    return bool((clock["compiles"] > 0).groupby(clock["process"]).mean().max() < _MEDIAN)


def with_compilations(clock: pd.DataFrame) -> pd.DataFrame:
    """Blocks with the time of their process's compilations spread over them evenly; the call ``compiles_at_times``.

    Stacks hold that time. A median of blocks would leave it out::

        block, us      100   101   100  2000    99
        then           480   481   480   480   479
    """
    process, calls, is_compiling = clock["process"], clock["calls"], clock["compiles"] > 0
    usual = {
        name: (clock[name] / calls).mask(is_compiling).groupby(process).transform("median") * calls
        for name in ("wall_ns", "steady_ns")
        if name in clock
    }
    compile_ns = (clock["wall_ns"] - usual["wall_ns"]).clip(lower=0).where(is_compiling, 0.0)
    of_call_ns = compile_ns.groupby(process).transform("sum") / calls.groupby(process).transform("sum")
    columns = {name: clock[name].mask(is_compiling, ns) + of_call_ns * calls for name, ns in usual.items()}
    spread: pd.DataFrame = clock.assign(**columns)
    return spread


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


def make_floor(work: Work, peaks: Peaks | None, device: str = "cpu", dtype: str = "") -> Floor | None:
    """The roofline floor of a call at the peaks of its device (Williams et al., CACM 2009); None without work or peaks.

    Args:
        dtype: The type of the arithmetic; one of less than 32 bits has no known peak.
    """
    if peaks is None:
        return None
    flops, size_bytes = 0 if _NARROW.fullmatch(dtype) else work.flops, work.bytes
    if device != "cpu":
        if peaks.device is None:
            return None
        if size_bytes <= peaks.device.cache_bytes:
            # Repeated calls find it in the cache, whose rate is not known.
            size_bytes = 0
        level, bytes_per_s, flops_per_s = DEVICE_MEMORY, peaks.device.bytes_per_s, peaks.device.flops_per_s
    else:
        memory = peaks.level_of(work.bytes)
        level, bytes_per_s, flops_per_s = memory.name, memory.bytes_per_s, peaks.flops_per_s
    arithmetic_ns = flops / flops_per_s * 1e9
    memory_ns = size_bytes / bytes_per_s * 1e9
    ns = float(max(arithmetic_ns, memory_ns))
    if ns == 0:
        return None
    bound = "arithmetic" if arithmetic_ns > memory_ns else "memory"
    return Floor(ns, bound, level, flops / ns * 1e9, work.bytes / ns * 1e9)
