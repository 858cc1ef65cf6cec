"""Scans a large or damaged trace block by block; another thread decompresses the next block."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from overhead_lens.errors import UsageError
from overhead_lens.readers.kineto import layout
from overhead_lens.readers.kineto.columns import CODES, NUMBERS, Columns, Contents, Decode, Ints
from overhead_lens.readers.kineto.counters import Values, counter_values
from overhead_lens.readers.kineto.event import (
    BAD_COUNTER,
    BAD_MEMORY,
    BEGIN_END,
    COMPLETE,
    COUNTER,
    DAMAGED,
    MEMORY,
    MISSING_DURATION,
    NEGATIVE_DURATION,
    NO_PHASE,
    OTHER,
    json_object,
    parse_row,
)
from overhead_lens.readers.kineto.memory import memory_numbers
from overhead_lens.readers.kineto.source import Source, opened
from overhead_lens.readers.kineto.string_table import StringTable
from overhead_lens.readers.kineto.work import MOST_PRODUCTS, NONE, work_numbers
from overhead_lens.taxonomy import torch_names

TRUNCATED = "truncated"
STRAY_COMMA = "stray_comma"

_BLOCK_BYTES = 2 << 20
_ROOM_BYTES = 1 << 18
_BLOCKS = 3
_CHUNK_ROWS = 1 << 15
# Room for more rows than are there: for a little more than is expected, and for many times as many where these are few.
_GROWTH, _MOST_GROWTH, _FIRST_ROOM = 1.5, 4, 1 << 23
_MOST_BESIDE_BYTES = 64 << 20
_MOST_ENTRY_BYTES = 64 << 20
# Collectives and ranges of counters: every analysis needs their arguments. Keeping them saves a second pass over the file.
_NEEDED = re.compile(
    f"{torch_names.COMMUNICATION_KERNEL.pattern}|c10d::|{torch_names.COLLECTIVE_ARGUMENTS}".encode(), re.IGNORECASE
)
_NEEDED_CATEGORY = torch_names.PROFILER_RANGE.encode()
_PRODUCTS = frozenset(name.encode() for name in torch_names.PRODUCTS)
_ALWAYS, _PRODUCT = 1, 2
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BARE_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
_CERTAIN_BYTES = 1 << 20
_OBJECT = re.compile(rb"(?:\xef(?:\xbb\xbf?)?)?\s*(?:\{|$)")
_COUNTED = (
    (layout.DAMAGED, DAMAGED),
    (layout.NO_PHASE, NO_PHASE),
    (layout.BEGIN_END, BEGIN_END),
    (layout.MISSING_DURATION, MISSING_DURATION),
    (layout.NEGATIVE_DURATION, NEGATIVE_DURATION),
    (layout.STRAY_COMMA, STRAY_COMMA),
)


_Rows = tuple[Ints, Ints, Ints]
"""Kind, codes and numbers of rows: int8 ``(n,)``, int32 ``(CODE_COUNT, n)``, int64 ``(NUMBER_COUNT, n)``."""


@dataclass(frozen=True, slots=True)
class _Arguments:
    """Positions of the complete events' arguments in the file.

    Attributes:
        at, size: int64 and int32 per event: position and size of ``args`` in the decompressed text; a negative size is that of
            the whole entry.
        texts: Text of ``args`` by event, for those whose arguments almost every analysis needs.
    """

    at: Ints
    size: Ints
    texts: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class _Block:
    """Decompressed text from ``offset`` on: ``data[start : start + size]``, with room before it.

    Attributes:
        share: About which share of the file it and all before it are.
    """

    data: Ints
    start: int
    size: int
    offset: int
    share: float


def scan(source: Source, head: list[Ints], path: Path) -> Contents:
    """Scan a trace whose first blocks, ``head``, are read already; it is emptied while they are scanned.

    Raises:
        UsageError: The file holds no events.
    """
    return _Scan(path).run(source, head)


def is_scanner_compiled() -> bool:
    """Whether the scanner was compiled on this machine."""
    scanner = _Scan(Path())
    return layout.scan.is_stored(*scanner.passed(np.zeros(0, dtype=np.uint8), 0, 0, final=True))


class _Scan:
    """State of one scan."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._share = 1.0
        self._strings = StringTable()
        self._field = np.zeros(layout.FIELD_COUNT, dtype=np.int64)
        self._counters = np.zeros(layout.COUNTER_COUNT, dtype=np.int64)
        self._counters[layout.COMMA] = 1  # a comma before the first entry is stray
        self._issues: Counter[str] = Counter()
        self._events, self._beside = _Table(), _Table()
        self._rows: _Rows = (
            np.zeros(_CHUNK_ROWS, dtype=np.int8),
            np.empty((layout.CODE_COUNT, _CHUNK_ROWS), dtype=np.int32),
            np.empty((layout.NUMBER_COUNT, _CHUNK_ROWS), dtype=np.int64),
        )
        self._row = 0
        self._texts: dict[int, bytes] = {}
        self._texts_of_rows: dict[int, bytes] = {}
        self._values: list[Values] = []
        self._details = np.empty((_CHUNK_ROWS, 1 + layout.DETAIL_COUNT), dtype=np.int64)
        self._work, self._memory = _Table(), _Table()
        self._need = np.zeros(0, dtype=np.int8)
        self._products = 0
        self._at_end = False
        self._before = b""
        self._after: list[bytes] = []

    def passed(self, text: Ints, at: int, end: int, *, final: bool) -> tuple[Any, ...]:
        """Arguments for the scanner."""
        rows, table = (*self._rows, self._details, self._row), self._strings.table
        return text, at, end, final, *rows, self._field, *table, self._counters

    def run(self, source: Source, head: list[Ints]) -> Contents:
        raw_bytes = 0
        rest = np.zeros(0, dtype=np.uint8)
        begun = False
        for block in _blocks(source, head):
            final = block.size == 0
            self._share = block.share
            raw_bytes = block.offset + block.size
            joined = _joined(block, rest)
            start = joined.start
            if not begun:
                start = self._find_events(joined, final=final)
                begun = start >= 0
                start = max(start, joined.start)
            if begun and not self._at_end:
                start = self._scan(joined, start, final=final)
            rest = joined.data[start : joined.start + joined.size].copy()
            if self._at_end:
                self._after.append(rest.tobytes())
                rest = rest[:0]
            elif begun and len(rest) > _MOST_ENTRY_BYTES:
                # No event is that long: a quote or a bracket is missing. Go on at the next entry.
                self._counters[[layout.ENTRIES, layout.DAMAGED]] += 1
                self._counters[layout.LOST], self._counters[layout.COMMA] = 1, 0
        if not begun:
            raise UsageError(f"{self._path} is not a torch.profiler trace: it has no traceEvents")
        return self._result(raw_bytes, cut_off=source.broken or not self._at_end)

    def _find_events(self, block: _Block, *, final: bool) -> int:
        """Position of the first entry; -1 if it is not in this block."""
        text = memoryview(block.data.data)[block.start : block.start + block.size]
        match = _BARE_LIST.match(text)
        if match is not None:
            return block.start + match.end()
        match = _EVENTS.search(text)
        if match is not None:
            self._before = bytes(text[: match.end()])
            return block.start + match.end()
        is_object = block.size < _CERTAIN_BYTES or _OBJECT.match(text) is not None
        if final or block.size > _MOST_BESIDE_BYTES or not is_object:
            raise UsageError(f"{self._path} is not a torch.profiler trace: it has no traceEvents")
        return -1

    def _scan(self, block: _Block, at: int, *, final: bool) -> int:
        end = block.start + block.size
        while True:
            first = self._row
            status, at, self._row = layout.scan(*self.passed(block.data, at, end, final=final))
            self._settle(block, first)
            if status == layout.NEED_ROWS:
                self._close_rows()
            elif status == layout.NEED_TABLE:
                self._strings.grow(block.size)
            else:
                self._at_end = status == layout.END_OF_ARRAY
                return int(at)

    def _settle(self, block: _Block, first: int) -> None:
        """Parse the deferred rows from ``first`` on; make positions of arguments relative to the file."""
        kind, codes, numbers = self._rows
        for row in (first + np.flatnonzero(kind[first : self._row] == layout.DEFERRED)).tolist():
            at = int(numbers[layout.ARGS_AT][row])
            entry = block.data[at : at - int(numbers[layout.ARGS_SIZE][row])].tobytes()
            read = parse_row(entry)
            if read.issue is not None:
                self._issues[read.issue] += 1
            kind[row] = read.kind
            if read.kind != OTHER:
                for column, name in zip(codes, CODES, strict=True):
                    column[row] = self._strings.number(getattr(read, name))
                for column, name in zip(numbers, NUMBERS, strict=False):
                    column[row] = getattr(read, name)
            if read.kind in (COMPLETE, MEMORY):
                self._settle_details(entry, row)
        self._keep(block, first)
        self._settle_counters(block, first)
        numbers[layout.ARGS_AT][first : self._row] += block.offset - block.start

    def _keep(self, block: _Block, first: int) -> None:
        """Copy the arguments that will be needed, of the rows from ``first`` on."""
        known = len(self._need)
        new = [_need_of(text) for text in self._strings.raw(known)]
        if new:
            self._need = np.concatenate((self._need, np.array(new, dtype=np.int8)))
        if not self._need.any():
            return
        kind, codes, numbers = (each[..., first : self._row] for each in self._rows)
        mine = np.flatnonzero(kind == COMPLETE)
        need = self._need[codes[layout.NAME][mine]] | self._need[codes[layout.CAT][mine]]
        products = np.flatnonzero(need == _PRODUCT)
        need[products[max(0, MOST_PRODUCTS - self._products) :]] = 0
        self._products += len(products)
        mine = mine[need > 0]
        text = memoryview(block.data.data)
        places = (numbers[layout.ARGS_AT][mine].tolist(), numbers[layout.ARGS_SIZE][mine].tolist())
        for row, at, size in zip((mine + first).tolist(), *places, strict=True):
            if size > 0:
                self._texts_of_rows[row] = bytes(text[at : at + size])

    def _settle_counters(self, block: _Block, first: int) -> None:
        """Decode the values of the counters from ``first`` on; events without any are only counted."""
        kind, _, numbers = self._rows
        for row in (first + np.flatnonzero(kind[first : self._row] == COUNTER)).tolist():
            read = counter_values(_arguments_text(block, numbers, row))
            if read is None:
                kind[row] = OTHER
                self._issues[BAD_COUNTER] += 1
            else:
                self._values.append(read)

    def _settle_details(self, entry: bytes, row: int) -> None:
        """Store the arguments of a deferred row about device work or an allocation; an allocation without any is only counted."""
        kind = self._rows[0]
        details: Sequence[int] | None
        if kind[row] == MEMORY:
            details = memory_numbers(json.dumps(_arguments(entry, is_entry=True)).encode())
        else:
            read = work_numbers(_arguments(entry, is_entry=True, parse_float=str))
            details = None if read == NONE else read
        if details is not None:
            self._details[self._counters[layout.DETAILS]] = (row, *details)
            self._counters[layout.DETAILS] += 1
        elif kind[row] == MEMORY:
            kind[row] = OTHER
            self._issues[BAD_MEMORY] += 1

    def _close_rows(self) -> None:
        """Append the rows, and what their arguments say, to those of the whole file."""
        kind, codes, numbers = (each[..., : self._row] for each in self._rows)
        events = np.flatnonzero(kind == COMPLETE)
        beside = np.flatnonzero((kind != COMPLETE) & (kind != OTHER))
        details = self._details[: int(self._counters[layout.DETAILS])]
        details = details[np.argsort(details[:, 0], kind="stable")]
        rows = details[:, 0].copy()
        details[:, 0] = np.searchsorted(events, rows) + self._events.count
        of_memory = kind[rows] == MEMORY
        positions = np.searchsorted(events, list(self._texts_of_rows)) + self._events.count
        self._texts.update(zip(positions.tolist(), self._texts_of_rows.values(), strict=True))
        self._texts_of_rows.clear()
        share = self._share
        self._memory.append(details.T[1:], np.flatnonzero(of_memory), share=share)
        self._work.append(details.T, np.flatnonzero(~of_memory), share=share)
        sizes = numbers[layout.ARGS_SIZE].astype(np.int32)
        self._events.append((*codes, *numbers[: layout.ARGS_SIZE], sizes), events, share=share)
        self._beside.append((kind, *codes, *numbers[: layout.ARGS_AT]), beside, share=share)
        self._counters[layout.DETAILS] = 0
        self._rows[0][:] = 0
        self._row = 0

    def _result(self, raw_bytes: int, *, cut_off: bool) -> Contents:
        self._close_rows()
        values = dict(zip((*CODES, *NUMBERS, "arguments_at", "arguments_size"), self._events.columns(), strict=True))
        beside = dict(zip(("kind", *CODES, *NUMBERS), self._beside.columns(), strict=True))
        for number, reason in _COUNTED:
            if self._counters[number]:
                self._issues[reason] += int(self._counters[number])
        if cut_off:
            self._issues[TRUNCATED] = 1
        places = _Arguments(values.pop("arguments_at"), values.pop("arguments_size"), self._texts)
        memory, work = (np.stack(each.columns(), axis=1) for each in (self._memory, self._work))
        made = Columns(values, self._strings.decoded(), beside, memory, self._values, work)
        entries = int(self._counters[layout.ENTRIES])
        arguments = partial(_decoder, self._path, places)
        return Contents(self._path, made, entries, raw_bytes, dict(self._issues), self._metadata(), arguments)

    def _metadata(self) -> dict[str, Any]:
        """Values outside the events, if their text is valid."""
        before, after = json_object(self._before + b"]}"), json_object(b'{"traceEvents":[]' + b"".join(self._after))
        return {name: value for name, value in (before | after).items() if name != "traceEvents"}


