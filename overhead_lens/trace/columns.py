"""From columns of numbers and interned text to the event frame of ``model.py``."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from overhead_lens.errors import UsageError
from overhead_lens.trace.event import ABSENT, COMPLETE, LABEL
from overhead_lens.trace.model import DEVICE_CATEGORIES

CODES = ("name", "cat", "pid", "tid")
NUMBERS = ("start_ns", "dur_ns", "correlation", "sequence", "device", "stream", "external")

Ints = npt.NDArray[Any]

_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows of a trace before they become a frame.

    Attributes:
        kind: int8, shape ``(n,)``: ``COMPLETE`` or ``LABEL``.
        values: Per name of ``CODES`` int32 numbers of ``texts``, per name of ``NUMBERS`` int64; each of shape ``(n,)``. In a
            label's row, ``name`` is the thread's name.
        texts: Every text once or more often; equal texts become one category.
    """

    kind: Ints
    values: MutableMapping[str, Ints]
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Framed:
    """The event frame with what was read beside it.

    Attributes:
        events: The frame, its earliest start at 0.
        earliest_ns: That start as the file has it; 0 for no event.
        thread_names: (pid, tid) to name.
        rows: int64: which row of the columns each row of the frame was.
    """

    events: pd.DataFrame
    earliest_ns: int
    thread_names: Mapping[tuple[str, str], str]
    rows: Ints


def framed(columns: Columns) -> Framed:
    """The frame of the complete events; the columns' values are taken out of it.

    Raises:
        UsageError: The events span more than int64 nanoseconds.
    """
    rows = np.flatnonzero(columns.kind == COMPLETE)
    texts, number_of = _distinct(columns.texts)
    all_rows = len(rows) == len(columns.kind)
    names = _thread_names(columns)
    frame: dict[str, Any] = {}
    for name in (*CODES, *NUMBERS):
        # Taken out as they are used, so that one column at a time is in memory twice.
        column = columns.values.pop(name)
        column = column if all_rows else column[rows]
        frame[name] = _categorical(number_of[column], texts) if name in CODES else column
    starts = frame["start_ns"]
    earliest_ns = int(starts.min()) if len(starts) else 0
    # In Python's integers: int64 would wrap where this matters.
    if len(starts) and int(starts.max()) - earliest_ns + int(frame["dur_ns"].max()) > _INT64_MAX:
        raise UsageError("the trace spans more than 292 years: its timestamps are damaged")
    starts -= earliest_ns
    _place_on_devices(frame)
    return Framed(pd.DataFrame(frame, copy=False), earliest_ns, names, rows)


def _distinct(texts: Sequence[str]) -> tuple[list[str], Ints]:
    """Every text once, and for each given text its number among these."""
    known: dict[str, int] = {}
    numbers = [known.setdefault(text, len(known)) for text in texts]
    return list(known), np.array(numbers or [0], dtype=np.int32)


def _categorical(codes: Ints, texts: Sequence[str]) -> Any:
    """The codes with the texts that they use, in the order of the texts."""
    used = np.flatnonzero(np.bincount(codes, minlength=len(texts)))
    new_code = np.zeros(max(1, len(texts)), dtype=np.int32)
    new_code[used] = np.arange(len(used))
    categories: Any = pd.Index([texts[number] for number in used.tolist()], dtype=object)  # type: ignore[arg-type, unused-ignore]
    made: Any = pd.Categorical.from_codes(new_code[codes], categories=categories, validate=False)
    return made


def _place_on_devices(frame: dict[str, Any]) -> None:
    """Device and stream only for device work; where ``args`` lack them, process and thread say them."""
    cat = frame["cat"]
    work = np.isin(cat.codes, [code for code, name in enumerate(cat.categories) if name in DEVICE_CATEGORIES])
    for name, stand_in in (("device", frame["pid"]), ("stream", frame["tid"])):
        numbers = frame[name]
        numbers[~work] = ABSENT
        absent = np.flatnonzero(work & (numbers == ABSENT))
        if len(absent):
            known = np.array([_number(text) for text in stand_in.categories], dtype=np.int64)
            numbers[absent] = known[stand_in.codes[absent]]


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return ABSENT


def _thread_names(columns: Columns) -> dict[tuple[str, str], str]:
    values, texts = columns.values, columns.texts
    return {
        (texts[values["pid"][row]], texts[values["tid"][row]]): texts[values["name"][row]]
        for row in np.flatnonzero(columns.kind == LABEL).tolist()
    }
