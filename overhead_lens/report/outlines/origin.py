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
    """Names and texts, the ``named`` first; of a comparison with its ``side`` before each name."""
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
