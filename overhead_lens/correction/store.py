"""Calibrations kept per machine, torch and Python, so that the profiler's cost is measured once and not in every profile."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overhead_lens.correction.record import MeasuredCosts

SCHEMA = "overhead-lens/calibration-rows/5"

# Processes differ by a fifth and more, so a calibration is the median of several.
PROCESSES = 5

_OF_MACHINE = ("host", "cpu", "cores_allowed", "governor")
_OF_RUNTIME = ("python", "torch", "torch_git", "threads")


def folder() -> Path:
    """Where calibrations are kept: the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "overhead-lens"


def key(machine: Mapping[str, Any], runtime: Mapping[str, Any]) -> str:
    """A name for what a calibration holds for."""
    of = [machine.get(name) for name in _OF_MACHINE] + [runtime.get(name) for name in _OF_RUNTIME]
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()[:16]


def place(name: str) -> Path:
    """The file of a key."""
    return folder() / f"calibration-{name}.json"


def load(name: str) -> dict[str, Any] | None:
    """The calibration kept under a key; None where there is none, or none that can be read."""
    try:
        found = json.loads(place(name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("schema") == SCHEMA else None


def save(name: str, calibration: Mapping[str, Any]) -> str | None:
    """Keep a calibration, whole or not at all; what was kept before goes. Returns why it could not be kept."""
    target = place(name)
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps({"schema": SCHEMA, **calibration}) + "\n", encoding="utf-8")
        os.replace(partial, target)
    except OSError as error:
        return f"the calibration cannot be kept in {target.parent}: {error.strerror or error}"
    return None


def processes(calibration: Mapping[str, Any] | None, flags: str, *, compiled: bool) -> int:
    """How many processes were measured under a set of flags, and compiled calls in them where those are wanted."""
    rows = (calibration or {}).get("rows", [])
    kinds = {"compiled"} if compiled else {"operator"}
    return len({row.get("process", 0) for row in rows if row["flags"] == flags and row["kind"] in kinds})


def joined(kept: Mapping[str, Any] | None, found: MeasuredCosts) -> dict[str, Any]:
    """A calibration with the rows of one more process."""
    rows = list((kept or {}).get("rows", []))
    number = 1 + max((row.get("process", 0) for row in rows), default=-1)
    added = ({**row, "process": number} for row in found.rows)
    return {**(kept or {}), "reasons": found.reasons, "rows": [*rows, *added]}
