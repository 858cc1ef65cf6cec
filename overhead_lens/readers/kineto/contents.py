"""Reads the text of a trace into columns, by the faster of two ways.

It needs no pandas, which takes a quarter of a second to import: the two can be done side by side.

A small, sound file is decoded as a whole (``document.py``). A larger or damaged one is scanned while it is decompressed
(``stream.py``): every sound event is read, the rest is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from overhead_lens.errors import UsageError
from overhead_lens.readers.kineto.columns import Columns, Ints
from overhead_lens.readers.kineto.document import decode
from overhead_lens.readers.kineto.event import arguments_of
from overhead_lens.readers.kineto.source import Source, opened
from overhead_lens.readers.kineto.stream import arguments_reader, is_scanner_kept, scan

SMALL_BYTES = 2 << 20
"""Up to this size, decoding as a whole is faster than loading and running the scanner's machine code."""

UNCOMPILED_BYTES = 32 << 20
"""Up to this size, it is faster than compiling the scanner, which is done once per machine."""

_BLOCK_BYTES = 2 << 20

Decode = Callable[[Sequence[int]], list[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Contents:
    """What the text of a trace holds.

    Attributes:
        columns: Rows of the events and thread names.
        event_count: Entries of ``traceEvents``.
        raw_bytes: Size of the decompressed text.
        issues: Entries dropped or repaired, by reason.
        metadata: Values beside ``traceEvents``.
        arguments: Makes what decodes ``args`` of rows of a frame, from the row of the columns per row of the frame.
    """

    path: Path
    columns: Columns
    event_count: int
    raw_bytes: int
    issues: Mapping[str, int]
    metadata: Mapping[str, Any]
    arguments: Callable[[Ints], Decode]


def read_contents(path: Path) -> Contents:
    """Read the text of a trace.

    Raises:
        UsageError: The file cannot be read or is not such a trace.
    """
    with opened(path) as source:
        limit_bytes = SMALL_BYTES if is_scanner_kept() else UNCOMPILED_BYTES
        head, size = _head(source, limit_bytes)
        if size == 0:
            raise UsageError(f"{path} is empty" if not source.broken else f"{path} is no gzip file that can be read")
        whole = size < limit_bytes and not source.broken
        contents = decoded(path, memoryview(b"".join(block.data for block in head))) if whole else None
        if contents is not None:
            return contents
        streamed = scan(source, head, path)
    return Contents(
        path,
        streamed.columns,
        streamed.event_count,
        streamed.raw_bytes,
        streamed.issues,
        streamed.metadata,
        lambda rows: arguments_reader(path, streamed, rows),
    )


def decoded(path: Path, text: memoryview) -> Contents | None:
    """What a text holds that is decoded as a whole; None if it is not valid JSON in Kineto's layout."""
    document = decode(text)
    if document is None:
        return None
    texts = document.arguments
    return Contents(
        path,
        document.columns,
        document.event_count,
        len(text),
        document.issues,
        document.metadata,
        lambda rows: _decoder(texts, rows),
    )


def _head(source: Source, limit_bytes: int) -> tuple[list[Ints], int]:
    """Read the first ``limit_bytes`` of a stream: blocks, and their total size."""
    blocks: list[Ints] = []
    size = 0
    while size < limit_bytes:
        block = np.empty(min(_BLOCK_BYTES, limit_bytes - size), dtype=np.uint8)
        count = source.fill(memoryview(block.data))
        blocks.append(block[:count])
        size += count
        if count < len(block):
            break
    return blocks, size


def _decoder(texts: Sequence[msgspec.Raw], rows: Ints) -> Decode:
    def arguments(wanted: Sequence[int]) -> list[Mapping[str, Any]]:
        return [_arguments(bytes(texts[rows[row]])) for row in wanted]

    return arguments


def _arguments(text: bytes) -> Mapping[str, Any]:
    try:
        value = arguments_of(text) if text else {}
    except RecursionError:
        value = {}
    return value if isinstance(value, dict) else {}
