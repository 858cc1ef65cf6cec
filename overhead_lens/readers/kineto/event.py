"""Defines what one entry of ``traceEvents`` means; both ways of reading follow it.

Timestamps are decimal microseconds, as a number or as text. Process and thread are numbers or text. Integers of ``args`` are
decimal, or hexadecimal text (AMD's streams). What cannot be read is counted under one of the reasons below.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from overhead_lens.units import ns_from_us_text

OTHER, COMPLETE, LABEL, MEMORY, COUNTER = 0, 1, 2, 4, 5  # 3 is the scanner's

DAMAGED = "damaged_event"
NO_PHASE = "missing_phase"
BEGIN_END = "begin_end_event"
BAD_TIMESTAMP = "bad_timestamp"
MISSING_DURATION = "missing_duration"
BAD_DURATION = "bad_duration"
NEGATIVE_DURATION = "negative_duration"
UNTIMED = "untimed_event"

BAD_MEMORY = "bad_memory_event"
BAD_COUNTER = "bad_counter_event"
MEMORY_EVENT = "[memory]"
"""An instant: memory was allocated or released (torch/csrc/profiler/kineto_shim.cpp, ``profile_memory=True``)."""

COPY_CATEGORIES = frozenset({"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"})

DEVICE_CATEGORIES = frozenset({"kernel", "Kernel"}) | COPY_CATEGORIES
"""Categories of work on a device (third_party/kineto, ActivityType.cpp), new and old spelling.

``cuda_sync``, Triton's ``cpu_op`` events and runtime calls may have a ``stream`` argument, but run on the host.
``gpu_user_annotation`` repeats the host's annotations over the kernels they launched.
"""

ANNOTATION_CATEGORY = "user_annotation"

ABSENT = -1
BEYOND = -(2**63)
"""Device or stream that int64 cannot hold."""

MISSING = object()
_INT64 = 2**63
_MOST_DIGITS = 4_300  # int() refuses more (sys.set_int_max_str_digits)


class EventFields(NamedTuple):
    """One entry as it goes into the frame.

    Attributes:
        kind: ``COMPLETE`` for an event, ``LABEL`` for a thread's name, ``MEMORY`` for an allocation or release, ``COUNTER`` for
            values of counters, ``OTHER`` for an entry that is only counted.
        name: Name of the event, or of the thread if ``kind`` is ``LABEL``.
        issue: Reason why it was dropped or repaired; None for a sound entry.
    """

    kind: int
    name: str = ""
    cat: str = ""
    pid: str = ""
    tid: str = ""
    start_ns: int = 0
    dur_ns: int = 0
    correlation: int = ABSENT
    sequence: int = ABSENT
    device: int = ABSENT
    stream: int = ABSENT
    external: int = ABSENT
    issue: str | None = None


class Entry(NamedTuple):
    """What counts of an entry, as decoded.

    Attributes:
        phase, name, cat, pid, tid: JSON values; None if the entry lacks them.
        ts, dur: Decimal microseconds as int or str, anything else is unreadable; ``dur`` is ``MISSING`` where the entry lacks it.
        label, correlation, sequence, device, stream, external: JSON values of ``args``; None where absent.
    """

    phase: Any
    name: Any
    cat: Any
    pid: Any
    tid: Any
    ts: Any
    dur: Any
    label: Any
    correlation: Any
    sequence: Any
    device: Any
    stream: Any
    external: Any


def parse_row(text: bytes) -> EventFields:
    """Parse one entry; text that is not a JSON object is a damaged event."""
    try:
        # Exporters copy names as they are: they may not be UTF-8.
        decoded = text.decode("utf-8", "surrogateescape")
        # float64 cannot hold a timestamp (units.py): keep its text.
        event, times = from_json(decoded), from_json(decoded, parse_float=str)
    except (ValueError, RecursionError):
        return EventFields(OTHER, issue=DAMAGED)
    if not isinstance(event, dict):
        return EventFields(OTHER, issue=DAMAGED)
    args = event.get("args")
    arguments = args if isinstance(args, dict) else {}
    external = arguments.get("External id")
    return row_of(
        Entry(
            event.get("ph"),
            event.get("name"),
            event.get("cat"),
            event.get("pid"),
            event.get("tid"),
            times.get("ts"),
            times.get("dur", MISSING),
            arguments.get("name"),
            arguments.get("correlation"),
            arguments.get("Sequence number"),
            arguments.get("device"),
            arguments.get("stream"),
            external if external is not None else arguments.get("external id"),
        )
    )


def from_json(text: str, parse_float: Callable[[str], Any] = float) -> Any:
    """Parse JSON leniently: control characters are allowed in strings, overlong integers become floats.

    Raises:
        ValueError: The text is not JSON.
        RecursionError: It is nested too deeply.
    """
    return json.loads(text, strict=False, parse_float=parse_float, parse_int=_number)


def json_object(text: bytes, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Parse a JSON object: fast if it is valid, else leniently; empty if the text is not one."""
    value: Any = None
    if parse_float is float:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            value = msgspec.json.decode(text)
    if value is None:
        with suppress(ValueError, RecursionError):
            value = from_json(text.decode("utf-8", "replace"), parse_float)
    return value if isinstance(value, dict) else {}


