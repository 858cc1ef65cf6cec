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
    "default_params": {"size": 10},
    "names": ["eager", "compiled"],
    "reasons": {},
    "pairs": {},
    "published": [],
    "environment": {"torch": "2.0"},
}

Sides = Mapping[str, Sequence[float | None]]


def published(rung: str, ns: float, source: str = "post", **more: Any) -> dict[str, Any]:
    """A figure as the metadata hold it."""
    return {"label": rung, "ns": ns, "variant": "call", "source": source, "params": {}, "rung": rung, **more}


def draw_rows(rungs: Sides, steps: Sides | None = None, faults: int = 0, blocks: int = 3) -> list[dict[str, Any]]:
    """Blocks of the sides: ns per call in each process, the same in every block; None where a process has none."""
    rows = []
    for process in range(max(map(len, [*rungs.values(), *(steps or {}).values()]))):
        for kind, sides in (("rung", rungs), ("step", steps or {})):
            for block in range(blocks):
                for name, per_process in sides.items():
                    ns = per_process[process]
                    if ns is not None:
                        row = {
                            "process": process,
                            "kind": kind,
                            "rung": name,
                            "block": block,
                            "calls": CALLS,
                            "wall_ns": round(CALLS * ns),
                            "reference_ns": 100,
                        }
                        rows.append({**row, "minor_faults": faults * CALLS} if kind == "rung" else row)
    return rows


def frame(rungs: Sides, steps: Sides | None = None, faults: int = 0, blocks: int = 3) -> pd.DataFrame:
    """The same as the analysis reads it."""
    return pd.DataFrame(draw_rows(rungs, steps, faults, blocks))


def draw_stored(path: Path, rungs: Sides, steps: Sides | None = None, **meta: Any) -> Path:
    """A complete ladder directory."""
    path.mkdir()
    write_table(path / ABLATION, draw_rows(rungs, steps))
    write_meta(path, LADDER, typed({**META, "names": list(rungs), **meta}))
    return path


def typed(meta: Mapping[str, Any]) -> LadderMeta:
    """What ``meta.json`` with the fields of ``META`` says."""
    (upgrade,) = LADDER.upgrades.values()
    return msgspec.convert(upgrade(meta), LadderMeta)
