"""Reader of torch.profiler's exported JSON into the event frame of ``model.py``.

The subset that is read: the object's ``traceEvents`` (or a bare list), of these the complete events (``ph`` = ``X``)
with ``name``, ``cat``, ``pid``, ``tid``, ``ts`` and ``dur`` (decimal microseconds, read as text), and of ``args``
``correlation``, ``Sequence number``, ``device`` and ``stream``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from overhead_lens.errors import UsageError
from overhead_lens.trace.model import DEVICE_CATEGORIES
from overhead_lens.units import ns_from_us_text


def read_events(path: Path) -> pd.DataFrame:
    """The complete events of a trace file, in file order.

    Raises:
        UsageError: The file cannot be read or is not such a trace.
    """
    try:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        document = json.loads(text, parse_float=str)
    except (OSError, EOFError, ValueError) as error:
        raise UsageError(f"cannot read the trace {path}: {error}") from error
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise UsageError(f"{path} holds no traceEvents")
    rows = [_row(event) for event in events if isinstance(event, dict) and event.get("ph") == "X" and "dur" in event]
    frame = pd.DataFrame(rows, columns=list(_EMPTY), dtype=object).astype(_EMPTY)
    if len(frame):
        frame["start_ns"] -= frame["start_ns"].min()
    result: pd.DataFrame = frame
    return result


_EMPTY = {
    "name": object,
    "cat": object,
    "pid": object,
    "tid": object,
    "start_ns": "int64",
    "dur_ns": "int64",
    "correlation": "int64",
    "sequence": "int64",
    "device": "int64",
    "stream": "int64",
}


def _row(event: Mapping[str, Any]) -> tuple[Any, ...]:
    args = event.get("args") or {}
    category = event.get("cat", "")
    on_device = category in DEVICE_CATEGORIES
    return (
        str(event.get("name", "")),
        str(category),
        event.get("pid"),
        event.get("tid"),
        ns_from_us_text(str(event.get("ts", 0))),
        max(0, ns_from_us_text(str(event["dur"]))),
        _integer(args.get("correlation")),
        _integer(args.get("Sequence number")),
        _integer(args.get("device")) if on_device else -1,
        _integer(args.get("stream")) if on_device else -1,
    )


def _integer(value: Any) -> int:
    try:
        return int(str(value), 0)
    except ValueError:
        return -1
