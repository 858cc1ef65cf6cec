"""Running the program on a command line."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from unittest import mock

import pytest
import typer.main

from overhead_lens.__main__ import main

# typer makes all commands anew for each line, which takes longer than most lines.
_commands = cache(typer.main.get_command)

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


def lens(*arguments: object, cwd: Path, env: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    """Run ``overhead-lens ARGUMENTS`` in this process, which has everything imported; never raises for its exit code."""
    words = ["overhead-lens", *map(str, arguments)]
    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
        mock.patch.object(typer.main, "get_command", _commands),
        mock.patch.object(sys, "argv", words),
        mock.patch.dict(os.environ, env),
        inside(cwd),
        _own_handlers(),
        pytest.raises(SystemExit) as end,
    ):
        main()
    return subprocess.CompletedProcess(words, end.value.code or 0, stdout.getvalue(), stderr.getvalue())


def lens_apart(
    *arguments: object, cwd: Path, env: Mapping[str, str] = {}, timeout: float = 240
) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own, as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "overhead_lens", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """With ``folder`` as the current one."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _own_handlers() -> Iterator[None]:
    """Put back what the program sets for signals."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on stderr below what announces a measurement; stdout must be empty."""
    assert done.stdout == ""
    (line,) = (line for line in done.stderr.splitlines() if not line.startswith(("measuring ", "watching ")))
    assert line.startswith("overhead-lens: ")
    return line.removeprefix("overhead-lens: ")
