"""A histogram of timed blocks on the time axis of a call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from overhead_lens.budget.model import Wall
from overhead_lens.export.lanes.model import Counter, Lane, Slice
from overhead_lens.units import format_ns

BLOCKS = "Timed blocks"

_BINS = 60
_LONGEST = 1.5


def block_counter(clock: pd.DataFrame, wall: Wall) -> Counter:
    """Histogram of timed blocks: at each time of the axis, the number of blocks whose calls took about that long.

    The axis is that of one call, so the peak is where the budget ends::

        budget    | python           | dispatcher  |
        blocks                                  ___====__
                  0                             wall

    Blocks above 1.5 times the wall time are counted at that time, to keep the axis short.
    """
    longest_ns = max(wall.ns + 1, int(_LONGEST * wall.ns))
    call_ns = np.minimum((clock["wall_ns"] / clock["calls"]).to_numpy(), longest_ns)
    width_ns = max(1, longest_ns // (_BINS * 4), int(np.ptp(call_ns)) // _BINS)
    counts = np.bincount((call_ns // width_ns).astype(np.int64))
    description = (
        f"Blocks of calls timed by the bare clock, {len(clock):,} in all: how many took that long per call. "
        f"Each column is {format_ns(width_ns)} wide; what took longer than {format_ns(longest_ns)} is counted there."
    )
    return Counter(BLOCKS, "blocks", _changes(counts.tolist(), width_ns), description)


def interval_lane(wall: Wall) -> Lane:
    """The interval of the wall time, where it lies on the axis of a call."""
    low_ns, high_ns = (round(bound) for bound in wall.ci95_ns)
    kind = wall.interval if wall.is_range else "95 % interval"
    name = f"{kind} of the wall time: {format_ns(low_ns)} .. {format_ns(high_ns)}"
    arguments = {"wall ns": wall.ns, "processes": wall.processes, "blocks": wall.blocks, "calls": wall.calls}
    return Lane(kind, [Slice(max(0, low_ns), max(0, low_ns, high_ns), name, "interval", arguments)])


def _changes(counts: Sequence[int], width_ns: int) -> list[tuple[int, float]]:
    """Positions at which a staircase function changes, and its new values; it begins and ends at zero."""
    points = [(0, 0.0)]
    for place, count in enumerate([*counts, 0]):
        if count != points[-1][1]:
            points.append((place * width_ns, float(count)))
    return points if points[1:2] != [(0, points[1][1])] else points[1:]
