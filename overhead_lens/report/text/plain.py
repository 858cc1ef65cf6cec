"""Names from scenarios, traces and captures as text that a terminal shows and never obeys."""

from __future__ import annotations


def plain(text: str) -> str:
    r"""``text`` on one line, each character that is not printable as its escape (``\x1b``, ``\n``, ``\u202e``)."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
