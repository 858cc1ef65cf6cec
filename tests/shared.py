"""Recordings that processes which run tests side by side make once for all."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from filelock import FileLock

_Made = TypeVar("_Made")


def made_once(name: str, make: Callable[[Path], _Made], factory: pytest.TempPathFactory) -> _Made:
    """The value that ``make`` returned for a folder of that name, in the process that came first."""
    folder = factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / name
    kept = folder / "made"
    with FileLock(f"{folder}.lock"):
        if not kept.exists():
            folder.mkdir(exist_ok=True)
            kept.write_bytes(pickle.dumps(make(folder)))
        made: _Made = pickle.loads(kept.read_bytes())
        return made
