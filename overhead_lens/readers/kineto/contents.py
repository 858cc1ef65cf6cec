"""Reads the text of a trace into columns, by the faster of two ways.

It needs no pandas, which takes a quarter of a second to import: the two can be done side by side.

A small, sound file is decoded as a whole (``document.py``). A larger or damaged one is scanned while it is decompressed
(``stream.py``): every sound event is read, the rest is counted.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from overhead_lens.errors import UsageError
from overhead_lens.readers.kineto.columns import Contents, Ints
from overhead_lens.readers.kineto.document import decoded
from overhead_lens.readers.kineto.source import GZIP_MAGIC, Source, opened
from overhead_lens.readers.kineto.stream import is_scanner_compiled, scan

SMALL_BYTES = 2 << 20
"""Up to this size, decoding as a whole is faster than loading and running the scanner's machine code."""

UNCOMPILED_BYTES = 32 << 20
"""Up to this size, it is faster than compiling the scanner, which is done once per machine."""

_BLOCK_BYTES = 2 << 20
# RFC 1952.
_LEAST_GZIP_BYTES, _SIZE_BYTES = 18, 4


def read_contents(path: Path) -> Contents:
    """Read the text of a trace.

    Raises:
        UsageError: The file cannot be read or is not such a trace.
    """
    with opened(path) as source:
        limit_bytes = SMALL_BYTES if is_scanner_compiled() else UNCOMPILED_BYTES
        head, size = _head(source, limit_bytes)
        if size == 0:
            raise UsageError(f"{path} is empty" if not source.broken else f"{path} is not a readable gzip file")
        whole = size < limit_bytes and not source.broken
        contents = decoded(path, memoryview(b"".join(block.data for block in head))) if whole else None
        return contents if contents is not None else scan(source, head, path)


def compiles_scanner(path: Path) -> bool:
    """Whether reading a trace begins with compiling the scanner, by the size of its text; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            if size >= _LEAST_GZIP_BYTES and file.read(len(GZIP_MAGIC)) == GZIP_MAGIC:
                # gzip ends with the size of its content.
                file.seek(-_SIZE_BYTES, os.SEEK_END)
                size = int.from_bytes(file.read(_SIZE_BYTES), "little")
    except OSError:
        return False
    return size >= UNCOMPILED_BYTES and not is_scanner_compiled()


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
