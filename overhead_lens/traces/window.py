"""A window of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.errors import require
from overhead_lens.stats.values import Ints


@dataclass(frozen=True, slots=True)
class Window:
    """An interval of the recording, ``start_ns`` since the earliest event of the file."""

    start_ns: int
    wall_ns: int

    def __post_init__(self) -> None:
        require(self.wall_ns >= 0, "a window ends before it starts")

    @property
    def bounds(self) -> tuple[int, int]:
        """Start and end."""
        return self.start_ns, self.start_ns + self.wall_ns


def bounds_of(windows: Sequence[Window]) -> tuple[Ints, Ints]:
    """Starts and ends."""
    starts, ends = np.array([window.bounds for window in windows], dtype=np.int64).reshape(-1, 2).T
    return starts, ends


def window_at(windows: Sequence[Window], times_ns: Ints) -> Ints:
    """Which of the windows, in order of start, the last to begin before each time is; -1 where it is over."""
    if not windows:
        return np.full(len(times_ns), -1, dtype=np.int64)
    starts, ends = bounds_of(windows)
    at = np.searchsorted(starts, times_ns, "right") - 1
    return np.where(times_ns < ends[at], at, -1)
