"""The roofline floor: what a call's work would take at this machine's measured peaks (Williams et al., CACM 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def floor_ns(work: Mapping[str, int], peaks: Mapping[str, Any] | None) -> float:
    """The larger of the arithmetic and the memory bound, in ns per call; 0 where work or peaks are not known.

    The bandwidth is that of the smallest measured working set that holds the call's bytes.
    """
    if not peaks:
        return 0.0
    arithmetic_ns = work["flops"] / peaks["flops_per_s"] * 1e9
    fitting = [level for level in peaks["copy"] if level["bytes"] >= work["bytes"]] or peaks["copy"][-1:]
    memory_ns = work["bytes"] / fitting[0]["bytes_per_s"] * 1e9
    return float(max(arithmetic_ns, memory_ns))