class _Table:
    """Columns of rows. They have room for those to come: a page that nothing was written to takes no memory."""

    def __init__(self) -> None:
        self.count = 0
        self._columns: list[Ints] = []

    def append(self, columns: Sequence[Ints], rows: Ints, *, share: float) -> None:
        """Append some rows of other columns, after which the table has this share of all its rows."""
        count = self.count + len(rows)
        if not self._columns:
            self._columns = [each[:0] for each in columns]
        if count > len(self._columns[0]) or not self.count:
            room = int(count * max(_GROWTH, min(_GROWTH / share, max(_MOST_GROWTH, _FIRST_ROOM / max(1, count)))))
            for number, old in enumerate(self._columns):
                self._columns[number] = np.empty(room, dtype=old.dtype)
                self._columns[number][: self.count] = old[: self.count]
        for column, part in zip(self._columns, columns, strict=True):
            part.take(rows, out=column[self.count : count], mode="clip")
        self.count = count

    def columns(self) -> list[Ints]:
        """The columns, whose rows are all there."""
        return [column[: self.count] for column in self._columns]


def _need_of(text: bytes) -> int:
    if _NEEDED.search(text) is not None or text == _NEEDED_CATEGORY:
        return _ALWAYS
    return _PRODUCT if text in _PRODUCTS else 0


