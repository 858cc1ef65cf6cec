"""Drawn ladders: what a recording leaves on disk, without a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from overhead_lens.captures.directory import write_meta
from overhead_lens.captures.files import ABLATION
from overhead_lens.captures.tables import write_table
from overhead_lens.studies.ladder.stored import LADDER, LadderMeta

CALLS = 8

META: dict[str, Any] = {
    "scenario": "drawn",
    "variant": "call",
    "device": "cpu",
    "params": {"size": 10},
    "names": ["eager", "compiled"],
    "reasons": {},
    "environment": {"torch": "2.0"},
}

Sides = Mapping[str, Sequence[float | None]]


def draw_rows(rungs: Sides, faults: int = 0, blocks: int = 3) -> list[dict[str, Any]]:
    """Blocks of the rungs: ns per call in each process, the same in every block; None where a process has none."""
    return [
        {
            "process": process,
            "rung": name,
            "block": block,
            "calls": CALLS,
            "wall_ns": round(CALLS * ns),
            "reference_ns": 100,
            "minor_faults": faults * CALLS,
        }
        for process in range(max(map(len, rungs.values())))
        for block in range(blocks)
        for name, per_process in rungs.items()
        if (ns := per_process[process]) is not None
    ]


def frame(rungs: Sides, faults: int = 0, blocks: int = 3) -> pd.DataFrame:
    """The same as the analysis reads it."""
    return pd.DataFrame(draw_rows(rungs, faults, blocks))


def draw_stored(path: Path, rungs: Sides, **meta: Any) -> Path:
    """A complete ladder directory."""
    path.mkdir()
    write_table(path / ABLATION, draw_rows(rungs))
    write_meta(path, LADDER, typed({**META, "names": list(rungs), **meta}))
    return path


def typed(meta: Mapping[str, Any]) -> LadderMeta:
    """What ``meta.json`` with the fields of ``META`` says."""
    (upgrade,) = LADDER.upgrades.values()
    return msgspec.convert(upgrade(meta), LadderMeta)
