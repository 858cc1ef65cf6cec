"""Fixtures of command lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.recorders import Recorders, folder_to_run_in, replace_recorders


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a scenario, ``tiny.py``, and rules of one's own, ``mine.toml``."""
    return folder_to_run_in(tmp_path, monkeypatch)


@pytest.fixture
def recorders(here: Path, monkeypatch: pytest.MonkeyPatch) -> Recorders:
    """Recorders that draw instead of measuring."""
    return replace_recorders(here, monkeypatch)
