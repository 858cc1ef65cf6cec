"""String table of a trace: every distinct string once, with the escapes of the file."""

from __future__ import annotations

import json

import numpy as np

from overhead_lens.readers.kineto import layout
from overhead_lens.readers.kineto.columns import Ints

_FIRST_TEXTS = 1 << 13
_FIRST_BYTES = 1 << 20


class StringTable:
    """Hash table from strings to indices, filled by the layout.

    Attributes:
        table: ``slots`` (int64: index of a string or -1; as many as a power of two), ``hashes`` (int64 per string), ``places``
            (int64, shape ``(n, 2)``: position and size in the arena), ``arena`` (uint8) and ``used`` (int64: number of strings,
            bytes of the arena).
    """

    def __init__(self) -> None:
        self.table = (
            np.full(2 * _FIRST_TEXTS, -1, dtype=np.int64),
            np.empty(_FIRST_TEXTS, dtype=np.int64),
            np.empty((_FIRST_TEXTS, 2), dtype=np.int64),
            np.empty(_FIRST_BYTES, dtype=np.uint8),
            np.zeros(2, dtype=np.int64),
        )

    def grow(self, more_bytes: int) -> None:
        """Double the table; enlarge the arena by at least ``more_bytes``."""
        _, hashes, places, arena, used = self.table
        count, size = used.tolist()
        slots = np.full(4 * len(hashes), -1, dtype=np.int64)
        layout.rehash(hashes, count, slots)
        self.table = (
            slots,
            _enlarged(hashes, count, 2 * len(hashes)),
            _enlarged(places, count, 2 * len(hashes)),
            _enlarged(arena, size, max(2 * len(arena), size + more_bytes)),
            used,
        )

    def number(self, text: str) -> int:
        """Index of a string, which is entered if it is new."""
        escaped = np.frombuffer(json.dumps(text)[1:-1].encode(), dtype=np.uint8)
        _, hashes, _, arena, used = self.table
        if used[0] + 1 > len(hashes) or used[1] + len(escaped) > len(arena):
            self.grow(len(escaped))
        return layout.intern(escaped, 0, len(escaped), *self.table)[0]

    def raw(self, first: int) -> list[bytes]:
        """Strings from index ``first`` on, undecoded."""
        _, _, places, arena, used = self.table
        return [arena[at : at + size].tobytes() for at, size in places[first : used[0]].tolist()]

    def decoded(self) -> list[str]:
        """All strings by index, decoded."""
        return [_decode(text) for text in self.raw(0)]


def _enlarged(array: Ints, count: int, size: int) -> Ints:
    larger = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    larger[:count] = array[:count]
    return larger


def _decode(text: bytes) -> str:
    if b"\\" in text:
        try:
            return str(json.loads(b'"' + text + b'"', strict=False))
        except ValueError:  # no escape of JSON: keep the text
            pass
    return text.decode("utf-8", "surrogateescape")
