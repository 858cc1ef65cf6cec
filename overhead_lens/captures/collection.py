"""Finds the captures below a directory, at any depth, and other directories."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from overhead_lens.captures.directory import CAPTURE, fields_of
from overhead_lens.captures.files import CLOCK, KINETO, MARK, META, STACKS

_OF_A_CAPTURE = frozenset({CLOCK, KINETO, MARK, STACKS, "tracer.log", "clock-0.log"})


@dataclass(frozen=True, slots=True)
class Skipped:
    """A directory outside the history; ``kind`` is ``incomplete``, ``damaged`` or ``foreign``."""

    path: str
    kind: str
    reason: str


def find_captures(folder: Path) -> tuple[list[Path], list[Skipped]]:
    """Complete captures recorded alone, and other directories, by path; hidden directories and links are not entered."""
    captures: list[Path] = []
    skipped: list[Skipped] = []
    for name, inside, files in os.walk(folder):
        path = Path(name)
        if META in files:
            inside.clear()
            if reason := _foreign(path):
                skipped.append(Skipped(str(path), "foreign", reason))
            else:
                captures.append(path)
            continue
        inside[:] = sorted(child for child in inside if not child.startswith("."))
        if _OF_A_CAPTURE & set(files):
            skipped.append(Skipped(str(path), "incomplete", f"it has no {META} (was it interrupted?)"))
        elif not inside and path != folder:
            skipped.append(Skipped(str(path), "foreign", "it holds no capture"))
    return sorted(captures), skipped


def _foreign(path: Path) -> str:
    """Why a complete directory is not a capture recorded alone; empty if it is one."""
    fields = fields_of(path)
    schema = fields.get("schema")
    # An unreadable one is a damaged capture, which its reader reports.
    if schema is not None and not CAPTURE.is_of(schema):
        return f"it has schema {schema!r}"
    return "it is a side of a comparison, measured in turns with the other" if fields.get("recorded_with") else ""
