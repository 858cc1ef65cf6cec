"""Allocations and releases that torch.profiler recorded (``profile_memory=True``): the arguments of ``[memory]`` instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from overhead_lens.readers.kineto.event import ABSENT, integer

NUMBERS = ("address", "bytes", "allocated_bytes", "reserved_bytes", "device_type", "device")
"""Columns that come from the arguments."""

COLUMNS = ("pid", "tid", "start_ns", *NUMBERS)

Numbers = tuple[int, int, int, int, int, int]


class _Arguments(msgspec.Struct, gc=False):
    address: Any = msgspec.field(default=None, name="Addr")
    size: Any = msgspec.field(default=None, name="Bytes")
    allocated: Any = msgspec.field(default=None, name="Total Allocated")
    reserved: Any = msgspec.field(default=None, name="Total Reserved")
    device_type: Any = msgspec.field(default=None, name="Device Type")
    device: Any = msgspec.field(default=None, name="Device Id")


_MOST_BYTES = 1 << 50
_DECODER = msgspec.json.Decoder(_Arguments)


def memory_numbers(arguments: bytes) -> Numbers | None:
    """Values of ``NUMBERS`` from the text of ``args``, -1 where absent; None where it does not say how many bytes."""
    try:
        read = _DECODER.decode(arguments)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(read.size, bool) or not isinstance(read.size, int) or not -_MOST_BYTES < read.size < _MOST_BYTES:
        return None
    totals = (_total(read.allocated), _total(read.reserved))
    return (integer(read.address), read.size, *totals, integer(read.device_type), integer(read.device))


def _total(value: Any) -> int:
    number = integer(value)
    return number if 0 <= number < _MOST_BYTES else ABSENT


def no_memory() -> pd.DataFrame:
    """The memory frame of a trace without such events."""
    return memory_frame({name: np.zeros(0, dtype=np.int64) for name in ("pid", "tid", "start_ns")}, [], [])


def memory_frame(
    placed: Mapping[str, npt.NDArray[Any]], numbers: Sequence[Numbers], strings: Sequence[str]
) -> pd.DataFrame:
    """The memory frame.

    Args:
        placed: ``pid`` and ``tid`` as indices into ``strings``, and ``start_ns``.
        numbers: One for each event.
        strings: Distinct texts.
    """
    table = np.array(numbers, dtype=np.int64).reshape(-1, len(NUMBERS))
    columns: dict[str, Any] = {name: named(placed[name], strings) for name in ("pid", "tid")}
    columns["start_ns"] = placed["start_ns"].astype(np.int64)
    columns |= {name: table[:, at].copy() for at, name in enumerate(NUMBERS)}
    made: pd.DataFrame = pd.DataFrame(columns)
    return made


def named(codes: npt.NDArray[Any], strings: Sequence[str]) -> Any:
    """Categorical of indices into ``strings``, whose categories are those in use."""
    used, number = np.unique(codes, return_inverse=True)
    texts: Any = pd.Index([strings[code] for code in used.tolist()], dtype=object)
    made: Any = pd.Categorical.from_codes(number.astype(np.int32), categories=texts, validate=False)
    return made
