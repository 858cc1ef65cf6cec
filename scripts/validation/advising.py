"""Runs ``overhead-lens advise`` on calls of the laboratory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADVISED = Path(__file__).with_name("laboratory") / "advised"

# Long enough for a machine that compiles everything anew.
_TIMEOUT_S = 1800


@dataclass(frozen=True, slots=True)
class Advised:
    """What ``advise --json`` says of a call, and how long it took to say it."""

    document: dict[str, Any]
    seconds: float

    @property
    def measured(self) -> list[dict[str, Any]]:
        """The remedies that were measured, those that help first."""
        return [remedy for remedy in self.document["remedies"] if remedy["status"] == "measured"]

    def remedy(self, name: str) -> dict[str, Any]:
        """A remedy by its name."""
        return next(remedy for remedy in self.document["remedies"] if remedy["remedy"] == name)


def advice(target: str, *options: object, folder: Path | None = None) -> Advised:
    """Advise on a target; where no folder is named, nothing is kept.

    Raises:
        subprocess.CalledProcessError: It could not be measured.
    """
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as work:
        words = ["advise", target, *options, "--json", "--quiet", "--output", folder or Path(work) / "advice"]
        start_s = time.monotonic()
        return Advised(json.loads(lens(work, words)), round(time.monotonic() - start_s, 1))


def lens(folder: str | Path, words: Sequence[object]) -> str:
    """What the command prints.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    command = [sys.executable, "-m", "overhead_lens", *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        done.check_returncode()
    return done.stdout
