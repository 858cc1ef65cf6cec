"""Public traces for tests: data files of other projects, looked for beside the checkout and never part of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "traces"
ABSENT = (
    "no public traces in ../shared/traces: copy them from tests/data of github.com/facebookresearch/HolisticTraceAnalysis "
    "(as hta_*.json.gz) and tests/traces of github.com/AMD-AGI/TraceLens (as tl_*.json.gz)"
)

_VALUES = "reference_values.json"


def public_traces() -> list[Any]:
    """Every public trace as a parameter; one that is skipped where there is none."""
    paths = sorted(path for path in FOLDER.glob("*.json*") if path.name != _VALUES)
    skipped = pytest.param(None, marks=pytest.mark.skip(reason=ABSENT))
    return [pytest.param(path, id=path.name.split(".")[0]) for path in paths] or [skipped]


def public_trace(name: str) -> Path:
    """One public trace; the test that asks for it is skipped where it is absent."""
    path = FOLDER / f"{name}.json.gz"
    if not path.is_file():
        pytest.skip(ABSENT)
    return path


def reference(path: Path) -> dict[str, Any]:
    """The independently computed values of a public trace; a trace without any is skipped."""
    values = json.loads((FOLDER / _VALUES).read_text(encoding="utf-8")) if (FOLDER / _VALUES).is_file() else {}
    if path.name not in values:
        pytest.skip(f"{_VALUES} beside the public traces has no values of {path.name}")
    found: dict[str, Any] = values[path.name]
    return found
