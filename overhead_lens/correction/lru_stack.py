"""How much else happens between two events of one name: what they need has been displaced from the caches accordingly."""

from __future__ import annotations

import math
from collections.abc import Sequence


def rms_reuse_distance(names: Sequence[str]) -> float:
    """How many names, its own among them, were seen since an event's own was (the stack distance of Mattson, 1970).

    Root mean square over events: what is displaced costs more than in proportion, so few that are far apart weigh more than
    many that are half as far. An event whose name was not seen before has all names there are between, as if the sequence were
    that of a loop::

        a b b c | a b b c       a: 3 3   b: 3 1 3 1   c: 3 3   root of the mean of their squares 2.65

    Args:
        names: In the order of their starts; 0 of none.
    """
    everything = len(set(names))
    latest: list[str] = []
    total = 0
    for name in names:
        distance = everything
        if name in latest:
            place = latest.index(name)
            distance = len(latest) - place
            del latest[place]
        latest.append(name)
        total += distance**2
    return math.sqrt(total / len(names)) if names else 0.0
