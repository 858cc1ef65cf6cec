"""LRU stack distance of events: how far their code and data have left the caches."""

from __future__ import annotations

import math
from collections.abc import Sequence


def rms_stack_distance(names: Sequence[str]) -> float:
    """Root mean square LRU stack distance of events (Mattson, 1970); 0 of none.

    The distance counts the different names since the event's own was last seen, its own included. A name that was not seen
    before has all names as its distance, as if the sequence were that of a loop. Squares, because the cold-cache cost grows
    faster than the distance::

        a b b c | a b b c       a: 3 3   b: 3 1 3 1   c: 3 3   root mean square 2.65

    Args:
        names: In the order of their starts.
    """
    name_count = len(set(names))
    stack: list[str] = []
    total = 0
    for name in names:
        distance = name_count
        if name in stack:
            depth = stack.index(name)
            distance = len(stack) - depth
            del stack[depth]
        stack.append(name)
        total += distance**2
    return math.sqrt(total / len(names)) if names else 0.0
