"""Builds the columns of the frames of ``model.py`` from columns of numbers and interned strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from overhead_lens.errors import UsageError
from overhead_lens.readers.kineto.columns import CODES, NUMBERS, Columns, Ints, Texts
from overhead_lens.readers.kineto.counters import PLACES, Values
from overhead_lens.readers.kineto.event import (
    ABSENT,
    ANNOTATION_CATEGORY,
    BEYOND,
    COUNTER,
    DAMAGED,
    DEVICE_CATEGORIES,
    LABEL,
    MEMORY,
    UNTIMED,
    integer,
)
from overhead_lens.readers.kineto.memory import NUMBERS as MEMORY_NUMBERS
from overhead_lens.readers.kineto.work import COLUMNS as WORK_COLUMNS
from overhead_lens.stats.values import first_places
from overhead_lens.taxonomy.torch_names import OLD_ANNOTATION

_INT64_MAX = 2**63 - 1
_FAR_NS = 1_000_000_000
_OPERATORS = frozenset({"Operator", "cpu_op"})


@dataclass(frozen=True, slots=True)
class Framed:
    """The columns of the event frame, and what was read beside it.

    Attributes:
        memory: Allocations and releases, on the same axis.
        counters: Values of counters, on the same axis.
        work: What device work says of itself.
        rows: int64, shape ``(len(events),)``: row of ``columns.values`` per row of the frame.
        dropped: Events that are not in the frame though they are complete, by reason.
    """

    events: Mapping[str, Any]
    memory: Mapping[str, Any]
    counters: Mapping[str, Any]
    work: Mapping[str, Any]
    thread_names: Mapping[tuple[str, str], str]
    rows: Ints
    dropped: Mapping[str, int]


def framed(columns: Columns) -> Framed:
    """Build the columns of the complete events; empties ``columns.values``.

    Raises:
        UsageError: The events span, or last together, more than int64 nanoseconds.
    """
    untimed = _untimed(columns.values)
    damaged = _placed_on_devices(columns) & ~untimed
    rows = np.flatnonzero(~(untimed | damaged))
    strings, number_of = _distinct(_with_annotations(columns.values, columns.strings))
    frame: dict[str, Any] = {}
    for name in (*CODES, *NUMBERS):
        # Popped as it is used: only one column at a time is in memory twice.
        column = columns.values.pop(name)
        column = column if len(rows) == len(column) else column[rows]
        frame[name] = _texts(column, strings, number_of) if name in CODES else column
    starts = frame["start_ns"]
    placed, counted = _placed(columns.beside, MEMORY), _placed(columns.beside, COUNTER)
    others = np.concatenate((placed["start_ns"], counted["start_ns"]))
    _check_range(starts, others, frame["dur_ns"])
    first = starts if len(starts) else others
    earliest_ns = int(first.min()) if len(first) else 0
    starts -= earliest_ns
    for named in (placed, counted):
        named["start_ns"] = named["start_ns"] - earliest_ns
    return Framed(
        events=frame,
        memory=memory_columns(placed, columns.memory, strings, number_of),
        counters=counter_columns(counted, columns.counters, strings, number_of),
        work=work_columns(columns.work, frame["device"], rows),
        thread_names=_thread_names(columns),
        rows=rows,
        dropped={UNTIMED: int(untimed.sum()), DAMAGED: int(damaged.sum())},
    )


def _placed(beside: Mapping[str, Ints], kind: int) -> dict[str, Ints]:
    """Texts (as indices) and times of the rows of one kind."""
    at = np.flatnonzero(beside["kind"] == kind)
    return {name: beside[name][at] for name in (*CODES, "start_ns")}


def _check_range(start_ns: Ints, others_ns: Ints, dur_ns: Ints) -> None:
    """Refuse times whose differences or sums int64 cannot hold; it would wrap around silently."""
    both = [each for each in (start_ns, others_ns) if len(each)]
    if not both:
        return
    span_ns = max(int(each.max()) for each in both) - min(int(each.min()) for each in both)
    if span_ns + (int(dur_ns.max()) if len(dur_ns) else 0) > _INT64_MAX:
        raise UsageError("the trace spans more than 292 years: its timestamps are damaged")
    if dur_ns.sum(dtype=np.float64) >= _INT64_MAX:
        raise UsageError("the events of the trace last more than 292 years together: their durations are damaged")


def _distinct(strings: Sequence[str]) -> tuple[list[str], Ints]:
    """Distinct strings, and per given string its index among them (int32)."""
    known: dict[str, int] = {}
    numbers = [known.setdefault(text, len(known)) for text in strings]
    return list(known), np.array(numbers or [0], dtype=np.int32)


def _with_annotations(values: Mapping[str, Ints], strings: Sequence[str]) -> Sequence[str]:
    """The strings with the category of annotations, which ``cat`` gets where torch's Python code annotated something.

    PyTorch writes it from 1.10 on, until then ``Operator``; torch_npu writes ``cpu_op``.
    """
    annotates = np.array([bool(OLD_ANNOTATION.match(text)) for text in strings])
    if not annotates.any():
        return strings
    is_old = np.array([text in _OPERATORS for text in strings])[values["cat"]] & annotates[values["name"]]
    np.putmask(values["cat"], is_old, len(strings))
    return [*strings, ANNOTATION_CATEGORY]


def _texts(codes: Ints, strings: Sequence[str], number_of: Ints) -> Texts:
    """Texts of codes; ``number_of`` has their indices in ``strings``. Categories are those in use, in that order."""
    is_used = np.zeros(len(number_of), dtype=bool)
    is_used[codes] = True
    numbers = np.unique(number_of[is_used])
    # The dtype in which pandas keeps codes of as many categories.
    new_code = np.zeros(len(number_of), dtype=np.min_scalar_type(-2 - len(numbers)))
    new_code[is_used] = np.searchsorted(numbers, number_of[is_used])
    return Texts(new_code[codes], np.array([strings[number] for number in numbers.tolist()], dtype=object))


def _untimed(values: Mapping[str, Ints]) -> Ints:
    """Which complete events have no time: those at 0 ns with no duration, a second or more before all others.

    That is how Kineto writes device events and runtime calls whose times CUPTI does not give (cupti_activity.h: start and end are
    0): those of the profiler's warm-up (torch 2.11), and of a recording that is exported after the next one began.
    """
    start_ns = values["start_ns"]
    lacks_time: Ints = (start_ns == 0) & (values["dur_ns"] == 0)
    if lacks_time.any() and (lacks_time.all() or int(start_ns[~lacks_time].min()) < _FAR_NS):
        lacks_time[:] = False
    return lacks_time


def _placed_on_devices(columns: Columns) -> Ints:
    """Set ``device`` and ``stream`` of the complete events; which are device work without them.

    Device work takes them from ``args``, else from process and thread; all other events have -1. Device work lacks them if its
    device is not an integer >= 0, or if int64 cannot hold its device or its stream.
    """
    values, strings = columns.values, columns.strings
    is_work = np.array([text in DEVICE_CATEGORIES for text in strings] or [False])[values["cat"]]
    work = np.flatnonzero(is_work)
    for name, stand_in in (("device", "pid"), ("stream", "tid")):
        numbers = values[name]
        np.putmask(numbers, ~is_work, ABSENT)
        absent = work[numbers[work] == ABSENT]
        codes, at = np.unique(values[stand_in][absent], return_inverse=True)
        known = np.array([integer(strings[code], beyond=BEYOND) for code in codes.tolist()], dtype=np.int64)
        numbers[absent] = known[at]
    is_work[work] = (values["device"][work] < 0) | (values["stream"][work] == BEYOND)
    return is_work


def _thread_names(columns: Columns) -> dict[tuple[str, str], str]:
    labels, strings = _placed(columns.beside, LABEL), columns.strings
    named = zip(*(labels[name].tolist() for name in ("pid", "tid", "name")), strict=True)
    return {(strings[pid], strings[tid]): strings[name] for pid, tid, name in named}


@cache
def nothing() -> Framed:
    """The columns of a trace without rows, which all such traces share."""
    values: dict[str, Any] = {name: np.zeros(0, dtype=np.int32) for name in CODES}
    values |= {name: np.zeros(0, dtype=np.int64) for name in NUMBERS}
    return framed(Columns(values, [], {"kind": np.zeros(0, dtype=np.int8), **values}))


def memory_columns(placed: Mapping[str, Ints], table: Ints, strings: Sequence[str], number_of: Ints) -> dict[str, Any]:
    """The memory frame of rows whose texts ``number_of`` finds in ``strings``; ``table``: int64 ``(n, len(MEMORY_NUMBERS))``."""
    columns: dict[str, Any] = {name: _texts(placed[name], strings, number_of) for name in ("pid", "tid")}
    columns["start_ns"] = placed["start_ns"].astype(np.int64)
    return columns | {name: table[:, at].copy() for at, name in enumerate(MEMORY_NUMBERS)}


def counter_columns(
    placed: Mapping[str, Ints], values: Sequence[Values], strings: Sequence[str], number_of: Ints
) -> dict[str, Any]:
    """The counter frame of events whose texts ``number_of`` finds in ``strings``; ``values``: of each event."""
    event = np.repeat(np.arange(len(values)), [len(read) for read in values])
    series: dict[str, int] = {}
    codes = [series.setdefault(name, len(series)) for read in values for name, _ in read]
    columns: dict[str, Any] = {name: _texts(placed[name][event], strings, number_of) for name in PLACES}
    columns["series"] = _texts(np.array(codes, dtype=np.int64), list(series), np.arange(len(series)))
    columns["start_ns"] = placed["start_ns"][event].astype(np.int64)
    columns["value"] = np.array([value for read in values for _, value in read], dtype=np.float64)
    return columns


def work_columns(work: Ints, device: Ints, rows: Ints) -> dict[str, Any]:
    """The work frame of ``columns.work``; of each row of the event frame the ``device`` and its row in the columns."""
    at = np.flatnonzero(device >= 0)
    place = first_places(rows[at], work[:, 0])
    held = np.flatnonzero(place >= 0)
    return {"row": at[place[held]]} | {name: work[held, number] for number, name in enumerate(WORK_COLUMNS, 1)}
