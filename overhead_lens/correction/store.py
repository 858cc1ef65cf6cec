"""Keeps calibrations per machine, GPU, torch and Python, so that not every profile calibrates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from overhead_lens import user_cache
from overhead_lens.machine.operations import Operation

# The flags of the trace that numbers come from: none.
PLAIN = "plain"
SCHEMA = "overhead-lens/calibration-rows/5"

# Processes differ by a fifth and more, so a calibration is the median of several.
PROCESSES = 5

_OF_MACHINE = ("host", "cpu", "cores_allowed", "governor")
_OF_RUNTIME = ("python", "torch", "torch_git", "threads", "gpu", "float32_matmul")


class MeasuredCosts(Struct, frozen=True):
    """Calibration calls timed bare and recorded, as ``worker.costs_here`` returns them."""

    rows: list[dict[str, Any]]
    reasons: dict[str, str]


MEASURE_COSTS = Operation("correction.worker:measure_costs", MeasuredCosts)


def key(machine: Mapping[str, Any], runtime: Mapping[str, Any]) -> str:
    """Name of the machine and the runtime that a calibration holds for."""
    values = [machine.get(name) for name in _OF_MACHINE] + [runtime.get(name) for name in _OF_RUNTIME]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


def place(name: str) -> Path:
    """The file of a key."""
    return user_cache.folder() / f"calibration-{name}.json"


def load(name: str) -> dict[str, Any] | None:
    """The calibration stored under a key; None if none can be read."""
    try:
        calibration = json.loads(place(name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return calibration if isinstance(calibration, dict) and calibration.get("schema") == SCHEMA else None


def save(name: str, calibration: Mapping[str, Any]) -> str | None:
    """Replace the calibration under a key, whole or not at all; returns the reason if that failed."""
    target = place(name)
    try:
        user_cache.replace(target, (json.dumps({"schema": SCHEMA, **calibration}) + "\n").encode())
    except OSError as error:
        return f"the calibration cannot be kept in {target.parent}: {error.strerror or error}"
    return None


def processes(calibration: Mapping[str, Any] | None, flags: str, *, compiled: bool, device: bool = False) -> int:
    """Number of processes measured under a set of flags, with compiled calls and those of a device if requested."""
    rows = (calibration or {}).get("rows", [])
    kinds = {"operator", *(["compiled"] if compiled else []), *(["device_launch"] if device else [])}
    counts = [
        {row.get("process", 0) for row in rows if row["flags"] == flags and row["kind"] == kind} for kind in kinds
    ]
    return min(map(len, counts))


def joined(calibration: Mapping[str, Any] | None, measured: MeasuredCosts) -> dict[str, Any]:
    """A calibration with the rows of one more process."""
    rows = list((calibration or {}).get("rows", []))
    number = 1 + max((row.get("process", 0) for row in rows), default=-1)
    added = ({**row, "process": number} for row in measured.rows)
    return {**(calibration or {}), "reasons": measured.reasons, "rows": [*rows, *added]}
