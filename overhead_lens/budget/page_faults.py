"""Estimates the time of page faults, which no stack shows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overhead_lens.budget.shares import Shares
from overhead_lens.budget.wall import estimate_per_call
from overhead_lens.instruments.page_faults.record import PageFaults, matter
from overhead_lens.stats.bootstrap import REPLICATES, Estimate, interval_scale
from overhead_lens.taxonomy.rules import Attribution

_SEED = 20_240_302

_IO = Attribution("wait", "io")


def page_fault_time(clock: pd.DataFrame, wall: Estimate, shares: Shares, measured: PageFaults) -> Estimate:
    """Time of page faults in ns per call; it comes out of ``kernel``, where pages are touched first.

    A sample stops at the instruction that touched the page and cannot show the fault. The operating system accounts for faults in
    system time (getrusage(2), ru_stime), beside the system calls for memory and I/O, which samples show. A fault's user time is
    measured apart (``instruments/page_faults``)::

        system time   | system calls for memory, I/O (sampled) |  faults  |
        user time                                              |  faults  |       rest of the call       |
                                                               |  number of faults x user time per fault

    This is CPU time. It is rescaled to wall time: where other programs use the cores, every part of the call waits for a core.
    """
    no_time = Estimate(0.0, np.zeros_like(wall.replicates))
    if shares.evidence != "samples" or "system_ns" not in clock:
        return no_time
    faults = estimate_per_call(clock, "minor_faults", statistic="mean")
    if not matter(faults.value, wall.value):
        return no_time
    system = estimate_per_call(clock, "system_ns", statistic="mean")
    user = _user_time_per_fault(measured)
    awake = 1 - shares.share("wait")
    ran, scale = _running(clock, wall, awake)
    # A thread that is blocked in I/O takes no system time.
    of_io = min(shares.attributions.get(_IO, 0.0) / shares.weight, ran - awake)
    calls_ns = (shares.memory_calls + of_io) * wall.value
    value = scale.value * (system.value + faults.value * user.value) - calls_ns
    replicates = scale.replicates * (system.replicates + faults.replicates * user.replicates) - calls_ns
    return Estimate(float(np.clip(value, 0.0, shares.share("kernel") * wall.value)), np.maximum(replicates, 0.0))


def standard_error(faults: Estimate, kernel_ns: float, processes: int) -> float:
    """Standard error of the time of page faults, in ns per call: of its replicates as they were before they were rescaled."""
    scale = interval_scale(processes)
    if not faults.value:
        return float(np.std(faults.replicates)) / scale
    drawn = faults.value * (faults.replicates / faults.value) ** (1 / scale)
    return float(np.std(np.minimum(drawn, kernel_ns)))


def _running(clock: pd.DataFrame, wall: Estimate, awake: float) -> tuple[float, Estimate]:
    """The share of the call in which its thread ran, and its wall time per CPU time, without voluntary waiting.

    While it waits, it may run as well, as a device's driver does. Without CPU times they are ``awake``, the share of the call in
    which it does not wait, and 1.
    """
    unknown = Estimate(1.0, np.ones_like(wall.replicates))
    if "cpu_ns" not in clock:
        return awake, unknown
    # A thread runs for no longer than it takes: the rest is reading that displaced the caches before cold calls.
    clock = clock.assign(cpu_ns=clock[["cpu_ns", "wall_ns"]].min(axis=1))
    cpu, whole = (estimate_per_call(clock, name, statistic="mean") for name in ("cpu_ns", "wall_ns"))
    ran = max(awake, cpu.value / whole.value)
    if not cpu.replicates.all():
        return ran, unknown
    # All replicates are of the same draws of processes.
    return ran, Estimate(ran * wall.value / cpu.value, ran * wall.replicates / cpu.replicates)


def _user_time_per_fault(measured: PageFaults) -> Estimate:
    """Mean over processes in ns, with a bootstrap over them; 0 in a capture that did not measure it."""
    per_fault = np.array([row.user_ns / row.faults for row in measured.processes if row.faults])
    if not len(per_fault):
        return Estimate(0.0, np.zeros(REPLICATES))
    random = np.random.default_rng(_SEED)
    chosen = random.integers(0, len(per_fault), (REPLICATES, len(per_fault)))
    return Estimate(float(per_fault.mean()), per_fault[chosen].mean(axis=1))
