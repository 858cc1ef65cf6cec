"""Taking the profiler's own cost out of a trace of the measured loop.

Every event costs the profiler some time, part of it inside the event's own span and part in the span around it. Both
blocks, bare and traced, were timed in the same process, so the mean cost per event is known::

    cost = (traced wall - bare wall) / events

Half is taken from the event's self time and half from its parent's, never more than is there; what a short event could
not give is taken from all others in proportion, so that exactly the events' whole cost is taken.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from overhead_lens.analysis.timeline import Ints

Floats = npt.NDArray[np.float64]


def event_cost_ns(traced_wall_ns: int, bare_wall_ns: int, event_count: int) -> float:
    """Mean cost of one event in ns; never negative (noise can make a traced block the faster one)."""
    return max(0.0, (traced_wall_ns - bare_wall_ns) / max(1, event_count))


def corrected_self_ns(self_ns: Ints, parent: Ints, uncovered_ns: int, cost_ns: float) -> tuple[Floats, float]:
    """Self times less the profiler's cost.

    Args:
        self_ns: int64, shape ``(n,)``.
        parent: Row of each event's parent, -1 where the loop itself is the parent.
        uncovered_ns: Time of the window that no event covers (the loop's own).
        cost_ns: Cost of one event.

    Returns:
        Corrected self times, float64, shape ``(n,)``, all >= 0; corrected uncovered time, >= 0.
    """
    half = cost_ns / 2
    children = np.bincount(parent[parent >= 0], minlength=len(self_ns)) if len(self_ns) else np.zeros(0)
    corrected = np.maximum(self_ns - half - half * children, 0.0)
    outside = max(0.0, uncovered_ns - half * int((parent < 0).sum()))
    before = float(self_ns.sum()) + uncovered_ns
    left = float(corrected.sum()) + outside
    scale = max(0.0, before - cost_ns * len(self_ns)) / left if left > 0 else 1.0
    return corrected * scale, outside * scale
