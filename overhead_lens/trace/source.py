"""Bytes of a trace file, decompressed as they are read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from overhead_lens.errors import UsageError

_DAMAGE: tuple[type[Exception], ...] = (EOFError, zlib.error, gzip.BadGzipFile)
try:
    from isal import igzip, isal_zlib

    _open_gzip: Any = igzip.GzipFile
    _DAMAGE = (*_DAMAGE, isal_zlib.IsalError)  # type: ignore[arg-type, unused-ignore]
except ImportError:  # a platform without wheels of isal: slower, the same bytes
    _open_gzip = gzip.GzipFile

GZIP_MAGIC = b"\x1f\x8b"


class Source:
    """Reads a file from its start; gzip is known by its first bytes, never by the file's name.

    Attributes:
        broken: Whether the compressed stream ended early or is damaged: what came before it was delivered.
    """

    def __init__(self, file: BinaryIO) -> None:
        compressed = file.read(2) == GZIP_MAGIC
        file.seek(0)
        self._file: Any = _open_gzip(fileobj=file, mode="rb") if compressed else file
        self.broken = False

    def fill(self, view: memoryview) -> int:
        """Read until ``view`` is full or the stream ends; the number of bytes read."""
        filled = 0
        while filled < len(view) and not self.broken:
            try:
                count = self._file.readinto(view[filled:])
            except _DAMAGE:
                self.broken = True
                break
            if not count:
                break
            filled += count
        return filled


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Open a file for reading.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            yield Source(file)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
