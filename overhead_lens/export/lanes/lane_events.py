"""Data drawn beside a budget: traced events and the categories over them, as data frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from overhead_lens.errors import InvariantError

EVENT_COLUMNS = ("name", "cat", "pid", "tid", "start_ns", "dur_ns")
CATEGORY_COLUMNS = ("start_ns", "dur_ns", "category", "tid")


@dataclass(frozen=True, slots=True)
class LaneEvents:
    """Events of one capture or trace; whatever is absent is not drawn.

    Attributes:
        events: Event frame of ``readers.kineto``. Optional int64 columns, -1 where absent: ``correlation`` (a launch and its
            device events), ``sequence`` (a forward operator and its backward), ``device`` and ``stream``.
        categories: Host categories over the same time: ``start_ns`` and ``dur_ns`` (int64, the events' zero),
            ``category``, ``tid`` and optionally ``pid`` (of the first event of that ``tid`` where absent).
        separates_python: Whether Python frames have a lane of their own, or one with the operators that they call.
        process_name: What the processes of ``events`` are called.
    """

    events: pd.DataFrame | None = None
    categories: pd.DataFrame | None = None
    separates_python: bool = True
    process_name: str = "python"
    thread_names: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check("events", self.events, EVENT_COLUMNS)
        _check("categories", self.categories, CATEGORY_COLUMNS)


def _check(what: str, frame: pd.DataFrame | None, columns: tuple[str, ...]) -> None:
    if frame is None:
        return
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InvariantError(f"{what} have no column {missing[0]!r}")
    if len(frame) and frame["dur_ns"].min() < 0:
        raise InvariantError(f"{what}: dur_ns is below 0")
