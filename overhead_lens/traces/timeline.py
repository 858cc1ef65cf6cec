"""Self time of one thread's events by a sweep line; events need not nest.

Every elementary interval between two neighbouring starts or ends belongs to the open event that started last (of two
that started together, to the shorter; of two alike, to the later as given). Intervals that no event covers belong to
nobody, so the self times and the uncovered time sum to the window exactly::

    time     0    10   20   30   40   50
    A        [---------------------)            self 10 + 10 = 20   (0-10, 30-40)
    B             [---------)                   self 20             (10-30)
    C                            [----)         crosses A: self 10  (40-50); starts at 40
    uncovered: none inside 0-50

The open events are a stack: the event that started last is on top, and an event that has ended is dropped when it surfaces.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from overhead_lens.stats.values import Bools, Ints, taken
from overhead_lens.traces.loops import run

_Input: TypeAlias = Sequence[int]
_Output: TypeAlias = MutableSequence[int]


@dataclass(frozen=True, slots=True)
class Segments:
    """Consecutive pieces of a window and the event that owns each.

    Attributes:
        start_ns: int64, shape ``(n,)``, ascending.
        dur_ns: int64, shape ``(n,)``, all > 0; they sum to the window.
        owner: int32, shape ``(n,)``: row of the event, -1 for uncovered time.
    """

    start_ns: Ints
    dur_ns: Ints
    owner: Ints

    def self_ns(self, event_count: int) -> Ints:
        """Self time per event, int64, shape ``(event_count,)``."""
        return sum_by(self.owner + 1, self.dur_ns, event_count + 1)[1:]

    def uncovered_ns(self) -> int:
        """Time of the window that no event covers."""
        return int(self.dur_ns[self.owner < 0].sum())


def sum_by(group: Ints, values: Ints, group_count: int) -> Ints:
    """Exact sums of int64 ``values`` per group number, shape ``(group_count,)``."""
    sums = np.zeros(group_count, dtype=np.int64)
    np.add.at(sums, group, values)
    return sums


def sweep(start_ns: Ints, dur_ns: Ints, window: tuple[int, int]) -> Segments:
    """Divide ``window`` (start, end in ns) among the events of one thread; events are cut at the window's edges."""
    window_start, window_end = window
    ends = start_ns + dur_ns
    inside = (dur_ns > 0) & (ends > window_start) & (start_ns < window_end)
    rows = None if inside.all() else np.flatnonzero(inside).astype(np.int32)
    starts, ends = (start_ns, ends) if rows is None else (start_ns[rows], ends[rows])
    order = nesting_order(starts, ends)
    if order is not None:
        starts, ends = starts[order], ends[order]
        rows = order.astype(np.int32) if rows is None else rows[order]
    count = len(starts)
    pieces = [np.empty(2 * count + 1, dtype=dtype) for dtype in (np.int64, np.int64, np.int32)]
    stack = np.empty(count + 1, dtype=np.int32)
    filled = run(_sweep, (starts, ends, window_start, window_end), (*pieces, stack), count)
    start, dur, owner = (piece[:filled] for piece in pieces)
    return Segments(start, dur, owner if rows is None else taken(rows, owner))


def cut_at(start_ns: Ints, edges: Ints) -> tuple[Ints, Ints]:
    """Consecutive pieces cut at edges, of which those before the first piece do not count: starts, and the piece of each."""
    at = np.searchsorted(start_ns, edges, "left")
    cuts = np.flatnonzero((at > 0) & (start_ns[np.minimum(at, len(start_ns) - 1)] != edges))
    piece = np.insert(np.arange(len(start_ns)), at[cuts], at[cuts] - 1)
    return np.insert(start_ns, at[cuts], edges[cuts]), piece


def laid_over(piece_start_ns: Ints, segments: Segments) -> tuple[Ints, Ints, Ints]:
    """Pieces cut where the owner of ``segments`` changes: starts, the piece and the owner of each; both partition one window."""
    starts, piece = cut_at(piece_start_ns, segments.start_ns)
    begins = np.append(np.searchsorted(starts, segments.start_ns), len(starts))
    return starts, piece, np.repeat(segments.owner, np.diff(begins))


