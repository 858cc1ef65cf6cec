"""Rows of a trace as columns of numbers and interned strings, which both ways of reading fill."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from overhead_lens.readers.kineto.memory import Numbers

CODES = ("name", "cat", "pid", "tid")
NUMBERS = ("start_ns", "dur_ns", "correlation", "sequence", "device", "stream", "external")

Ints = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows of a trace, column by column, before they become a frame.

    Attributes:
        kind: int8, shape ``(n,)``: ``COMPLETE``, ``LABEL`` or ``MEMORY``.
        values: For each name of ``CODES`` int32 indices into ``strings``, for each name of ``NUMBERS`` int64; all of shape
            ``(n,)``. In a label's row ``name`` is the thread's name.
        strings: Strings by index; duplicates become one category.
        memory: What the rows of kind ``MEMORY`` say, in their order.
    """

    kind: Ints
    values: MutableMapping[str, Ints]
    strings: Sequence[str]
    memory: Sequence[Numbers] = ()
