"""The clock instrument's blocks as counters over measured time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

CLOCK = "Clock"


@dataclass(frozen=True, slots=True)
class Counter:
    """A quantity over time.

    Attributes:
        points: Time in ns since the start of its process's first block, and the value from then on.
    """

    name: str
    unit: str
    points: tuple[tuple[int, float], ...]


def clock_counters(clock: pd.DataFrame | None) -> Iterator[Counter]:
    """Wall time and minor page faults per call of every block, by worker process.

    A process's time is what it spent in reference loops and blocks; a value stands from the start of its block::

        reference 0 | block 0      | reference 1 | block 1 ...
                    ^ its value                  ^ its value
    """
    if clock is None:
        return
    for process, blocks in clock.sort_values("block", kind="stable").groupby("process"):
        spent_ns = (blocks["reference_ns"] + blocks["wall_ns"]).cumsum()
        starts_ns = (spent_ns - blocks["wall_ns"]).tolist()
        for name, unit, column in (
            ("wall time", "ns/call", "wall_ns"),
            ("minor faults", "faults/call", "minor_faults"),
        ):
            per_call = (blocks[column] / blocks["calls"]).tolist()
            yield Counter(f"process {process}: {name}", unit, tuple(zip(starts_ns, per_call, strict=True)))
