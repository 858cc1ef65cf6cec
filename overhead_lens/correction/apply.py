"""Takes the profiler's own cost out of a trace of the measured loop.

An event costs time inside its own span and in the span around it, calibrated per class (``fit.py``). If an event is
shorter than its cost, the remainder is taken from all others in proportion, so exactly the whole cost is removed.
"""

from __future__ import annotations

import numpy as np

from overhead_lens.stats.values import Floats, Ints


def corrected_self_ns(
    self_ns: Ints, parent: Ints, uncovered_ns: int, inside_ns: Floats, outside_ns: Floats, further_ns: float = 0.0
) -> tuple[Floats, float]:
    """Self times minus the profiler's cost.

    Args:
        self_ns: int64, shape ``(n,)``.
        parent: Row of each event's parent, -1 where the loop itself is the parent.
        uncovered_ns: Time of the window that no event covers (the loop's own).
        inside_ns: Cost of each event inside its own span, shape ``(n,)``.
        outside_ns: Cost of each event in the span around it, shape ``(n,)``.
        further_ns: Other extra time of the recording, such as page faults; removed from all in proportion.

    Returns:
        Corrected self times, float64, shape ``(n,)``, all >= 0; corrected uncovered time, >= 0.
    """
    nested = parent >= 0
    of_children = (
        np.bincount(parent[nested], outside_ns[nested], minlength=len(self_ns)) if len(self_ns) else np.zeros(0)
    )
    corrected = np.maximum(self_ns - inside_ns - of_children, 0.0)
    outside = max(0.0, uncovered_ns - float(outside_ns[~nested].sum()))
    before = float(self_ns.sum()) + uncovered_ns
    left = float(corrected.sum()) + outside
    scale = max(0.0, before - float(inside_ns.sum() + outside_ns.sum()) - further_ns) / left if left > 0 else 1.0
    return corrected * scale, outside * scale
