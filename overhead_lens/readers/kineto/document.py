"""Decodes a small, sound trace as a whole with msgspec; ``scanner.py`` reads all others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from overhead_lens.readers.kineto.columns import CODES, NUMBERS, Columns
from overhead_lens.readers.kineto.counters import Values, counter_values
from overhead_lens.readers.kineto.event import (
    ABSENT,
    BAD_COUNTER,
    BAD_MEMORY,
    COMPLETE,
    COUNTER,
    MEMORY,
    MEMORY_EVENT,
    MISSING,
    OTHER,
    Row,
    complete_row,
    counter_row,
    from_json,
    label_row,
    memory_row,
    other_row,
)
from overhead_lens.readers.kineto.memory import NUMBERS as MEMORY_NUMBERS
from overhead_lens.readers.kineto.memory import Numbers, memory_numbers
from overhead_lens.readers.kineto.work import COLUMNS as WORK_COLUMNS
from overhead_lens.readers.kineto.work import NONE, millionths, whole
from overhead_lens.readers.kineto.work import Numbers as WorkNumbers

_NOTHING = msgspec.Raw()
_NO_SIZES = (None, None, None)


class _Event(msgspec.Struct, gc=False):
    ph: Any = None
    name: Any = None
    cat: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = _NOTHING
    dur: msgspec.Raw = _NOTHING
    args: msgspec.Raw = _NOTHING


class _Arguments(msgspec.Struct, gc=False):
    correlation: Any = None
    sequence: Any = msgspec.field(default=None, name="Sequence number")
    device: Any = None
    stream: Any = None
    external: Any = msgspec.field(default=None, name="External id")
    old_external: Any = msgspec.field(default=None, name="external id")
    name: Any = None
    bytes: Any = None
    graph: Any = msgspec.field(default=None, name="graph id")
    graph_node: Any = msgspec.field(default=None, name="graph node id")
    occupancy: msgspec.Raw = msgspec.field(default=_NOTHING, name="est. achieved occupancy %")
    blocks: msgspec.Raw = msgspec.field(default=_NOTHING, name="blocks per SM")
    warps: msgspec.Raw = msgspec.field(default=_NOTHING, name="warps per SM")


_DOCUMENT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NO_ARGUMENTS = _Arguments()
_EVENTS = msgspec.json.Decoder(list[_Event])
_ARGUMENTS = msgspec.json.Decoder(_Arguments)


@dataclass(frozen=True, slots=True)
class Document:
    """A decoded trace.

    Attributes:
        columns: Rows of the events and thread names.
        event_count: Entries of ``traceEvents``.
        issues: Entries dropped or repaired, by reason.
        metadata: Values beside ``traceEvents``.
        arguments: JSON text of ``args`` per row of ``columns``.
    """

    columns: Columns
    event_count: int
    issues: Mapping[str, int]
    metadata: Mapping[str, Any]
    arguments: Sequence[msgspec.Raw]


def decode(text: memoryview) -> Document | None:
    """Decode a document; None if it is not valid JSON in Kineto's layout."""
    try:
        beside = {"traceEvents": text} if _is_bare_list(text) else _DOCUMENT.decode(text)
        entries = _EVENTS.decode(beside.pop("traceEvents"))
        metadata = {name: from_json(bytes(value).decode()) for name, value in beside.items()}
        return _Reading().document(entries, metadata)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, KeyError, RecursionError):
        return None


def _is_bare_list(text: memoryview) -> bool:
    return bytes(text[:64]).lstrip().startswith(b"[")


