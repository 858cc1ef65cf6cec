"""Drawn captures: what a recording leaves on disk, without a recording."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from overhead_lens.budget.make import Evidence
from overhead_lens.captures.directory import CAPTURE
from overhead_lens.captures.files import CLOCK
from overhead_lens.captures.files import META as META_FILE
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.captures.tables import write_table
from overhead_lens.captures.upgrade import capture_of_1
from overhead_lens.instruments.guards.record import Guards
from overhead_lens.instruments.instructions.record import Counted, Instructions
from overhead_lens.instruments.page_faults.record import PageFaults
from overhead_lens.instruments.peaks.record import Peaks
from overhead_lens.instruments.samples.record import Sampled, Samples, write_stacks
from overhead_lens.instruments.trace.record import Traced, TraceNote
from overhead_lens.readers.callgrind import CallGraph
from overhead_lens.stack import Stack

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
    "warnings": [],
    "environment": {"torch": "2.0"},
}

LOOP = "measured_loop (overhead_lens/worker/loop.py:4)"


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
    write_table(path / CLOCK, rows)
    write_stacks(path, list(folded))
    store_meta(path, {**META, **meta})
    return path


def store_meta(path: Path, meta: Mapping[str, Any]) -> None:
    """Write ``meta.json`` with the fields of ``META``, sound or not."""
    (path / META_FILE).write_text(json.dumps({"schema": CAPTURE.schema, **capture_of_1(meta)}))


def typed(meta: Mapping[str, Any]) -> CaptureMeta:
    """What ``meta.json`` with those fields says."""
    return msgspec.convert(capture_of_1(meta), CaptureMeta)


def evidence(
    meta: Mapping[str, Any],
    clock: pd.DataFrame,
    samples: Sequence[Sequence[Stack]] = (),
    events: pd.DataFrame | None = None,
    name: str = "traces/drawn",
    *,
    calibration: Mapping[str, Any] | None = None,
    ablation: pd.DataFrame | None = None,
    instructions: CallGraph | None = None,
) -> Evidence:
    """Evidence of a capture with those fields in its ``meta.json``."""
    found = typed(meta)

    def note(instrument: str, kind: type[Any]) -> Any:
        said = found.instruments.get(instrument)
        return None if said is None else msgspec.convert(said, kind)

    counted, traced = note("instructions", Counted), note("trace", Traced)
    return Evidence(
        name=name,
        meta=found,
        clock=clock,
        samples=Samples(samples, note("samples", Sampled) or Sampled()),
        trace=None if events is None else TraceNote(events, traced),
        calibration=calibration,
        ablation=ablation,
        guards=note("guards", Guards) or Guards(),
        page_faults=note("page_faults", PageFaults) or PageFaults(),
        peaks=note("peaks", Peaks),
        instructions=None if counted is None else Instructions(instructions, counted),
    )
