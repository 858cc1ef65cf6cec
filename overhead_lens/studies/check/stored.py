"""Reads stored instruction counts without a clock: ``meta.json`` and callgrind's output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from overhead_lens.captures.directory import Kind, damaged, read_meta
from overhead_lens.captures.files import CALLGRIND
from overhead_lens.captures.model import Recorded
from overhead_lens.captures.upgrade import with_subject
from overhead_lens.instruments.instructions.record import Counted
from overhead_lens.subject import Subject


class CountsMeta(Recorded, frozen=True, kw_only=True):
    """``meta.json`` of instruction counts; fields as in ``CaptureMeta``."""

    subject: Subject
    instructions: Counted
    compile_options: dict[str, Any] | None = None
    target: str = ""
    inputs: str | None = None
    assigned: dict[str, str] | None = None
    effort: dict[str, int] = msgspec.field(default_factory=dict)


COUNTS = Kind("counts", "overhead-lens/counts/2", CountsMeta, {"overhead-lens/counts/1": with_subject})


def read_counts(path: Path) -> tuple[CountsMeta, Path]:
    """Metadata and callgrind's output of stored instruction counts.

    Raises:
        UsageError: The directory holds no complete counts.
    """
    meta = read_meta(path, COUNTS)
    output = path / CALLGRIND
    if not output.is_file():
        raise damaged("counts", path, f"they have no {CALLGRIND}")
    return meta, output