class _Reading:
    """Rows under construction."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._rows: list[tuple[Any, ...]] = []
        self._arguments: list[msgspec.Raw] = []
        self._issues: Counter[str] = Counter()
        self._memory: list[Numbers] = []
        self._counters: list[Values] = []
        self._work: list[tuple[int, ...]] = []

    def document(self, entries: list[_Event], metadata: Mapping[str, Any]) -> Document:
        for entry in entries:
            self._add(entry, *_row(entry))
        table = np.array(self._rows, dtype=np.int64).reshape(-1, 1 + len(CODES) + len(NUMBERS))
        values = {name: table[:, 1 + at].astype(np.int32) for at, name in enumerate(CODES)}
        values |= {name: table[:, 1 + len(CODES) + at].copy() for at, name in enumerate(NUMBERS)}
        work = np.array(self._work, dtype=np.int64).reshape(-1, 1 + len(WORK_COLUMNS))
        memory = np.array(self._memory, dtype=np.int64).reshape(-1, len(MEMORY_NUMBERS))
        columns = Columns(table[:, 0].astype(np.int8), values, list(self._codes), memory, self._counters, work)
        return Document(columns, len(entries), dict(self._issues), metadata, self._arguments)

    def _add(self, entry: _Event, read: Row, work: WorkNumbers) -> None:
        if read.issue is not None:
            self._issues[read.issue] += 1
        if read.kind == MEMORY and not self._add_memory(entry):
            return
        if read.kind == COUNTER and not self._add_counter(entry):
            return
        if read.kind == OTHER:
            return
        if work is not NONE and read.kind == COMPLETE:
            self._work.append((len(self._rows), *work))
        codes = self._codes
        name = codes.setdefault(read.name, len(codes))
        cat = codes.setdefault(read.cat, len(codes))
        pid = codes.setdefault(read.pid, len(codes))
        tid = codes.setdefault(read.tid, len(codes))
        self._rows.append((read.kind, name, cat, pid, tid, *read[1 + len(CODES) : -1]))
        self._arguments.append(entry.args)

    def _add_memory(self, entry: _Event) -> bool:
        numbers = memory_numbers(bytes(entry.args))
        if numbers is None:
            self._issues[BAD_MEMORY] += 1
            return False
        self._memory.append(numbers)
        return True

    def _add_counter(self, entry: _Event) -> bool:
        values = counter_values(bytes(entry.args))
        if values is None:
            self._issues[BAD_COUNTER] += 1
            return False
        self._counters.append(values)
        return True


def _row(entry: _Event) -> tuple[Row, WorkNumbers]:
    """The row of an entry, and what it says of itself as device work."""
    if entry.ph not in ("X", "M"):
        return _point_row(entry), NONE
    arguments = _ARGUMENTS.decode(entry.args) if bytes(memoryview(entry.args)[:1]) == b"{" else _NO_ARGUMENTS
    if entry.ph == "M":
        return label_row(entry.name, entry.pid, entry.tid, arguments.name), NONE
    return _complete_row(entry, arguments), _work(arguments)


def _point_row(entry: _Event) -> Row:
    """The row of an entry that has no duration."""
    time = _text(entry.ts) if len(memoryview(entry.ts)) > 0 else None
    if entry.ph == "i" and entry.name == MEMORY_EVENT:
        return memory_row(entry.pid, entry.tid, time)
    if entry.ph == "C":
        return counter_row(entry.name, entry.cat, entry.pid, entry.tid, time)
    return other_row(entry.ph)


def _work(arguments: _Arguments) -> WorkNumbers:
    decimals = (arguments.occupancy, arguments.blocks, arguments.warps)
    sizes = (arguments.bytes, arguments.graph, arguments.graph_node)
    if sizes == _NO_SIZES and all(value is _NOTHING for value in decimals):
        return NONE
    numbers = (
        *map(whole, sizes),
        *(ABSENT if value is _NOTHING else millionths(_text(value)) for value in decimals),
    )
    return NONE if numbers == NONE else numbers


def _complete_row(entry: _Event, arguments: _Arguments) -> Row:
    return complete_row(
        entry.name,
        entry.cat,
        entry.pid,
        entry.tid,
        _text(entry.ts),
        _text(entry.dur) if len(memoryview(entry.dur)) > 0 else MISSING,
        arguments.correlation,
        arguments.sequence,
        arguments.device,
        arguments.stream,
        arguments.external if arguments.external is not None else arguments.old_external,
    )


def _text(raw: msgspec.Raw) -> str:
    """Text of a number that may be quoted."""
    text = bytes(raw).decode()
    return str(json.loads(text)) if text.startswith('"') else text
