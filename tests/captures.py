"""Drawn captures: what a recording leaves on disk, without a recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from overhead_lens.capture.directory import write_clock, write_meta, write_stacks

ROW = {
    "process": 0,
    "block": 0,
    "calls": 5,
    "wall_ns": 5_000,
    "reference_ns": 7,
    "minor_faults": 1,
    "system_ns": 0,
    "compiles": 0,
}

META: dict[str, Any] = {
    "scenario": "drawn",
    "variant": "drawn",
    "compile": False,
    "device": "cpu",
    "params": {"size": 10},
    "work": {"units": 1, "flops": 0, "bytes": 0},
    "trace": {"reason": "not recorded"},
    "samples": {"samples": 100, "errors": 0, "reason": None},
    "guards": None,
    "peaks": {},
    "published": [],
    "warnings": [],
    "environment": {"torch": "2.0"},
}

LOOP = "measured_loop (overhead_lens/capture/loop.py:4)"


def draw_capture(path: Path, frame: str = "drawn (drawn.py:1)", call_ns: int = 1_000, **meta: Any) -> Path:
    """A complete capture of three processes whose every call took ``call_ns``, all of it sampled in ``frame``."""
    path.mkdir()
    rows = [
        {**ROW, "process": process, "block": block, "wall_ns": ROW["calls"] * call_ns}
        for process in range(3)
        for block in range(4)
    ]
    return complete(path, rows, [f"main (worker.py:1);{LOOP};{frame} 100"] * 3, **meta)


def complete(path: Path, rows: Sequence[dict[str, int]], folded: Sequence[str], **meta: Any) -> Path:
    """Write the files of a capture into ``path``, ``meta.json`` last."""
    write_clock(path, list(rows))
    write_stacks(path, list(folded))
    write_meta(path, {**META, **meta})
    return path
