"""Runs ``overhead-lens advise`` on calls of the laboratory."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.command import document

ADVISED = Path(__file__).with_name("laboratory") / "advised"


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
        words = ["advise", target, *options, "--quiet", "--output", folder or Path(work) / "advice"]
        start_s = time.monotonic()
        return Advised(document(*words, folder=work), round(time.monotonic() - start_s, 1))
