"""Reads the bytes of a trace file, decompressed on the fly."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from overhead_lens.errors import UsageError

_DAMAGE: tuple[type[Exception], ...] = (zlib.error,)
try:
    from isal import isal_zlib

    _new_inflate: Callable[[int], Any] = isal_zlib.decompressobj
    _DAMAGE = (*_DAMAGE, isal_zlib.IsalError)  # type: ignore[arg-type, unused-ignore]
except ImportError:  # no wheel of isal for this platform: zlib is slower
    _new_inflate = zlib.decompressobj

GZIP_MAGIC = b"\x1f\x8b"

_GZIP_WINDOW = 31
_READ_BYTES = 1 << 17
# Output of one call: where compressed data is damaged, up to this much before it is lost.
_STEP_BYTES = 1 << 18


class Source:
    """Sequential reader of a plain or gzipped file, recognized by its first bytes.

    Attributes:
        broken: Whether the compressed stream is truncated, damaged or followed by other data. What came before was delivered.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._bytes, self._read_bytes = os.fstat(file.fileno()).st_size, 0
        self._pending = self._read()
        compressed = self._pending.startswith(GZIP_MAGIC)
        self._inflate: Any = _new_inflate(_GZIP_WINDOW) if compressed else None
        self.broken = False

    @property
    def share(self) -> float:
        """About which share of the file was delivered, 1 if its size is not known."""
        return min(1.0, max(1, self._read_bytes - len(self._pending)) / max(1, self._bytes))

    def _read(self) -> bytes:
        data = self._file.read(_READ_BYTES)
        self._read_bytes += len(data)
        return data

    def fill(self, view: memoryview) -> int:
        """Fill ``view`` as far as the stream goes; return the number of bytes."""
        filled = 0
        while filled < len(view):
            data = self._next(len(view) - filled)
            if not data:
                break
            view[filled : filled + len(data)] = data
            filled += len(data)
        return filled

    def _next(self, most: int) -> bytes:
        """Read at most ``most`` bytes; none at the end."""
        if self._inflate is not None:
            return self._inflated(min(most, _STEP_BYTES))
        data = self._pending or self._read()
        self._pending = data[most:]
        return data[:most]

    def _inflated(self, most: int) -> bytes:
        while not self.broken:
            if self._inflate.eof and not self._next_member():
                break
            self._pending = self._pending or self._read()
            at_end = not self._pending
            try:
                data: bytes = self._inflate.decompress(self._pending, most)
            except _DAMAGE:
                self.broken = True
                break
            self._pending = self._inflate.unconsumed_tail
            if data:
                return data
            self.broken = at_end and not self._inflate.eof
        return b""

    def _next_member(self) -> bool:
        """Begin the next member of a gzip file, if any; zeros between members are padding."""
        rest = self._inflate.unused_data.lstrip(b"\0")
        while not rest and (block := self._read()):
            rest = block.lstrip(b"\0")
        if len(rest) == 1:
            rest += self._read()
        self.broken = bool(rest) and not rest.startswith(GZIP_MAGIC)
        if not rest or self.broken:
            return False
        self._inflate = _new_inflate(_GZIP_WINDOW)
        self._pending = rest
        return True


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
