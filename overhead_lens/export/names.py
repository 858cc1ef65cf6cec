"""Names as any reader of a trace can take them."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=65_536)
def readable(name: object) -> str:
    """``name`` as non-empty text that encodes to UTF-8 and holds no NUL.

    Traces found in the wild hold lone surrogates (a reader's mark for bytes that were not UTF-8), NULs, which end a name
    early in some readers, and values that are not text. Nothing is dropped: what cannot be written is escaped.
    """
    text = name if isinstance(name, str) else str(name)
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode("utf-8") or "(no name)"


def thread_title(number: str, name: str) -> str:
    """Number and name of a thread of a trace; traces have names that hold the number."""
    return readable(name if name and number in name else f"thread {number} {name}".strip())
