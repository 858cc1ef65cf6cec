"""Counters that a trace holds: Chrome's ``C`` events, one value for each series in their arguments.

Kineto writes samples of hardware counters like that (libkineto/src/output_json.cpp, ``handleCounterEvent``): for CUDA one event
a metric, its series without a name, on the process ``GPU 0 Counters``; for XPU and MTIA one event of all metrics. Other tools
put their own on the same axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from overhead_lens.readers.kineto.memory import named

PLACES = ("name", "cat", "pid", "tid")

Values = tuple[tuple[str, float], ...]

_MOST = 1e100
_DECODER = msgspec.json.Decoder(dict[str, Any])


def counter_values(arguments: bytes) -> Values | None:
    """Series and values from the text of ``args``; None where it holds none, or one that is no number or beyond 1e100."""
    try:
        read = _DECODER.decode(arguments)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not read or not all(_is_number(value) for value in read.values()):
        return None
    return tuple((series, float(value)) for series, value in read.items())


def _is_number(value: Any) -> bool:
    """Whether sums of it and its products with durations are finite."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _MOST


def counter_frame(
    placed: Mapping[str, npt.NDArray[Any]], values: Sequence[Values], strings: Sequence[str]
) -> pd.DataFrame:
    """The counter frame.

    Args:
        placed: ``name``, ``cat``, ``pid`` and ``tid`` as indices into ``strings``, and ``start_ns``, of each event.
        values: One for each event.
        strings: Distinct texts.
    """
    event = np.repeat(np.arange(len(values)), [len(read) for read in values])
    series: dict[str, int] = {}
    codes = [series.setdefault(name, len(series)) for read in values for name, _ in read]
    columns: dict[str, Any] = {name: named(placed[name][event], strings) for name in PLACES}
    columns["series"] = named(np.array(codes, dtype=np.int64), list(series))
    columns["start_ns"] = placed["start_ns"][event].astype(np.int64)
    columns["value"] = np.array([value for read in values for _, value in read], dtype=np.float64)
    made: pd.DataFrame = pd.DataFrame(columns)
    return made


def no_counters() -> pd.DataFrame:
    """The counter frame of a trace without counters."""
    return counter_frame({name: np.zeros(0, dtype=np.int64) for name in (*PLACES, "start_ns")}, [], [])
