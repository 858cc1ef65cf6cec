"""Instruction counts on disk, without a clock: ``meta.json`` and callgrind's output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from overhead_lens.captures.directory import Kind, damaged, read_meta
from overhead_lens.captures.files import CALLGRIND
from overhead_lens.captures.model import Recorded
from overhead_lens.captures.upgrade import subject_of
from overhead_lens.instruments.instructions.evidence import Counted
from overhead_lens.subject import Subject


class CountsMeta(Recorded, frozen=True, kw_only=True):
    """``meta.json`` of instruction counts; fields as of a capture."""

    subject: Subject
    instructions: Counted
    compile_options: dict[str, Any] | None = None
    target: str = ""
    inputs: str | None = None
    assigned: dict[str, str] | None = None
    effort: dict[str, int] = msgspec.field(default_factory=dict)


def _of_1(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {**meta, "subject": subject_of(meta)}


COUNTS = Kind("counts", "overhead-lens/counts/2", CountsMeta, {"overhead-lens/counts/1": _of_1})


def read_counts(path: Path) -> tuple[CountsMeta, Path]:
    """Metadata and callgrind's output of stored instruction counts.

    Raises:
        UsageError: Not such counts, or interrupted ones.
    """
    meta = read_meta(path, COUNTS)
    output = path / CALLGRIND
    if not output.is_file():
        raise damaged("counts", path, f"they have no {CALLGRIND}")
    return meta, output
