"""Runs a program by ``overhead-lens run``, or the stepped script of the laboratory by itself."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.command import lens, python

STEPPED = Path(__file__).with_name("laboratory") / "stepped.py"


def document_of(program: Path, *arguments: object, options: Sequence[object] = ()) -> dict[str, Any]:
    """What ``run --json`` says of a program, which works in a fresh folder.

    Raises:
        subprocess.CalledProcessError: It failed, or the program did.
    """
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        path = Path(folder) / "run.json"
        lens("run", "--json", path, *options, "--", program, *arguments, folder=folder)
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document


def step_times_ns(*arguments: object) -> array[int]:
    """The time of every step of the stepped script, run by itself.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        path = Path(folder) / "times"
        python(STEPPED, *arguments, "--times", path, folder=folder)
        times = array("q")
        times.frombytes(path.read_bytes())
        return times
