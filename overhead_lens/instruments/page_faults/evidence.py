"""What a page fault takes of the thread's own time, as ``meta.json`` says it, and when that is worth knowing."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from overhead_lens.captures.directory import Capture

# A fault takes no less than this, and a call of whose time faults take less than this share is no better known for it.
_LEAST_FAULT_NS = 100
_LEAST_SHARE = 0.002

NotNegative = Annotated[int, Meta(ge=0)]


class Touched(Struct, frozen=True):
    """Fresh pages that a process touched, and by how much more user time, ns, that took than touching those that are there."""

    faults: NotNegative
    user_ns: NotNegative
    process: int = 0


class PageFaults(Struct, frozen=True):
    """One row for each process that measured it."""

    processes: list[Touched] = []


def read_page_faults(capture: Capture) -> PageFaults:
    """What was measured; no rows where faults do not matter.

    Raises:
        UsageError: ``meta.json`` is damaged.
    """
    return capture.note("page_faults", PageFaults) or PageFaults()


def matter(faults: float, wall_ns: float) -> bool:
    """Whether so many page faults in so much time show in it."""
    return faults * _LEAST_FAULT_NS >= _LEAST_SHARE * wall_ns
