"""Finds what repeats in a sequence of numbers.

Every run of 1, 2, 4, 8, ... numbers gets a name, the same for the same numbers: two names of half the length make one of the
whole (Karp, Miller and Rosenberg 1972), so that each doubling takes time linear in the numbers. Stretches of one name are
repeats::

    numbers     a b c x a b c y a b c
    length 1    0 1 2 3 0 1 2 4 0 1 2
    length 2    0 1 2 3 0 1 4 5 0 1        "a b" three times, at 0, 4, 8

Those that have the same number before them at every place are left out: a repeat that begins there is longer. The others are
made longer as far as all places agree and none overlaps the next. What follows itself at once is cut to its period.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.stats.values import Bools, Ints, numbered
from overhead_lens.traces.loops import run

_MOST_OF_A_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Repeat:
    """A run of numbers that occurs several times.

    Attributes:
        places: int64, ascending: where it begins; no two overlap.
    """

    places: Ints
    length: int


def repeats(numbers: Ints, weights: Ints) -> Iterator[Repeat]:
    """Repeats of two numbers and more; of each doubling of the length the few with the most weight.

    Args:
        numbers: int64, >= 0.
        weights: int64 per number: what it counts for.
    """
    names = [_named(numbers)]
    before = np.concatenate(([-1], names[0][:-1])) if len(numbers) else names[0]
    total = np.concatenate(([0], np.cumsum(weights)))
    while True:
        half = 1 << (len(names) - 1)
        size = 2 * half
        last = names[-1].astype(np.int64)
        if len(last) <= half:
            return
        joined = _named(last[:-half] * (int(last.max()) + 1) + last[half:])
        counts = np.bincount(joined)
        if counts.max(initial=0) < 2:
            return
        names.append(joined)
        for group in _heaviest(joined, counts, before[: len(joined)], total[size:] - total[:-size]):
            repeat = _longest(np.flatnonzero(joined == group), size, names)
            if len(repeat.places) > 1:
                yield repeat


def _named(values: Ints) -> Ints:
    """The distinct values numbered in order of their first place; 32 bits, as one array is kept for each doubling."""
    return numbered(values)[0].astype(np.int32)


def _heaviest(names: Ints, counts: Ints, before: Ints, weights: Ints) -> Ints:
    """The heaviest names that repeat and do not continue a longer repeat to the left."""
    heavy = np.bincount(names, weights=weights, minlength=len(counts))
    chosen = np.flatnonzero((counts > 1) & ~_all_alike(names, before, len(counts)))
    return chosen[np.argsort(-heavy[chosen], kind="stable")[:_MOST_OF_A_LENGTH]]


def _all_alike(names: Ints, values: Ints, count: int) -> Bools:
    """Whether all places of each name have the same value."""
    first = np.full(count, -2, dtype=np.int64)
    first[names[::-1]] = values[::-1]
    alike = np.ones(count, dtype=bool)
    alike[names[values != first[names]]] = False
    return alike


def _longest(places: Ints, length: int, names: list[Ints]) -> Repeat:
    """Make a repeat longer to the right while all its places agree, as far as no two overlap."""
    distances = np.diff(places)
    close = distances[distances < length]
    if 2 * len(close) > len(distances) and (period := int(np.median(close))) > 1:
        length = period  # one after the other: what repeats is shorter
    if len(close):
        places = _apart(places, length)
    most = int(np.diff(places).min(initial=len(names[0])))
    for level in range(len(names) - 1, -1, -1):
        known, size = names[level], 1 << level
        while length + size <= most and places[-1] + length < len(known):
            here = known[places + length]
            if (here != here[0]).any():
                break
            length += size
    return Repeat(places, length)


def _apart(places: Ints, length: int) -> Ints:
    """Places one after another, each at least ``length`` behind the one before."""
    chosen = np.empty(len(places), dtype=np.int64)
    return chosen[: run(_spaced, (places, length), (chosen,), len(places))]


def _spaced(places: Sequence[int], length: int, chosen: MutableSequence[int]) -> int:
    count, free = 0, 0
    for place in places:
        if place >= free:
            chosen[count] = place
            count += 1
            free = place + length
    return count
