"""Decodes a small, sound trace as a whole with msgspec; ``scanner.py`` reads all others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from overhead_lens.readers.kineto.columns import CODES, NUMBERS, Columns, Contents, Decode, Ints
from overhead_lens.readers.kineto.counters import Values, counter_values
from overhead_lens.readers.kineto.event import (
    ABSENT,
    BAD_COUNTER,
    BAD_MEMORY,
    COMPLETE,
    COUNTER,
    MEMORY,
    MISSING,
    OTHER,
    Entry,
    EventFields,
    from_json,
    json_object,
    row_of,
)
from overhead_lens.readers.kineto.memory import NUMBERS as MEMORY_NUMBERS
from overhead_lens.readers.kineto.memory import Numbers, memory_numbers
from overhead_lens.readers.kineto.work import COLUMNS as WORK_COLUMNS
from overhead_lens.readers.kineto.work import NONE, millionths, whole
from overhead_lens.readers.kineto.work import Numbers as WorkNumbers

_Read = TypeVar("_Read")

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


def decoded(path: Path, text: memoryview) -> Contents | None:
    """The contents of a text, decoded as a whole; None if it is not valid JSON in Kineto's layout."""
    is_list = bytes(text[:64]).lstrip().startswith(b"[")
    try:
        beside = {"traceEvents": text} if is_list else _DOCUMENT.decode(text)
        entries = _EVENTS.decode(beside.pop("traceEvents"))
        metadata = {name: from_json(bytes(value).decode()) for name, value in beside.items()}
        reading = _Reading(entries)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, KeyError, RecursionError):
        return None
    arguments = partial(_decoder, reading.arguments)
    return Contents(path, reading.columns(), len(entries), len(text), dict(reading.issues), metadata, arguments)


class _Reading:
    """Converts the entries of a document to rows.

    Attributes:
        arguments: JSON text of ``args`` per complete event.
    """

    def __init__(self, entries: Sequence[_Event]) -> None:
        self._codes: dict[str, int] = {}
        self._events: list[tuple[Any, ...]] = []
        self._beside: list[tuple[Any, ...]] = []
        self.arguments: list[msgspec.Raw] = []
        self.issues: Counter[str] = Counter()
        self._memory: list[Numbers] = []
        self._counters: list[Values] = []
        self._work: list[tuple[int, ...]] = []
        for entry in entries:
            self._add(entry, *_row(entry))

    def columns(self) -> Columns:
        """The rows, column by column."""
        values, beside = _table(self._events), _table(self._beside)
        work = np.array(self._work, dtype=np.int64).reshape(-1, 1 + len(WORK_COLUMNS))
        memory = np.array(self._memory, dtype=np.int64).reshape(-1, len(MEMORY_NUMBERS))
        return Columns(values, list(self._codes), beside, memory, self._counters, work)

    def _add(self, entry: _Event, read: EventFields, work: WorkNumbers) -> None:
        if read.issue is not None:
            self.issues[read.issue] += 1
        if read.kind == MEMORY and not self._append(memory_numbers(bytes(entry.args)), self._memory, BAD_MEMORY):
            return
        if read.kind == COUNTER and not self._append(counter_values(bytes(entry.args)), self._counters, BAD_COUNTER):
            return
        if read.kind == OTHER:
            return
        if work is not NONE and read.kind == COMPLETE:
            self._work.append((len(self._events), *work))
        codes = self._codes
        name = codes.setdefault(read.name, len(codes))
        cat = codes.setdefault(read.cat, len(codes))
        pid = codes.setdefault(read.pid, len(codes))
        tid = codes.setdefault(read.tid, len(codes))
        row = (read.kind, name, cat, pid, tid, *read[1 + len(CODES) : -1])
        if read.kind == COMPLETE:
            self._events.append(row)
            self.arguments.append(entry.args)
        else:
            self._beside.append(row)

    def _append(self, read: _Read | None, known: list[_Read], issue: str) -> bool:
        """Append what an entry without a duration holds; one that holds nothing is only counted."""
        if read is None:
            self.issues[issue] += 1
        else:
            known.append(read)
        return read is not None


def _table(rows: Sequence[tuple[Any, ...]]) -> dict[str, Ints]:
    """Columns of rows."""
    table = np.array(rows, dtype=np.int64).reshape(-1, 1 + len(CODES) + len(NUMBERS)).T
    columns = {name: column.copy() for name, column in zip(("kind", *CODES, *NUMBERS), table, strict=True)}
    return columns | {name: columns[name].astype(np.int32) for name in CODES}


def _row(entry: _Event) -> tuple[EventFields, WorkNumbers]:
    """The row of an entry, and what it says of itself as device work."""
    has_arguments = entry.ph in ("X", "M") and bytes(memoryview(entry.args)[:1]) == b"{"
    arguments = _ARGUMENTS.decode(entry.args) if has_arguments else _NO_ARGUMENTS
    row = row_of(
        Entry(
            entry.ph,
            entry.name,
            entry.cat,
            entry.pid,
            entry.tid,
            _text(entry.ts) if len(memoryview(entry.ts)) > 0 else None,
            _text(entry.dur) if len(memoryview(entry.dur)) > 0 else MISSING,
            arguments.name,
            arguments.correlation,
            arguments.sequence,
            arguments.device,
            arguments.stream,
            arguments.external if arguments.external is not None else arguments.old_external,
        )
    )
    return row, _work(arguments)


def _work(arguments: _Arguments) -> WorkNumbers:
    decimals = (arguments.occupancy, arguments.blocks, arguments.warps)
    sizes = (arguments.bytes, arguments.graph, arguments.graph_node)
    if sizes == _NO_SIZES and all(value is _NOTHING for value in decimals):
        return NONE
    numbers = (*map(whole, sizes), *(ABSENT if value is _NOTHING else millionths(_text(value)) for value in decimals))
    return NONE if numbers == NONE else numbers


def _text(raw: msgspec.Raw) -> str:
    """Text of a number that may be quoted."""
    text = bytes(raw).decode()
    return str(json.loads(text)) if text.startswith('"') else text


def _decoder(texts: Sequence[msgspec.Raw], rows: Ints) -> Decode:
    def arguments(requested: Sequence[int]) -> list[Mapping[str, Any]]:
        return [json_object(bytes(texts[rows[row]])) for row in requested]

    return arguments
