"""What watching costs a process, by its own CPU clock.

A process of steady load gets a steady number of CPU seconds a second, and fewer while it is watched: every stack stops the
process and its CPU clock, and the sampler takes its cores. The share that is missing is the slowdown::

    wall   |---- before, in eight pieces ----|---- symbols are read, stacks are taken ----|
    CPU     ########  ######## ######## ####  .......  ### # ## ### # ### ## ### # ## ###

It is unknown for a process that hardly runs, or whose load changes by itself.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

LEAST_LOAD = 0.05
"""CPU seconds a second below which a process is idle."""

MOST_UNSTEADY_SHARE = 0.1
"""Half the 95 % interval of the load before, as a share of it, above which the load is not steady."""


class Reading(Struct, frozen=True):
    """The wall clock and the process's CPU clock at one instant, ns."""

    wall_ns: int
    cpu_ns: int


def slowdown(before: Sequence[Reading], during: Sequence[Reading]) -> tuple[float | None, str | None]:
    """The slowdown, 0 to 1; or None, and why it is unknown. Readings are in order, at least three ``before``."""
    if len(before) < 3 or len(during) < 2:
        return None, "its CPU clock could not be read"
    loads = [_load(one, other) for one, other in pairwise(before)]
    load = _load(before[0], before[-1])
    if load < LEAST_LOAD:
        return None, "it hardly runs"
    if 1.96 * statistics.stdev(loads) / math.sqrt(len(loads)) > MOST_UNSTEADY_SHARE * load:
        return None, "its load is not steady"
    return max(0.0, 1.0 - _load(during[0], during[-1]) / load), None


def _load(one: Reading, other: Reading) -> float:
    return (other.cpu_ns - one.cpu_ns) / max(1, other.wall_ns - one.wall_ns)
