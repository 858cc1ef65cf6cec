"""Unions of intervals and the gaps between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.stats.values import Bools, Ints


@dataclass(frozen=True, slots=True)
class Union:
    """A union of intervals as disjoint ones.

    Attributes:
        start_ns, end_ns: int64, shape ``(n,)``, ascending; touching intervals are one.
        first: int64: position (in what the union was made of) of the interval that begins each.
    """

    start_ns: Ints
    end_ns: Ints
    first: Ints

    @property
    def total_ns(self) -> int:
        """Length of the union."""
        return int((self.end_ns - self.start_ns).sum())

    def lasting(self, more_than_ns: int) -> Union:
        """The intervals that are longer."""
        chosen = self.end_ns - self.start_ns > more_than_ns
        return Union(self.start_ns[chosen], self.end_ns[chosen], self.first[chosen])

    def within(self, window: tuple[int, int]) -> int:
        """Length of the part inside ``window``."""
        before_start, before_end = self.before(np.array(window))
        return int(before_end - before_start)

    def holds(self, at_ns: Ints) -> Bools:
        """Whether each time lies in the union, ends excluded."""
        return np.searchsorted(self.start_ns, at_ns, "right") > np.searchsorted(self.end_ns, at_ns, "right")

    def covered(self, at_ns: Ints) -> Bools:
        """The same of times in order; quick if there are many times and few intervals."""
        inside = np.zeros(len(at_ns), dtype=bool)
        edges = (np.searchsorted(at_ns, each, "left").tolist() for each in (self.start_ns, self.end_ns))
        for first, past in zip(*edges, strict=True):
            inside[first:past] = True
        return inside

    def meets(self, other: Union) -> bool:
        """Whether some time lies in both; quick if one has few intervals."""
        few, many = (self, other) if len(self.start_ns) < len(other.start_ns) else (other, self)
        begun = many.start_ns.searchsorted(few.end_ns, "left")
        over = many.end_ns.searchsorted(few.start_ns, "right")
        return bool((begun > over).any())

    def before(self, at_ns: Ints) -> Ints:
        """Length of the part before each time."""
        if not len(self.start_ns):
            return np.zeros(len(at_ns), dtype=np.int64)
        lengths = self.end_ns - self.start_ns
        begun = np.searchsorted(self.start_ns, at_ns, "right") - 1
        last = np.maximum(begun, 0)
        whole = (np.cumsum(lengths) - lengths)[last]
        return np.where(begun >= 0, whole + np.minimum(at_ns - self.start_ns[last], lengths[last]), 0)


def is_among(ascending: Ints, some: Ints) -> Bools:
    """Whether each of ascending distinct values is among ``some``; quick for few of them."""
    is_member = np.zeros(len(ascending), dtype=bool)
    first, past = (np.searchsorted(ascending, some, side) for side in ("left", "right"))
    is_member[first[past > first]] = True
    return is_member


def distinct_values(values: Ints) -> Ints:
    """The distinct values, ascending; ``np.unique`` hashes them, which takes 40 times as long."""
    ordered = np.sort(values, kind="stable")
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def union(start_ns: Ints, dur_ns: Ints) -> Union:
    """The union of intervals in any order; empty ones cover nothing."""
    lasting = np.flatnonzero(dur_ns > 0)
    return _joined(start_ns, dur_ns, lasting[np.argsort(start_ns[lasting], kind="stable")]) if len(lasting) else NOTHING


def groups(start_ns: Ints, dur_ns: Ints) -> Union:
    """The union, in which an interval without length that stands alone counts as well."""
    return _joined(start_ns, dur_ns, np.argsort(start_ns, kind="stable"))


def _joined(start_ns: Ints, dur_ns: Ints, order: Ints) -> Union:
    starts, ends = start_ns[order], start_ns[order] + dur_ns[order]
    if not len(order):
        return Union(starts, ends, order)
    reached = np.maximum.accumulate(ends)
    begins = np.flatnonzero(np.concatenate(([True], starts[1:] > reached[:-1])))
    return Union(starts[begins], reached[np.append(begins[1:], len(order)) - 1], order[begins])


NOTHING = Union(*(np.zeros(0, dtype=np.int64) for _ in range(3)))
"""No time."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Intervals divided by a partition.

    Attributes:
        interval, piece: int64, shape ``(n,)``: which interval and which piece of the partition each part lies in.
        start_ns, dur_ns: int64, shape ``(n,)``; ``dur_ns`` > 0.
    """

    interval: Ints
    piece: Ints
    start_ns: Ints
    dur_ns: Ints


_NO_PIECE = Piece(*[NOTHING.first] * 4)


def cut(start_ns: Ints, end_ns: Ints, piece_start_ns: Ints, piece_end_ns: Ints) -> Piece:
    """Divide intervals (each may be empty) by disjoint pieces in order; time outside of all pieces is left out."""
    if not len(start_ns):
        return _NO_PIECE
    first = np.searchsorted(piece_end_ns, start_ns, "right")
    last = np.searchsorted(piece_start_ns, end_ns, "left")
    counts = np.where(end_ns > start_ns, np.maximum(last - first, 0), 0)
    has = np.flatnonzero(counts)
    past = np.cumsum(counts[has])
    begin = past - counts[has]
    piece = np.repeat(first[has] - begin, counts[has])
    piece += np.arange(len(piece))
    # Only the first and the last piece of an interval can reach beyond it.
    starts, ends = piece_start_ns[piece], piece_end_ns[piece]
    starts[begin] = np.maximum(starts[begin], start_ns[has])
    ends[past - 1] = np.minimum(ends[past - 1], end_ns[has])
    ends -= starts
    return Piece(np.repeat(has, counts[has]), piece, starts, ends)


def both(one: Union, other: Union) -> Union:
    """The intersection of two unions of intervals that last."""
    parts = cut(one.start_ns, one.end_ns, other.start_ns, other.end_ns)
    return Union(parts.start_ns, parts.start_ns + parts.dur_ns, parts.interval)


def without(one: Union, other: Union) -> Union:
    """The part of ``one`` outside ``other``."""
    begin, end = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    return both(one, Union(np.append(begin, other.end_ns), np.append(other.start_ns, end), NOTHING.first))


def joined(unions: Sequence[Union]) -> Union:
    """The union of several unions."""
    starts = np.concatenate([each.start_ns for each in unions]) if unions else NOTHING.start_ns
    ends = np.concatenate([each.end_ns for each in unions]) if unions else NOTHING.end_ns
    return union(starts, ends - starts)
