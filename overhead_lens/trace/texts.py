"""Texts of a trace, each numbered once, in the form in which the file has them."""

from __future__ import annotations

import json

import numpy as np

from overhead_lens.trace import scanner
from overhead_lens.trace.columns import Ints

_FIRST_TEXTS = 1 << 13
_FIRST_BYTES = 1 << 20


class Texts:
    """A hash table that the scanner fills.

    Attributes:
        table: ``slots`` (int32, a power of two, -1 for empty), ``hashes`` (uint64), ``places`` (int64: where and how long in the
            arena), ``arena`` (uint8), ``used`` (int64: number of texts, bytes of the arena).
    """

    def __init__(self) -> None:
        self.table = (
            np.full(2 * _FIRST_TEXTS, -1, dtype=np.int32),
            np.empty(_FIRST_TEXTS, dtype=np.uint64),
            np.empty((_FIRST_TEXTS, 2), dtype=np.int64),
            np.empty(_FIRST_BYTES, dtype=np.uint8),
            np.zeros(2, dtype=np.int64),
        )

    def grow(self, more_bytes: int) -> None:
        """Double the table, and the arena by at least ``more_bytes``."""
        _, hashes, places, arena, used = self.table
        count, size = used.tolist()
        slots = np.full(4 * len(hashes), -1, dtype=np.int32)
        scanner.rehash(hashes, count, slots)
        self.table = (
            slots,
            _enlarged(hashes, count, 2 * len(hashes)),
            _enlarged(places, count, 2 * len(hashes)),
            _enlarged(arena, size, max(2 * len(arena), size + more_bytes)),
            used,
        )

    def number(self, text: str) -> int:
        """The number of a text."""
        escaped = np.frombuffer(json.dumps(text)[1:-1].encode(), dtype=np.uint8)
        _, hashes, _, arena, used = self.table
        if used[0] + 1 > len(hashes) or used[1] + len(escaped) > len(arena):
            self.grow(len(escaped))
        return int(scanner.intern(escaped, 0, len(escaped), *self.table))

    def raw(self, first: int) -> list[bytes]:
        """The texts from number ``first`` on, as the file has them."""
        _, _, places, arena, used = self.table
        return [arena[at : at + size].tobytes() for at, size in places[first : used[0]].tolist()]

    def decoded(self) -> list[str]:
        """The texts in the order of their numbers."""
        return [_decode(text) for text in self.raw(0)]


def _enlarged(array: Ints, count: int, size: int) -> Ints:
    larger = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    larger[:count] = array[:count]
    return larger


def _decode(text: bytes) -> str:
    if b"\\" in text:
        try:
            return str(json.loads(b'"' + text + b'"', strict=False))
        except ValueError:  # an escape that JSON does not know: as it stands
            pass
    return text.decode("utf-8", "surrogateescape")
