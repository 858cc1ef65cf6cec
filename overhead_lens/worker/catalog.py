"""Describes scenario files without measuring anything. Runs in the worker, since scenarios import torch."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from overhead_lens.errors import UsageError
from overhead_lens.target import Target
from overhead_lens.worker.load import load_scenario


def describe(name: str, path: Path) -> dict[str, Any]:
    """A scenario's ``name``, ``summary``, ``source``, ``variants`` and ``params`` (defaults); or ``name`` and ``error``."""
    try:
        scenario = load_scenario(Target(str(path), path))
    except UsageError as error:
        return {"name": name, "error": str(error)}
    return {
        "name": scenario.name,
        "summary": scenario.summary,
        "source": scenario.source,
        "variants": list(scenario.variants),
        "params": dataclasses.asdict(scenario.params()),
    }
