"""What one entry of ``traceEvents`` means: the single definition that every way of reading a trace follows.

Timestamps are decimal microseconds, as a number or as text; process and thread are numbers or text; integers of ``args``
are decimal, or hexadecimal text (AMD's streams). What cannot be understood is counted under one of the reasons below.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from overhead_lens.units import ns_from_us_text

OTHER, COMPLETE, LABEL = 0, 1, 2

DAMAGED = "damaged_event"
NO_PHASE = "missing_phase"
BEGIN_END = "begin_end_event"
BAD_TIMESTAMP = "bad_timestamp"
MISSING_DURATION = "missing_duration"
BAD_DURATION = "bad_duration"
NEGATIVE_DURATION = "negative_duration"

ABSENT = -1
MISSING = object()
_INT64 = 2**63


class Row(NamedTuple):
    """One entry as it goes into the frame.

    Attributes:
        kind: ``COMPLETE`` for an event, ``LABEL`` for the name of a thread, ``OTHER`` for an entry that is only counted.
        name: Of the event; the thread's name where ``kind`` is ``LABEL``.
        issue: Why it was dropped or repaired; None for a sound entry.
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


def parse_row(text: bytes) -> Row:
    """The row of one entry's JSON text; a text that is no JSON object is a damaged event."""
    try:
        # As bytes that need not be UTF-8, with numbers as the text they are.
        event = json.loads(
            text.decode("utf-8", "surrogateescape"), strict=False, parse_float=_as_is, parse_constant=_as_is
        )
    except (ValueError, RecursionError):
        return Row(OTHER, issue=DAMAGED)
    if not isinstance(event, dict):
        return Row(OTHER, issue=DAMAGED)
    phase, arguments = event.get("ph"), event.get("args")
    arguments = arguments if isinstance(arguments, dict) else {}
    if phase == "M":
        return label_row(event.get("name"), event.get("pid"), event.get("tid"), arguments.get("name"))
    if phase != "X":
        return other_row(phase)
    return complete_row(
        event.get("name"),
        event.get("cat"),
        event.get("pid"),
        event.get("tid"),
        event.get("ts"),
        event.get("dur", MISSING),
        arguments.get("correlation"),
        arguments.get("Sequence number"),
        arguments.get("device"),
        arguments.get("stream"),
        arguments.get("External id", arguments.get("external id")),
    )


def complete_row(
    name: Any,
    cat: Any,
    pid: Any,
    tid: Any,
    ts: Any,
    dur: Any,
    correlation: Any,
    sequence: Any,
    device: Any,
    stream: Any,
    external: Any,
) -> Row:
    """The row of a complete event from its values as decoded; ``ts`` and ``dur`` are integers or text.

    ``dur`` is ``MISSING`` where the entry lacks it, every other value None.
    """
    start_ns = _nanoseconds(ts)
    if start_ns is None:
        return Row(OTHER, issue=BAD_TIMESTAMP)
    issue = None
    dur_ns = 0 if dur is MISSING else _nanoseconds(dur)
    if dur is MISSING:
        issue = MISSING_DURATION
    elif dur_ns is None:
        issue = BAD_DURATION
    elif dur_ns < 0:
        issue = NEGATIVE_DURATION
    return Row(
        COMPLETE,
        as_text(name),
        as_text(cat),
        as_text(pid),
        as_text(tid),
        start_ns,
        dur_ns if dur_ns is not None and dur_ns > 0 else 0,
        _integer(correlation),
        _integer(sequence),
        _integer(device),
        _integer(stream),
        _integer(external),
        issue,
    )


def label_row(name: Any, pid: Any, tid: Any, label: Any) -> Row:
    """The row of a metadata entry: the name of a thread, or nothing."""
    return Row(LABEL, as_text(label), "", as_text(pid), as_text(tid)) if name == "thread_name" else Row(OTHER)


def other_row(phase: Any) -> Row:
    """The row of any other phase: instants, flows and counters are only counted."""
    return Row(OTHER, issue=NO_PHASE if phase is None else BEGIN_END if phase in ("B", "E") else None)


def as_text(value: Any) -> str:
    """A name, a process or a thread as text."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


def _nanoseconds(value: Any) -> int | None:
    """Decimal microseconds as integer ns; None where they are none, or too large for int64."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    try:
        return ns_from_us_text(str(value))
    except ValueError:
        return None


def _integer(value: Any) -> int:
    """An integer of ``args``; -1 where there is none or it does not fit int64."""
    if value is None or isinstance(value, bool) or not isinstance(value, (int, str)):
        return ABSENT
    try:
        number = int(value) if isinstance(value, int) else int(value, 0)
    except ValueError:
        return ABSENT
    return number if -_INT64 <= number < _INT64 else ABSENT


def _as_is(text: str) -> str:
    return text
