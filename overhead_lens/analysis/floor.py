"""The roofline floor: what a call's work would take at this machine's measured peaks (Williams et al., CACM 2009)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from overhead_lens.analysis.model import Floor

DEVICE_MEMORY = "device memory"


def make_floor(work: Mapping[str, int], peaks: Mapping[str, Any] | None, device: str = "cpu") -> Floor | None:
    """The larger of the arithmetic and the memory bound of one call; None where the work or the peaks are not known.

    Args:
        work: ``flops`` and ``bytes`` of one call.
        peaks: As ``capture/peaks.py`` returns them; old captures have ``copy`` (working set and rate) and ``flops_per_s``.
        device: A call on a GPU is held against the GPU's peaks.
    """
    if not peaks or (work["flops"] == 0 and work["bytes"] == 0):
        return None
    if device != "cpu":
        found = peaks.get("device")
        if not found:
            return None
        level, bytes_per_s, flops_per_s = DEVICE_MEMORY, found["bytes_per_s"], found["flops_per_s"]
    else:
        holding = level_of(peaks["copy"], work["bytes"])
        level, bytes_per_s, flops_per_s = level_name(holding), holding["bytes_per_s"], peaks["flops_per_s"]
    arithmetic_ns = work["flops"] / flops_per_s * 1e9
    memory_ns = work["bytes"] / bytes_per_s * 1e9
    ns = float(max(arithmetic_ns, memory_ns))
    bound = "arithmetic" if arithmetic_ns > memory_ns else "memory"
    return Floor(ns, bound, level, work["flops"] / ns * 1e9, work["bytes"] / ns * 1e9)


def level_of(levels: Sequence[Mapping[str, Any]], size_bytes: int) -> Mapping[str, Any]:
    """The smallest level that holds ``size_bytes``; the last, which is main memory, where none does."""
    fitting = [level for level in levels if (capacity_bytes(level) or 0) >= size_bytes]
    return fitting[0] if fitting else levels[-1]


def capacity_bytes(level: Mapping[str, Any]) -> int | None:
    """What the level holds, None for main memory; old captures have the working set that was measured."""
    size: int | None = level.get("capacity_bytes", level["bytes"])
    return size


def level_name(level: Mapping[str, Any]) -> str:
    """``L2``; a size for old captures, which know no levels."""
    return str(level.get("level") or f"a working set of {level['bytes'] / 2**20:.4g} MiB")
