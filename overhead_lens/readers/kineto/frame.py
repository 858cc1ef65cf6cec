"""Builds the frames of ``model.py`` from columns of numbers and interned strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from overhead_lens.errors import UsageError
from overhead_lens.readers.kineto.columns import CODES, NUMBERS, Columns, Ints
from overhead_lens.readers.kineto.event import ABSENT, BEYOND, COMPLETE, DEVICE_CATEGORIES, LABEL, MEMORY, integer
from overhead_lens.readers.kineto.memory import NUMBERS as MEMORY_NUMBERS
from overhead_lens.readers.kineto.memory import Numbers

_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Framed:
    """The event frame, and what was read beside it.

    Attributes:
        events: The frame; the earliest event starts at 0.
        memory: Allocations and releases, on the same axis.
        earliest_ns: That start as the file has it; 0 without events.
        thread_names: (pid, tid) to name.
        rows: int64, shape ``(len(events),)``: row of the columns per row of the frame.
        damaged_count: Device events dropped because their device or stream cannot be read.
    """

    events: pd.DataFrame
    memory: pd.DataFrame
    earliest_ns: int
    thread_names: Mapping[tuple[str, str], str]
    rows: Ints
    damaged_count: int


def framed(columns: Columns) -> Framed:
    """Build the frame of the complete events; empties ``columns.values``.

    Raises:
        UsageError: The events span, or last together, more than int64 nanoseconds.
    """
    complete = np.flatnonzero(columns.kind == COMPLETE)
    rows = _placed_on_devices(columns, complete)
    strings, number_of = _distinct(columns.strings)
    all_rows = len(rows) == len(columns.kind)
    names = _thread_names(columns)
    at = np.flatnonzero(columns.kind == MEMORY)
    placed = {name: number_of[columns.values[name][at]] for name in ("pid", "tid")}
    placed["start_ns"] = columns.values["start_ns"][at]
    frame: dict[str, Any] = {}
    for name in (*CODES, *NUMBERS):
        # Popped as it is used: only one column at a time is in memory twice.
        column = columns.values.pop(name)
        column = column if all_rows else column[rows]
        frame[name] = _categorical(number_of[column], strings) if name in CODES else column
    starts = frame["start_ns"]
    _check_range(np.concatenate((starts, placed["start_ns"])), np.append(frame["dur_ns"], 0))
    earliest_ns = int(starts.min()) if len(starts) else 0
    if not len(starts) and len(at):
        earliest_ns = int(placed["start_ns"].min())
    starts -= earliest_ns
    placed["start_ns"] = placed["start_ns"] - earliest_ns
    memory = memory_frame(placed, columns.memory, strings)
    return Framed(pd.DataFrame(frame, copy=False), memory, earliest_ns, names, rows, len(complete) - len(rows))


def _check_range(start_ns: Ints, dur_ns: Ints) -> None:
    """Refuse times whose differences or sums int64 cannot hold; it would wrap around silently."""
    if not len(start_ns):
        return
    if int(start_ns.max()) - int(start_ns.min()) + int(dur_ns.max()) > _INT64_MAX:
        raise UsageError("the trace spans more than 292 years: its timestamps are damaged")
    if dur_ns.sum(dtype=np.float64) >= _INT64_MAX:
        raise UsageError("the events of the trace last more than 292 years together: their durations are damaged")


def _distinct(strings: Sequence[str]) -> tuple[list[str], Ints]:
    """Distinct strings, and per given string its index among them (int32)."""
    known: dict[str, int] = {}
    numbers = [known.setdefault(text, len(known)) for text in strings]
    return list(known), np.array(numbers or [0], dtype=np.int32)


def _categorical(codes: Ints, strings: Sequence[str]) -> Any:
    """Categorical of the codes; categories are the strings in use, in the order of ``strings``."""
    used = np.flatnonzero(np.bincount(codes, minlength=len(strings)))
    new_code = np.zeros(max(1, len(strings)), dtype=np.int32)
    new_code[used] = np.arange(len(used))
    categories: Any = pd.Index([strings[number] for number in used.tolist()], dtype=object)  # type: ignore[arg-type, unused-ignore]
    made: Any = pd.Categorical.from_codes(new_code[codes], categories=categories, validate=False)
    return made


def _placed_on_devices(columns: Columns, rows: Ints) -> Ints:
    """Set ``device`` and ``stream`` of the complete events, and drop device work that lacks them.

    Device work takes them from ``args``, else from process and thread; all other events have -1. Device work is dropped if its
    device is no integer >= 0, or if int64 cannot hold its device or its stream.

    Args:
        columns: ``device`` and ``stream`` are changed in place.
        rows: int64: rows of the complete events.

    Returns:
        int64: the rows to keep.
    """
    values, strings = columns.values, columns.strings
    is_work = np.array([text in DEVICE_CATEGORIES for text in strings] or [False])[values["cat"][rows]]
    work = rows[is_work]
    for name, stand_in in (("device", "pid"), ("stream", "tid")):
        numbers = values[name]
        numbers[rows[~is_work]] = ABSENT
        absent = work[numbers[work] == ABSENT]
        codes, at = np.unique(values[stand_in][absent], return_inverse=True)
        known = np.array([integer(strings[code], beyond=BEYOND) for code in codes.tolist()], dtype=np.int64)
        numbers[absent] = known[at]
    is_placed = (values["device"][work] >= 0) & (values["stream"][work] != BEYOND)
    return rows if is_placed.all() else np.setdiff1d(rows, work[~is_placed], assume_unique=True)


def _thread_names(columns: Columns) -> dict[tuple[str, str], str]:
    values, strings = columns.values, columns.strings
    return {
        (strings[values["pid"][row]], strings[values["tid"][row]]): strings[values["name"][row]]
        for row in np.flatnonzero(columns.kind == LABEL).tolist()
    }


def no_memory() -> pd.DataFrame:
    """The memory frame of a trace without such events."""
    return memory_frame({name: np.zeros(0, dtype=np.int64) for name in ("pid", "tid", "start_ns")}, [], [])


def memory_frame(placed: Mapping[str, Ints], numbers: Sequence[Numbers], strings: Sequence[str]) -> pd.DataFrame:
    """The memory frame.

    Args:
        placed: ``pid`` and ``tid`` as indices into ``strings``, and ``start_ns``.
        numbers: One for each event.
        strings: Distinct texts.
    """
    table = np.array(numbers, dtype=np.int64).reshape(-1, len(MEMORY_NUMBERS))
    columns: dict[str, Any] = {name: _named(placed[name], strings) for name in ("pid", "tid")}
    columns["start_ns"] = placed["start_ns"].astype(np.int64)
    columns |= {name: table[:, at].copy() for at, name in enumerate(MEMORY_NUMBERS)}
    made: pd.DataFrame = pd.DataFrame(columns)
    return made


def _named(codes: Ints, strings: Sequence[str]) -> Any:
    used, number = np.unique(codes, return_inverse=True)
    texts: Any = pd.Index([strings[code] for code in used.tolist()], dtype=object)
    made: Any = pd.Categorical.from_codes(number.astype(np.int32), categories=texts, validate=False)
    return made
