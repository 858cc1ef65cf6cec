"""Runs a program by ``overhead-lens run``, or the stepped script of the laboratory by itself."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

STEPPED = Path(__file__).with_name("laboratory") / "stepped.py"

# Long enough for a machine that compiles everything anew.
_TIMEOUT_S = 600


def document_of(program: Path, *arguments: object, options: Sequence[object] = ()) -> dict[str, Any]:
    """What ``run --json`` says of a program, which works in a fresh folder.

    Raises:
        subprocess.CalledProcessError: It failed, or the program did.
    """
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        path = Path(folder) / "run.json"
        words = ("-m", "overhead_lens", "run", "--json", path, *options, "--", program, *arguments)
        _run(folder, words)
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document


def step_times_ns(*arguments: object) -> array[int]:
    """The time of every step of the stepped script, run by itself.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        path = Path(folder) / "times"
        _run(folder, (STEPPED, *arguments, "--times", path))
        times = array("q")
        times.frombytes(path.read_bytes())
        return times


def _run(folder: str, words: Sequence[object]) -> None:
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        done.check_returncode()
