"""Runs ``overhead-lens``, or another program of Python, as the scripts do: in a process of its own, whose complaint is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Long enough for a machine that compiles everything anew.
_TIMEOUT_S = 1800


def lens(*words: object, folder: str | Path | None = None, variables: Mapping[str, str] | None = None) -> str:
    """What the command prints, run in a folder and with more variables of the environment.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    return python("-m", "overhead_lens", *words, folder=folder, variables=variables)


def document(*words: object, folder: str | Path | None = None, variables: Mapping[str, str] | None = None) -> Any:
    """What the command prints with ``--json``. Arguments and errors as of ``lens``."""
    return json.loads(lens(*words, "--json", folder=folder, variables=variables))


def python(*words: object, folder: str | Path | None = None, variables: Mapping[str, str] | None = None) -> str:
    """What the interpreter prints with these arguments. Errors as of ``lens``."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        done.check_returncode()
    return done.stdout
