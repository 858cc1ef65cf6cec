"""Measured units on disk: one JSON file each, of where it was measured and of every call's outcome."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from overhead_lens import user_cache
from scripts.reproduction.outcomes import Measured, Outcomes, Part
from scripts.results import Origin


def measure_missing(part: Part, options: argparse.Namespace) -> None:
    """Measure and store the part's requested units that are not stored."""
    for unit in part.units:
        path = options.folder / part.name / f"{unit.name}.json"
        is_requested = not options.only or {part.name, f"{part.name}.{unit.name}"} & set(options.only)
        if not is_requested or _is_complete(path):
            continue
        print(f"measuring {part.name}.{unit.name}", file=sys.stderr, flush=True)
        document = {**asdict(Origin.here()), "calls": unit.measure(options)}
        user_cache.replace(path, json.dumps(document, indent=1).encode())


def _is_complete(path: Path) -> bool:
    """Whether a unit is stored without a failure, which would be worth another try."""
    return path.exists() and not any(
        isinstance(outcome, str) for outcome in json.loads(path.read_text(encoding="utf-8"))["calls"].values()
    )


@dataclass(frozen=True, slots=True)
class Stored:
    """What FOLDER holds of a part: outcomes by ``UNIT/CALL`` and where they were measured."""

    outcomes: Outcomes
    origins: frozenset[Origin]


def read_stored(part: Part, folder: Path) -> Stored:
    """The part's stored units."""
    outcomes: dict[str, Any] = {}
    origins = set()
    for unit in part.units:
        path = folder / part.name / f"{unit.name}.json"
        if path.exists():
            document = json.loads(path.read_text(encoding="utf-8"))
            calls = document.pop("calls")
            origins.add(Origin(**document))
            for name, value in calls.items():
                outcomes[f"{unit.name}/{name}"] = Measured(**value) if isinstance(value, dict) else value
    return Stored(outcomes, frozenset(origins))
