"""Where a result comes from: when, by which command and version, with which packages, on which machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from overhead_lens.captures.directory import fields_of

_RECORDED = ("started", "version", "command")


def origin(
    directory: str, environment: Mapping[str, Any], named: Iterable[tuple[str, str]] = (), side: str = ""
) -> list[tuple[str, str]]:
    """Names and texts.

    Args:
        directory: Where it is stored; empty for what is not.
        environment: Machine and versions.
        named: What else is known.
        side: The side of a comparison; empty if there is one only.
    """
    known = [(name, str(value)) for name, value in environment.items() if isinstance(value, (str, int, float))]
    pairs = [*named, *_recorded(directory), *known, ("stored in", directory)]
    return [(f"{side} {name}".strip(), text) for name, text in pairs if text]


def _recorded(directory: str) -> list[tuple[str, str]]:
    """The recording's metadata from its directory; empty if unreadable."""
    meta = fields_of(Path(directory))
    return [
        (name, str(meta[name]).replace("T", " ", name == "started").removesuffix("+00:00"))
        for name in _RECORDED
        if meta.get(name)
    ]
