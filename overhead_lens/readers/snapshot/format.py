"""Tells a memory snapshot from other files."""

from __future__ import annotations

from pathlib import Path

_PROTOCOLS = range(2, 6)


def is_snapshot(path: Path) -> bool:
    """Whether the file begins like a pickle; False for one that cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(2)
    except OSError:
        return False
    return len(head) == 2 and head[0] == 0x80 and head[1] in _PROTOCOLS  # gzip and JSON begin otherwise
