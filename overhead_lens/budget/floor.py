"""The roofline floor of a call at the machine's measured peaks (Williams et al., CACM 2009)."""

from __future__ import annotations

from overhead_lens.budget.model import Floor
from overhead_lens.instruments.peaks.evidence import Peaks
from overhead_lens.scenario import Work

DEVICE_MEMORY = "device memory"


def make_floor(work: Work, peaks: Peaks | None, device: str = "cpu") -> Floor | None:
    """The larger of the arithmetic and the memory bound of one call; None without work or peaks.

    A call on a GPU has the GPU's peaks.
    """
    if peaks is None or (work.flops == 0 and work.bytes == 0):
        return None
    if device != "cpu":
        if peaks.device is None:
            return None
        level, bytes_per_s, flops_per_s = DEVICE_MEMORY, peaks.device.bytes_per_s, peaks.device.flops_per_s
    else:
        memory = peaks.level_of(work.bytes)
        level, bytes_per_s, flops_per_s = memory.name, memory.bytes_per_s, peaks.flops_per_s
    arithmetic_ns = work.flops / flops_per_s * 1e9
    memory_ns = work.bytes / bytes_per_s * 1e9
    ns = float(max(arithmetic_ns, memory_ns))
    bound = "arithmetic" if arithmetic_ns > memory_ns else "memory"
    return Floor(ns, bound, level, work.flops / ns * 1e9, work.bytes / ns * 1e9)
