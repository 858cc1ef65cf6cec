"""Drawn instruction counts: what counting without a clock leaves on disk."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

from overhead_lens.captures.directory import write_meta
from overhead_lens.captures.files import CALLGRIND
from overhead_lens.instruments.instructions.record import Counted
from overhead_lens.studies.check.stored import COUNTS, CountsMeta
from overhead_lens.subject import Subject

_HEAD = "# callgrind format\nversion: 1\npositions: line\nevents: Ir\nob=/usr/lib/libtorch_cpu.so\n"


def draw_counts(path: Path, functions: Mapping[str, int], calls: int = 1, name: str = "drawn") -> Path:
    """A complete directory of counts: native functions of torch and their own instructions in ``calls`` calls."""
    path.mkdir()
    text = _HEAD + "".join(f"fn={function}\n1 {count * calls}\n" for function, count in functions.items())
    with gzip.open(path / CALLGRIND, "wt") as file:
        file.write(f"{text}\ntotals: {sum(functions.values()) * calls}\n")
    write_meta(path, COUNTS, CountsMeta(subject=Subject("function", name, name), instructions=Counted(calls)))
    return path