def dicts(value: Any) -> list[dict[Any, Any]]:
    """The objects of a list; none of anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def row_of(entry: Entry) -> EventFields:
    """The row of an entry; flows, and instants and metadata of other names, are only counted."""
    phase = entry.phase
    is_memory = phase == "i" and entry.name == MEMORY_EVENT
    if phase == "M" and entry.name == "thread_name":
        return EventFields(LABEL, as_text(entry.label), "", as_text(entry.pid), as_text(entry.tid))
    if phase not in ("X", "C") and not is_memory:
        return EventFields(OTHER, issue=NO_PHASE if phase is None else BEGIN_END if phase in ("B", "E") else None)
    start_ns = _nanoseconds(entry.ts)
    if start_ns is None:
        return EventFields(OTHER, issue=BAD_TIMESTAMP)
    place = (as_text(entry.pid), as_text(entry.tid), start_ns)
    if is_memory:
        return EventFields(MEMORY, "", "", *place)
    name, cat = as_text(entry.name), as_text(entry.cat)
    if phase == "C":
        return EventFields(COUNTER, name, cat, *place)
    issue = None
    dur_ns = 0 if entry.dur is MISSING else _nanoseconds(entry.dur)
    if entry.dur is MISSING:
        issue = MISSING_DURATION
    elif dur_ns is None:
        issue = BAD_DURATION
    elif dur_ns < 0:
        issue = NEGATIVE_DURATION
    return EventFields(
        COMPLETE,
        name,
        cat,
        *place,
        dur_ns if dur_ns is not None and dur_ns > 0 else 0,
        integer(entry.correlation),
        integer(entry.sequence),
        integer(entry.device, beyond=BEYOND),
        integer(entry.stream, beyond=BEYOND),
        integer(entry.external),
        issue,
    )


def as_text(value: Any) -> str:
    """Text of a name, category, process or thread; JSON of other values."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)  # what json.dumps returns, sooner
    return "" if value is None else json.dumps(value)


def _nanoseconds(value: Any) -> int | None:
    """Convert decimal microseconds to integer ns; None where unreadable or beyond int64."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    try:
        return ns_from_us_text(str(value))
    except ValueError:
        return None


def integer(value: Any, *, beyond: int = ABSENT) -> int:
    """Convert a value to int64: -1 for no integer, ``beyond`` for one out of range."""
    if value is None or isinstance(value, bool) or not isinstance(value, (int, str)):
        return ABSENT
    try:
        number = int(value) if isinstance(value, int) else int(value, 0)
    except ValueError:
        return ABSENT
    return number if -_INT64 <= number < _INT64 else beyond


def _number(text: str) -> int | float:
    return int(text) if len(text) <= _MOST_DIGITS else float(text)
