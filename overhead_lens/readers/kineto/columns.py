"""What the text of a trace holds: rows as columns of numbers and interned strings, which both ways of reading fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from overhead_lens.readers.kineto.counters import Values
from overhead_lens.readers.kineto.memory import NUMBERS as MEMORY_NUMBERS
from overhead_lens.readers.kineto.work import COLUMNS as WORK_COLUMNS

CODES = ("name", "cat", "pid", "tid")
NUMBERS = ("start_ns", "dur_ns", "correlation", "sequence", "device", "stream", "external")

Ints = npt.NDArray[Any]

Decode = Callable[[Sequence[int]], list[Mapping[str, Any]]]
"""Decodes ``args`` of rows of a frame."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts.

    Attributes:
        codes: Integers, shape ``(n,)``: the place of each row's text among the categories.
        categories: object, shape ``(k,)``: the distinct texts.
    """

    codes: Ints
    categories: npt.NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Ints) -> npt.NDArray[np.object_]:
        return self.categories[self.codes[rows]]


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows of a trace, column by column, before they become frames.

    Attributes:
        values: Of the complete events: for each name of ``CODES`` int32 indices into ``strings``, for each name of ``NUMBERS``
            int64; all of shape ``(n,)``.
        strings: Strings by index; duplicates become one category.
        beside: The same of the other rows, and their ``kind`` (int8): ``LABEL``, whose ``name`` is the thread's name, ``MEMORY``
            or ``COUNTER``.
        memory: int64 ``(m, len(memory.NUMBERS))``: what the rows of kind ``MEMORY`` say, in their order.
        counters: What the rows of kind ``COUNTER`` say, in their order.
        work: int64 ``(m, 1 + len(WORK_COLUMNS))``: a row of ``values``, ascending, and what its arguments say of device work.
    """

    values: MutableMapping[str, Ints]
    strings: Sequence[str]
    beside: Mapping[str, Ints]
    memory: Ints = field(default_factory=lambda: np.zeros((0, len(MEMORY_NUMBERS)), dtype=np.int64))
    counters: Sequence[Values] = ()
    work: Ints = field(default_factory=lambda: np.zeros((0, 1 + len(WORK_COLUMNS)), dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a trace file.

    Attributes:
        columns: Rows of the events and thread names.
        event_count: Entries of ``traceEvents``.
        raw_bytes: Size of the decompressed text.
        metadata: Values beside ``traceEvents``.
        arguments: Makes what decodes ``args`` of rows of a frame, from the row of ``columns.values`` per row of the frame.
    """

    path: Path
    columns: Columns
    event_count: int
    raw_bytes: int
    issues: Mapping[str, int]
    metadata: Mapping[str, Any]
    arguments: Callable[[Ints], Decode]
