"""Calibrations kept per machine, torch and Python, so that the profiler's cost is measured once and not in every profile."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SCHEMA = "overhead-lens/calibration/2"

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


def covers(calibration: Mapping[str, Any] | None, flags: Sequence[str], *, compiled: bool) -> bool:
    """Whether it has rows for these sets of flags, and for compiled calls where they are wanted."""
    if calibration is None:
        return False
    rows = calibration.get("rows", [])
    known = {row["flags"] for row in rows}
    with_compiled = {row["flags"] for row in rows if row["kind"] == "compiled"}
    return set(flags) <= known and (not compiled or set(flags) <= with_compiled)
