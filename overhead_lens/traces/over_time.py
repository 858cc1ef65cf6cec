"""Budgets over time: the busiest thread by category and every device by kind, in buckets of equal length.

A bucket's times are exact, so that those of one category sum over the buckets to its time in the budget.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from overhead_lens.stats.values import Ints
from overhead_lens.taxonomy.categories import BLAME, HOST_CATEGORIES
from overhead_lens.traces.device import BUSY, DeviceTimeline
from overhead_lens.traces.host_budget import ThreadPieces
from overhead_lens.traces.model import Lane, OverTime
from overhead_lens.traces.timeline import sum_by
from overhead_lens.traces.window import Window

MOST_BUCKETS = 1000
IDLE = "idle: "
"""Begins the names of a device's idle time; what it is blamed on follows."""


def over_time(window: Window, thread: ThreadPieces | None, devices: Sequence[DeviceTimeline]) -> OverTime:
    """The window in at most ``MOST_BUCKETS`` buckets; ``thread`` is the busiest, None where no host event was recorded."""
    count = max(1, min(MOST_BUCKETS, window.wall_ns))
    # Python integers: a multiple of a long window may exceed int64.
    edges = np.array([window.start_ns + window.wall_ns * at // count for at in range(count + 1)], dtype=np.int64)
    lanes = []
    if thread is not None:
        lanes.append(_lane("", HOST_CATEGORIES, binned(*thread.divided(), len(HOST_CATEGORIES), edges)))
    return OverTime(tuple(edges.tolist()), (*lanes, *(_device(device, edges) for device in devices)))


def binned(start_ns: Ints, dur_ns: Ints, group: Ints, group_count: int, edges: Ints) -> Ints:
    """Time of each group between neighbouring edges, ``(group_count, len(edges) - 1)``; pieces ascend without overlap."""
    begun = np.searchsorted(start_ns, edges, "left")
    # Each piece by the first edge after its start.
    slot = np.repeat(np.arange(len(edges)), np.diff(begun, prepend=0))
    sums = sum_by(slot * group_count + group[: len(slot)], dur_ns[: len(slot)], len(edges) * group_count)
    before = np.cumsum(sums.reshape(len(edges), group_count), axis=0)
    crossing = np.flatnonzero(begun)
    last = begun[crossing] - 1
    before[crossing, group[last]] -= np.maximum(start_ns[last] + dur_ns[last] - edges[crossing], 0)
    between: Ints = np.diff(before, axis=0).T
    return between


def _device(device: DeviceTimeline, edges: Ints) -> Lane:
    inside = np.clip(edges, *device.span)
    idle = binned(device.idle.start_ns, device.idle.dur_ns, device.idle.blame, len(BLAME), inside)
    busy = np.diff(device.busy_before(inside), axis=1)
    return _lane(str(device.number), (*BUSY, *(f"{IDLE}{name}" for name in BLAME)), np.concatenate((busy, idle)))


def _lane(device: str, names: Sequence[str], rows: Ints) -> Lane:
    return Lane(device, {name: tuple(row) for name, row in zip(names, rows.tolist(), strict=True) if any(row)})
