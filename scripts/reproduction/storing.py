"""Measured units on disk: one JSON file each, of the machine and of every call's outcome."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overhead_lens.machine.environment import describe_machine
from scripts.reproduction.outcomes import Measured, Outcomes, Part


def measure_missing(part: Part, options: argparse.Namespace) -> None:
    """Measure and store the part's units that were asked for and are not stored."""
    for unit in part.units:
        path = options.folder / f"{part.name}.{unit.name}.json"
        wanted = not options.only or {part.name, f"{part.name}.{unit.name}"} & set(options.only)
        if not wanted or _is_complete(path):
            continue
        print(f"measuring {part.name}.{unit.name}", file=sys.stderr, flush=True)
        document = {"machine": machine(), "calls": unit.measure(options)}
        part_file = path.with_suffix(".part")
        part_file.write_text(json.dumps(document, indent=1), encoding="utf-8")
        part_file.rename(path)


def _is_complete(path: Path) -> bool:
    """Whether a unit is stored without a failure, which would be worth another try."""
    return path.exists() and not any(
        isinstance(outcome, str) for outcome in json.loads(path.read_text(encoding="utf-8"))["calls"].values()
    )


def machine() -> str:
    """The machine and versions in words, without its name."""
    about = describe_machine()
    torch, numpy = (importlib.metadata.version(package) for package in ("torch", "numpy"))
    system = f"{platform.system()} {platform.release()}"
    return f"{about['cpu']}, {about['cores']} cores, {system}; torch {torch}, NumPy {numpy}, Python {platform.python_version()}"


@dataclass(frozen=True, slots=True)
class Stored:
    """What FOLDER holds of a part: outcomes by ``UNIT/CALL`` and the machines they are of."""

    outcomes: Outcomes
    machines: frozenset[str]


def read_stored(part: Part, folder: Path) -> Stored:
    """The part's stored units."""
    outcomes: dict[str, Any] = {}
    machines = set()
    for unit in part.units:
        path = folder / f"{part.name}.{unit.name}.json"
        if path.exists():
            document = json.loads(path.read_text(encoding="utf-8"))
            machines.add(document["machine"])
            for name, value in document["calls"].items():
                outcomes[f"{unit.name}/{name}"] = Measured(**value) if isinstance(value, dict) else value
    return Stored(outcomes, frozenset(machines))
