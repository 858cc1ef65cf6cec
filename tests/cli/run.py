"""Running the program as a user does, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TINY = """
from dataclasses import dataclass
from overhead_lens.scenario import Scenario, Work

@dataclass(frozen=True)
class Params:
    size: int = 50

def inputs(params):
    return (list(range(params.size)),)

def total(values):
    BODY
    return sum(values)

def check(params, inputs, output):
    if output != params.size * (params.size - 1) // 2:
        raise ValueError(f"expected a triangle number, got {output}")

SCENARIO = Scenario(name="tiny", summary="a sum", source="the tests", params=Params, inputs=inputs,
                    variants={"total": total}, check=check, work=lambda params: Work(units=params.size))
"""


def scenario(folder: Path, body: str = "pass", text: str = TINY) -> Path:
    """A scenario file that needs no torch of its own."""
    path = folder / "tiny.py"
    path.write_text(text.replace("BODY", body))
    return path


def lens(
    *arguments: object, cwd: Path, env: dict[str, str] | None = None, timeout: float = 240
) -> subprocess.CompletedProcess[str]:
    """Run ``overhead-lens ARGUMENTS``; never raises for its exit code."""
    command = [sys.executable, "-m", "overhead_lens", *map(str, arguments)]
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on stderr; stdout must be empty."""
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("overhead-lens: ")
    return line.removeprefix("overhead-lens: ")
