"""How much else happens between two events of one name: what they need has been displaced from the caches accordingly."""

from __future__ import annotations

from collections.abc import Sequence


def mean_reuse_distance(names: Sequence[str]) -> float:
    """Mean over events of how many names, its own among them, were seen since its own was (the stack distance of Mattson, 1970).

    An event whose name was not seen before has all names there are between, as if the sequence were that of a loop::

        a b b c | a b b c       a: 3 3   b: 3 1 3 1   c: 3 3   mean 2.5

    Args:
        names: In the order of their starts; 0 of none.
    """
    everything = len(set(names))
    latest: list[str] = []
    total = 0
    for name in names:
        if name in latest:
            place = latest.index(name)
            total += len(latest) - place
            del latest[place]
        else:
            total += everything
        latest.append(name)
    return total / len(names) if names else 0.0