def _joined(block: _Block, rest: Ints) -> _Block:
    """Prepend ``rest``, the unscanned end of the block before."""
    if len(rest) <= block.start:
        block.data[block.start - len(rest) : block.start] = rest
        data, start = block.data, block.start - len(rest)
    else:
        data, start = np.concatenate((rest, block.data[block.start : block.start + block.size])), 0
    return _Block(data, start, block.size + len(rest), block.offset - len(rest), block.share)


def _blocks(source: Source, head: list[Ints]) -> Iterator[_Block]:
    """Yield the head, then blocks read ahead by another thread; an empty block ends it.

    Buffers are reused: a block is valid until the next one is read.
    """
    buffers = cycle([np.empty(_ROOM_BYTES + _BLOCK_BYTES, dtype=np.uint8) for _ in range(_BLOCKS)])
    share = source.share

    def filled() -> tuple[Ints, int, float]:
        data = next(buffers)
        return data, source.fill(memoryview(data.data)[_ROOM_BYTES:]), source.share

    with ThreadPoolExecutor(1, "decompress") as pool:
        ahead = deque(pool.submit(filled) for _ in range(_BLOCKS - 1))
        offset = 0
        while head:
            data = head.pop(0)
            yield _Block(data, 0, len(data), offset, share)
            offset += len(data)
        size = -1
        while size:
            data, size, share = ahead.popleft().result()
            ahead.append(pool.submit(filled))
            yield _Block(data, _ROOM_BYTES, size, offset, share)
            offset += size


