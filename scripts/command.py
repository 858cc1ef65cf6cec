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


class FailedError(Exception):
    """A program failed; the message says how, in one line."""


def lens(*words: object, folder: str | Path | None = None, variables: Mapping[str, str] | None = None) -> str:
    """What the command prints, run in a folder and with more variables of the environment.

    Raises:
        FailedError: It failed, or did not end.
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
    return printed(done)


def environment(folder: Path, *requirements: object) -> Path:
    """The interpreter of a virtual environment, into which pip has installed these requirements. Errors as of ``lens``."""
    interpreter, record = folder / "bin" / "python", folder / "requirements.txt"
    text = "".join(f"{each}\n" for each in requirements)
    if not record.is_file() or record.read_text(encoding="utf-8") != text:
        python("-m", "venv", folder)
        printed(run([interpreter, "-m", "pip", "install", "--quiet", *requirements]))
        record.write_text(text, encoding="utf-8")
    return interpreter


def run(
    words: Sequence[object],
    folder: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> Done:
    """What became of a program, which may have failed.

    Raises:
        FailedError: It did not end.
    """
    environ = {**os.environ, **(variables or {})}
    try:
        return subprocess.run(
            [str(word) for word in words], cwd=folder, env=environ, capture_output=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise FailedError(f"did not end in {timeout_s:.0f} s") from None


def printed(done: Done) -> str:
    """What a program printed.

    Raises:
        FailedError: It failed.
    """
    if done.returncode:
        raise FailedError(because(done))
    return done.stdout.decode()


def because(done: Done) -> str:
    """How a program ended."""
    return f"ended with {done.returncode}: {complaint(done)}"


def complaint(done: Done) -> str:
    """The last line of text that a failed program prints, without the frames that are drawn around errors."""
    lines = done.stderr.decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip(" ╰─╯│╭╮")), "it said nothing")
