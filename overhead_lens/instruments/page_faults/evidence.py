"""User time of page faults, as ``meta.json`` holds it, and whether it matters."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

# A fault takes at least this long; page faults of less than this share of the time are neglected.
_LEAST_FAULT_NS = 100
_LEAST_SHARE = 0.002

NotNegative = Annotated[int, Meta(ge=0)]


class Touched(Struct, frozen=True):
    """Fresh pages that a process touched, and their extra user time, ns, over pages that are there."""

    faults: NotNegative
    user_ns: NotNegative
    process: int = 0


class PageFaults(Struct, frozen=True):
    """One row per process that measured; none where page faults do not matter."""

    processes: list[Touched] = []


def matter(faults: float, wall_ns: float) -> bool:
    """Whether this number of page faults is visible in this time."""
    return faults * _LEAST_FAULT_NS >= _LEAST_SHARE * wall_ns