def ordered(values: Ints, *ties: Ints) -> Ints:
    """Positions in order of ``values``; those of equal values by ``ties``, the first counting most, then as given."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    same = ascending[1:] == ascending[:-1]
    # Only runs of equal values need the other keys; they are few and short.
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(tied):
        alike = order[tied]
        order[tied] = alike[np.lexsort((*(key[alike] for key in reversed(ties)), values[alike]))]
    return order


def nesting_order(start_ns: Ints, end_ns: Ints) -> Ints | None:
    """Positions by start; among equal starts the longer first, then in the order given. None if they are in order."""
    if _in_order(start_ns, end_ns):
        return None
    return ordered(start_ns, -end_ns)


def _in_order(starts: Ints, ends: Ints) -> bool:
    step = starts[1:] - starts[:-1]
    return bool((step > 0).all() or ((step >= 0) & ((step > 0) | (ends[1:] <= ends[:-1]))).all())


class Nesting:
    """Which event began inside which.

    Attributes:
        parent: int32, shape ``(n,)``: the open event that started last before each, -1 for none.
    """

    def __init__(self, start_ns: Ints, dur_ns: Ints) -> None:
        self._ends = start_ns + dur_ns
        order = nesting_order(start_ns, self._ends)
        self._count = len(start_ns)
        self._order = np.arange(self._count, dtype=np.int32) if order is None else order.astype(np.int32)
        self.parent = np.empty(self._count, dtype=np.int32)
        stack = np.empty(self._count + 1, dtype=np.int32)
        self._starts_in_order = start_ns if order is None else start_ns[order]
        ends = self._ends if order is None else self._ends[order]
        run(_parents, (self._starts_in_order, ends, self._order), (self.parent, stack), self._count)

    @property
    def crossing_count(self) -> int:
        """Number of events that end after the event they began in."""
        inside = np.flatnonzero(self.parent >= 0)
        return int((self._ends[inside] > self._ends[self.parent[inside]]).sum())

    def open_at(self, instants_ns: Ints) -> Ints:
        """The event that is open at each instant and started last: int64, -1 for none."""
        place = np.searchsorted(self._starts_in_order, instants_ns, "right") - 1
        open_event = taken(self._order, place)
        ended = np.flatnonzero(open_event >= 0)
        while len(ended := ended[self._ends[open_event[ended]] <= instants_ns[ended]]):
            open_event[ended] = self.parent[open_event[ended]]
            ended = ended[open_event[ended] >= 0]
        return open_event

    def mark_above(self, marked: Bools) -> Bools:
        """Bool per event: whether it or any event below it is marked."""
        above = marked.astype(np.int8)
        if above.any():
            run(mark_parents, (self._order, self.parent), (above,), self._count)
        return above > 0


def nearest(parent: Ints, marked: Bools, *, outermost: bool = False) -> Ints:
    """Per event the innermost marked event at or around it, or the outermost; -1 for none."""
    if not marked.any():
        return np.full(len(parent), -1, dtype=np.int64)
    own = np.arange(len(parent), dtype=parent.dtype)
    inner = ends_of(np.where(marked, own, parent))
    if not outermost:
        return inner
    above = taken(inner, parent)
    return taken(ends_of(np.where(above >= 0, above, own)), inner)


def ends_of(steps: Ints) -> Ints:
    """Where each place leads to that leads to another one, up to one that leads to itself; -1 for nowhere."""
    now = np.append(steps, -1)
    while not np.array_equal(further := now[now], now):
        now = further
    return now[:-1].astype(steps.dtype, copy=False)


def _sweep(
    starts: _Input,
    ends: _Input,
    window_start: int,
    window_end: int,
    piece_start: _Output,
    piece_dur: _Output,
    piece_owner: _Output,
    stack: _Output,
) -> int:
    count = 0
    depth = 0
    now = window_start
    for at in range(len(starts) + 1):
        until = starts[at] if at < len(starts) else window_end
        while now < until:
            while depth > 0 and ends[stack[depth - 1]] <= now:
                depth -= 1
            piece_end = until
            owner = -1
            if depth > 0:
                top = stack[depth - 1]
                owner = top
                if ends[top] < until:
                    piece_end = ends[top]
            piece_start[count] = now
            piece_dur[count] = piece_end - now
            piece_owner[count] = owner
            count += 1
            now = piece_end
        stack[depth] = at
        depth += 1
    return count


def _parents(starts: _Input, ends: _Input, rows: _Input, parent: _Output, stack: _Output) -> int:
    depth = 0
    for at in range(len(starts)):
        while depth > 0 and ends[stack[depth - 1]] <= starts[at]:
            depth -= 1
        parent[rows[at]] = rows[stack[depth - 1]] if depth > 0 else -1
        stack[depth] = at
        depth += 1
    return len(starts)


def mark_parents(order: _Input, parent: _Input, marked: _Output) -> int:
    """Mark the parent of each marked one, the last in order first; a loop for ``run``."""
    for at in range(len(order) - 1, -1, -1):
        row = order[at]
        if marked[row] and parent[row] >= 0:
            marked[parent[row]] = 1
    return len(order)