def _decoder(path: Path, read: _Arguments, rows: Ints) -> Decode:
    """Make a decoder of ``args``, which reads the file again as far as needed; ``rows``: the event per row of the frame."""

    def arguments(requested: Sequence[int]) -> list[Mapping[str, Any]]:
        decoded: list[Mapping[str, Any]] = [{} for _ in requested]
        missing = []
        for index, event in enumerate(rows[np.array(requested, dtype=np.int64)].tolist()):
            if (text := read.texts.get(event)) is not None:
                decoded[index] = _arguments(text, is_entry=False)
            elif read.size[event]:
                missing.append((int(read.at[event]), int(read.size[event]), index))
        if not missing:
            return decoded
        with opened(path) as source:
            parts = _Text(source)
            for at, size, index in sorted(missing):
                decoded[index] = _arguments(parts.part(at, abs(size)), is_entry=size < 0)
        return decoded

    return arguments


class _Text:
    """Reads parts of a stream in ascending order; parts may overlap."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._buffer = b""
        self._offset = 0

    def part(self, at: int, size: int) -> bytes:
        while self._offset + len(self._buffer) < at + size:
            keep = max(0, at - self._offset)
            self._offset += min(keep, len(self._buffer))
            block = bytearray(_BLOCK_BYTES)
            count = self._source.fill(memoryview(block))
            self._buffer = self._buffer[keep:] + bytes(block[:count])
            if not count:
                break
        return self._buffer[at - self._offset : at - self._offset + size]


def _arguments_text(block: _Block, numbers: Ints, row: int) -> bytes:
    """Text of the arguments of a row whose positions are still those of the block."""
    at, size = int(numbers[layout.ARGS_AT][row]), int(numbers[layout.ARGS_SIZE][row])
    text = block.data[at : at + abs(size)].tobytes()
    return text if size >= 0 else json.dumps(_arguments(text, is_entry=True)).encode()


def _arguments(text: bytes, *, is_entry: bool, parse_float: Callable[[str], Any] = float) -> Mapping[str, Any]:
    read = json_object(text, parse_float)
    value = read.get("args") if is_entry else read
    return value if isinstance(value, dict) else {}
