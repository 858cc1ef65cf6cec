"""Runs a program by ``overhead-lens run``, or the stepped script of the laboratory by itself."""

from __future__ import annotations

import json
import os
import shutil
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

# What one layout differs from the next by: the environment lies above the stack.
_PADDING_BYTES = 400


def document_of(
    program: Path, *arguments: object, options: Sequence[object] = (), layout: int | None = None
) -> dict[str, Any]:
    """What ``run --json`` says of a program, which works in a fresh folder.

    Args:
        program: The script.
        arguments: Its arguments.
        options: Those of ``run``.
        layout: Processes of one number have their memory at the same addresses, where setarch(8) can do that.

    Raises:
        subprocess.CalledProcessError: It failed, or the program did.
    """
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        path = Path(folder) / "run.json"
        words = ("-m", "overhead_lens", "run", "--json", path, *options, "--", program, *arguments)
        _run(folder, words, layout)
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


def _run(folder: str, words: Sequence[object], layout: int | None = None) -> None:
    command, variables = [sys.executable, *map(str, words)], dict(os.environ)
    if layout is not None:
        variables |= {"PYTHONHASHSEED": str(layout), "PADDING": "x" * (_PADDING_BYTES * layout)}
        fixing = shutil.which("setarch")
        command = [fixing, "-R", *command] if fixing else command
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        done.check_returncode()
