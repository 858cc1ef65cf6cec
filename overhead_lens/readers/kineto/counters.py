"""Counters that a trace holds: Chrome's ``C`` events, one value for each series in their arguments.

Kineto writes samples of hardware counters like that (libkineto/src/output_json.cpp, ``handleCounterEvent``): for CUDA one event
a metric, its series without a name, on the process ``GPU 0 Counters``; for XPU and MTIA one event of all metrics. Other tools
put their own on the same axis.
"""

from __future__ import annotations

from typing import Any

import msgspec

PLACES = ("name", "cat", "pid", "tid")

Values = tuple[tuple[str, float], ...]

_MOST = 1e100
_DECODER = msgspec.json.Decoder(dict[str, Any])


def counter_values(arguments: bytes) -> Values | None:
    """Series and values from the text of ``args``; None if it holds none, or one that is not a number or beyond 1e100."""
    try:
        read = _DECODER.decode(arguments)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not read or not all(map(is_number, read.values())):
        return None
    return tuple((series, float(value)) for series, value in read.items())


def is_number(value: Any) -> bool:
    """Whether a value is a number small enough that its sums and products with durations are finite."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _MOST
