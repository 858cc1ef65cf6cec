"""A recorded trace as its JSON says it, read without the package: what the comparison with peers is proven on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ABSENT = -1


@dataclass(frozen=True, eq=False)
class Recording:
    """The complete events of one file, in its order.

    Attributes:
        events: ``row`` (place in ``traceEvents``), ``name``, ``cat``, ``pid``, ``tid``, ``start`` and ``end`` in units of
            ``unit_ns``, ``ts_us`` and ``dur_us`` (float64, as a JSON parser has them), ``stream``, ``correlation``, ``external``
            as in ``args`` (None where absent); ``stream_number``, ``key`` and ``external_key`` as integers, -1 for none.
        unit_ns: What ``start`` and ``end`` count in.
        has_decimals: Whether any time of the file is no whole number of µs.
        flow_starts: Ids at which an arrow from host to device begins.
        flow_ends: Process and thread at which it ends, by id.
    """

    events: pd.DataFrame
    unit_ns: int
    has_decimals: bool
    flow_starts: frozenset[Any]
    flow_ends: Mapping[Any, tuple[Any, Any]]


def read_recording(path: Path) -> Recording:
    """Read a trace; every time exactly, and as the float64 that a JSON parser makes of it."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    entries = json.loads(text, parse_float=_Decimals)["traceEvents"]
    rows = [row for row, entry in enumerate(entries) if entry.get("ph") == "X" and "cat" in entry and "dur" in entry]
    chosen = [entries[row] for row in rows]
    events = pd.DataFrame(
        {
            "row": np.array(rows, dtype=np.int64),
            **{key: _texts([entry.get(key) for entry in chosen]) for key in ("name", "cat")},
            **{key: _objects([entry.get(key) for entry in chosen]) for key in ("pid", "tid")},
            "start": _exact_ns([entry["ts"] for entry in chosen]),
            "end": _exact_ns([entry["ts"] for entry in chosen]) + _exact_ns([entry["dur"] for entry in chosen]),
            "ts_us": np.array([float(entry["ts"]) for entry in chosen], dtype=np.float64),
            "dur_us": np.array([float(entry["dur"]) for entry in chosen], dtype=np.float64),
            **{
                column: _objects([entry.get("args", {}).get(key) for entry in chosen])
                for column, key in (("stream", "stream"), ("correlation", "correlation"), ("external", "External id"))
            },
        }
    )
    for column, of in (("stream_number", "stream"), ("key", "correlation"), ("external_key", "external")):
        events[column] = np.array([number(value) for value in events[of]], dtype=np.int64)
    events = events[events["cat"] != "Trace"].reset_index(drop=True)
    return Recording(
        events,
        unit_ns=1,
        has_decimals=any(isinstance(entry.get("ts"), _Decimals) for entry in entries),
        flow_starts=frozenset(entry.get("id") for entry in entries if _is_flow(entry, "s")),
        flow_ends={entry.get("id"): (entry.get("pid"), entry.get("tid")) for entry in entries if _is_flow(entry, "f")},
    )


class _Decimals(str):
    """The text of a number with a point."""

    __slots__ = ()


def _is_flow(entry: Mapping[str, Any], phase: str) -> bool:
    return entry.get("cat") == "ac2g" and entry.get("ph") == phase


def _exact_ns(values: list[Any]) -> Any:
    return np.array([int(Decimal(str(value)).scaleb(3)) for value in values], dtype=np.int64)


def _texts(values: list[Any]) -> Any:
    texts = [str(value) for value in values]
    return pd.Categorical(texts, pd.Index(sorted(set(texts)), dtype=object))


def _objects(values: list[Any]) -> Any:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def number(value: Any) -> int:
    """An integer of ``args``; -1 for none."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return ABSENT


def chosen(events: pd.DataFrame, which: Any) -> pd.DataFrame:
    """The events of a mask."""
    some: pd.DataFrame = events[np.asarray(which, dtype=bool)]
    return some
