"""What is drawn beside the budget: the measurements that it rests on, as data frames and stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from overhead_lens.errors import InvariantError
from overhead_lens.stack import Stack

EVENT_COLUMNS = ("name", "cat", "pid", "tid", "start_ns", "dur_ns")
CATEGORY_COLUMNS = ("start_ns", "dur_ns", "category", "tid")
CLOCK_COLUMNS = ("process", "block", "calls", "wall_ns", "reference_ns", "minor_faults")


@dataclass(frozen=True, slots=True)
class Drawn:
    """Measurements of one capture or trace; whatever is absent is not drawn.

    Attributes:
        events: Event frame of ``readers.kineto``. Optional int64 columns, -1 where absent: ``correlation`` (a launch and its
            device events), ``sequence`` (a forward operator and its backward), ``device`` and ``stream``.
        categories: Host categories over the same time: ``start_ns`` and ``dur_ns`` (int64, the events' zero),
            ``category``, ``tid`` and optionally ``pid`` (of the first event of that ``tid`` where absent).
        clock: One row per timed block: ``process``, ``block``, ``calls`` (>= 1), ``wall_ns``, ``reference_ns``,
            ``minor_faults``, all int64.
        stacks: Sampled stacks, with counts.
        sample_period_ns: Time between two samples, positive.
        process_name: What the processes of ``events`` are called.
        thread_names: What their threads, (process, thread), are called.
    """

    events: pd.DataFrame | None = None
    categories: pd.DataFrame | None = None
    clock: pd.DataFrame | None = None
    stacks: Sequence[Stack] = ()
    sample_period_ns: int = 1_000_000
    process_name: str = "python"
    thread_names: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check("events", self.events, EVENT_COLUMNS, least={"dur_ns": 0})
        _check("categories", self.categories, CATEGORY_COLUMNS, least={"dur_ns": 0})
        _check("clock", self.clock, CLOCK_COLUMNS, least={"calls": 1, "wall_ns": 0, "reference_ns": 0})
        if self.sample_period_ns < 1:
            raise InvariantError(f"sample period is {self.sample_period_ns} ns")


def _check(what: str, frame: pd.DataFrame | None, columns: tuple[str, ...], least: dict[str, int]) -> None:
    if frame is None:
        return
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InvariantError(f"{what} have no column {missing[0]!r}")
    for column, smallest in least.items():
        if len(frame) and frame[column].min() < smallest:
            raise InvariantError(f"{what}: {column} is below {smallest}")
