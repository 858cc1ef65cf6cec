"""Self time of the events of one thread by a sweep line, without assuming that they nest.

Every elementary interval between two neighbouring starts or ends belongs to the open event that started last (of two
that started together, to the shorter; of two alike, to the later in the file). Intervals that no event covers belong to
nobody, so the self times and the uncovered time sum to the window exactly::

    time     0    10   20   30   40   50
    A        [---------------------)            self 10 + 10 = 20   (0-10, 30-40)
    B             [---------)                   self 20             (10-30)
    C                            [----)         crosses A: self 10  (40-50); starts at 40
    uncovered: none inside 0-50
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Segments:
    """Consecutive pieces of a window and the event that owns each.

    Attributes:
        start_ns: int64, shape ``(n,)``, ascending.
        dur_ns: int64, shape ``(n,)``, all > 0; they sum to the window.
        owner: int64, shape ``(n,)``: row of the event, -1 for uncovered time.
    """

    start_ns: Ints
    dur_ns: Ints
    owner: Ints

    def self_ns(self, event_count: int) -> Ints:
        """Self time per event, int64, shape ``(event_count,)``."""
        owned = self.owner >= 0
        totals = np.zeros(event_count, dtype=np.int64)
        np.add.at(totals, self.owner[owned], self.dur_ns[owned])
        return totals

    def uncovered_ns(self) -> int:
        """Time of the window that no event covers."""
        return int(self.dur_ns[self.owner < 0].sum())


def sweep(start_ns: Ints, dur_ns: Ints, window: tuple[int, int]) -> Segments:
    """Divide ``window`` (start, end in ns) among the events of one thread; events are cut at the window's edges."""
    window_start, window_end = window
    starts = np.clip(start_ns, window_start, window_end)
    ends = np.clip(start_ns + dur_ns, window_start, window_end)
    rows = np.flatnonzero(ends > starts)
    # Latest start first out of the heap; among equal starts the shortest, then the last of the file.
    order = rows[np.lexsort((rows, -ends[rows], starts[rows]))]
    pieces: list[tuple[int, int, int]] = []
    open_events: list[tuple[int, int, int]] = []
    now = window_start
    for rank, row in enumerate(order.tolist()):
        now = _advance(now, int(starts[row]), open_events, pieces)
        heapq.heappush(open_events, (-rank, int(ends[row]), row))
    _advance(now, window_end, open_events, pieces)
    merged = np.array(pieces, dtype=np.int64).reshape(-1, 3)
    return Segments(merged[:, 0], merged[:, 1], merged[:, 2])


def _advance(now: int, until: int, open_events: list[tuple[int, int, int]], pieces: list[tuple[int, int, int]]) -> int:
    """Emit the pieces between ``now`` and ``until``; events that ended are dropped lazily. Returns ``until``."""
    while now < until:
        while open_events and open_events[0][1] <= now:
            heapq.heappop(open_events)
        if open_events:
            _, end, row = open_events[0]
            piece_end = min(end, until)
            pieces.append((now, piece_end - now, row))
        else:
            piece_end = until
            pieces.append((now, piece_end - now, -1))
        now = piece_end
    return now


def parents(start_ns: Ints, dur_ns: Ints) -> Ints:
    """The open event that started last before each event, -1 for none: int64, shape ``(n,)``."""
    order = np.lexsort((np.arange(len(start_ns)), -dur_ns, start_ns))
    found = np.full(len(start_ns), -1, dtype=np.int64)
    stack: list[tuple[int, int]] = []
    for row in order.tolist():
        start, end = int(start_ns[row]), int(start_ns[row] + dur_ns[row])
        while stack and stack[-1][0] <= start:
            stack.pop()
        if stack:
            found[row] = stack[-1][1]
        stack.append((end, row))
    return found
