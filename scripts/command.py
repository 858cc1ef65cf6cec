"""Runs ``overhead-lens``, or another program, as the scripts do: in a process of its own, whose complaint is returned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Long enough for a machine that compiles everything anew.
_TIMEOUT_S = 1800.0

Done = subprocess.CompletedProcess[bytes]


def lens(*words: object, folder: str | Path | None = None, variables: Mapping[str, str] | None = None) -> str:
    """What the command prints, run in a folder and with more variables of the environment.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    return python("-m", "overhead_lens", *words, folder=folder, variables=variables)


def document(*words: object, folder: str | Path | None = None, variables: Mapping[str, str] | None = None) -> Any:
    """What the command prints with ``--json``. Arguments and errors as of ``lens``."""
    return json.loads(lens(*words, "--json", folder=folder, variables=variables))


def captured(path: Path, *words: object) -> Any:
    """The budget in a directory, profiled with these words if it is not there. Errors as of ``lens``."""
    if (path / "meta.json").exists():
        return document("report", path)
    return document("profile", *words, "--quiet", "--output", path)


def run_document(program: Path, *arguments: object, options: Sequence[object] = ()) -> Any:
    """What ``run --json`` says of a program, which works in a fresh folder. Errors as of ``lens``, or of the program."""
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        path = Path(folder) / "run.json"
        lens("run", "--json-file", path, *options, "--", program, *arguments, folder=folder)
        return json.loads(path.read_text(encoding="utf-8"))


def python(*words: object, folder: str | Path | None = None, variables: Mapping[str, str] | None = None) -> str:
    """What the interpreter prints with these arguments. Errors as of ``lens``."""
    done = run([sys.executable, *words], folder, variables)
    if done.returncode:
        print(done.stderr.decode(errors="replace"), file=sys.stderr)
        done.check_returncode()
    return done.stdout.decode()


def run(
    words: Sequence[object],
    folder: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> Done:
    """What became of a program, which may have failed.

    Raises:
        subprocess.TimeoutExpired: It did not end.
    """
    return subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**os.environ, **(variables or {})},
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )


def complaint(done: Done) -> str:
    """The last line of text that a failed program prints, without the frames that are drawn around errors."""
    lines = done.stderr.decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip(" ╰─╯│╭╮")), "it said nothing")
