"""Windows and macOS: stored captures are read there, and what cannot be measured is refused in one line.

A process stands for the system: ``sys.platform`` is patched, and what the system lacks (modules, functions, folders) is taken
away. Whatever is imported before (torch, numpy, ...) keeps to the system that runs the test, and so do the processes that are
started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.run import lens

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "traces" / "reference"

# Each system is a fork of one process, which has imported the dependencies and nothing of this package.
_ELSEWHERE = """
import contextlib, importlib, io, json, os, sys

for name in ("asyncio", "concurrent.futures.process", "subprocess", "tempfile", "numba", "pandas", "scipy.stats",
             "pyarrow.parquet", "duckdb", "isal.igzip_threaded", "typer.main", "rich.progress"):
    importlib.import_module(name)
assert not [name for name in sys.modules if name.startswith("overhead_lens")]

def run(words):
    sys.argv[1:] = words
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return code, out.getvalue(), err.getvalue()

for system, lines in json.loads(sys.argv[1]):
    if not (pid := os.fork()):
        exec(system)
        import overhead_lens
        from overhead_lens.__main__ import main
        print(json.dumps([run(words) for words in lines]), flush=True)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        sys.exit(1)
"""

_WINDOWS = """
sys.platform = "win32"
sys.modules.update(dict.fromkeys(("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")))
"""

# Neither threads on cores nor the folders of Linux's kernel, and a py-spy that refuses native frames.
_MACOS = """
import ctypes, os, pathlib, platform, resource, sysconfig

sys.platform = "darwin"
platform.machine = lambda: "arm64"
for owner, lacking in ((os, ("sched_", "SCHED_", "pidfd_open")), (resource, ("RUSAGE_THREAD", "prlimit"))):
    for name in [name for name in dir(owner) if name.startswith(lacking) and name != "sched_yield"]:
        delattr(owner, name)

def check(path):
    if isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(("/proc", "/sys")):
        raise FileNotFoundError(2, "No such file or directory", os.fspath(path))

def checked(function):
    def call(path, *arguments, **options):
        check(path)
        return function(path, *arguments, **options)
    return call

sys.addaudithook(lambda event, values: check(values[0]) if event in {"open", "os.listdir", "os.scandir"} else None)
for owner, name in ((os, "stat"), (os, "readlink"), (pathlib.Path, "stat"), (pathlib.Path, "readlink")):
    setattr(owner, name, checked(getattr(owner, name)))

class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if name in {"mallopt", "personality", "prctl"}:
            raise AttributeError(name)
        return super().__getattr__(name)

ctypes.CDLL = Library
sysconfig.get_path = lambda *_: os.getcwd()
"""

_SHORTLY = """
from tests.recorder.effort import little_effort

effort = little_effort(processes=1)
effort.__enter__()
"""

_PY_SPY = "#!/bin/sh\necho 'Collecting stack traces from native extensions (`--native`) is not supported on your platform.' >&2\nexit 1\n"

READING: list[tuple[object, ...]] = [
    ("report", REFERENCE / "eager", "--json"),
    ("report", REFERENCE / "ladder", "--json"),
    ("report", REFERENCE / "run", "--json"),
    ("analyze", REFERENCE / "training.json.gz", "--json"),
    ("diff", REFERENCE / "release-old", REFERENCE / "release-new", "--allow-mismatch", "--json"),
]

REFUSING: dict[tuple[object, ...], str] = {
    ("profile", "add1"): "profile measures on Linux and macOS only; captures made there can be read here",
    ("run", "program.py"): "run measures on Linux and macOS only; runs made there can be read here",
    ("attach", "1"): "attach watches processes on Linux only; captures made there can be read here",
    ("ladder", "add1"): "ladder measures on Linux and macOS only; ladders made there can be read here",
    ("sweep", "add1"): "sweep measures on Linux and macOS only; sweeps made there can be read here",
    (
        "compare",
        "add1",
        "add1",
    ): "compare measures on Linux and macOS only; captures made there can be compared here by diff",
    ("advise", "add1"): "advise measures on Linux and macOS only; advice made there can be read here",
    ("calibrate",): "calibrate measures on Linux and macOS only",
    ("check", REFERENCE / "eager"): "profiles are measured on Linux and macOS only",
    ("baseline", "update", REFERENCE / "eager"): "profiles are measured on Linux and macOS only",
}


def test_what_was_measured_reads_the_same_elsewhere_and_what_measures_refuses_on_windows(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("raise SystemExit('it ran')\n")
    windows, macos = _elsewhere((_WINDOWS, [*READING, *REFUSING]), (_MACOS, READING), cwd=tmp_path)
    assert windows[len(READING) :] == [(2, "", f"overhead-lens: {reason}\n") for reason in REFUSING.values()]
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]
    for words, *elsewhere in zip(READING, windows[: len(READING)], macos, strict=True):
        here = lens(*words, cwd=tmp_path)
        assert (here.returncode, here.stderr) == (0, "")
        for code, stdout, stderr in elsewhere:
            assert (code, stderr) == (0, "")
            assert json.loads(stdout) == json.loads(here.stdout)


@pytest.mark.measures
def test_macos_measures_without_samples_and_says_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "py-spy").write_text(_PY_SPY)
    (tmp_path / "py-spy").chmod(0o755)
    (tmp_path / "program.py").write_text("import torch\nfor _ in range(9):\n    torch.ones(2).add(1)\n")
    lines = [
        ("attach", os.getpid(), "-q"),
        ("doctor",),
        ("run", "--json-file", "run.json", "program.py"),
        ("profile", "add1", "--quick", "--quiet", "--json"),
    ]
    ((attach, doctor, run, profile),) = _elsewhere((_MACOS + _SHORTLY, lines), cwd=tmp_path)
    lacking = "py-spy has no native frames on this system"
    assert attach == (3, "", f"overhead-lens: {lacking}\n")
    assert doctor[0] == 0
    assert f"none samples         {lacking}\n" in doctor[1]
    assert "budgets rest on the corrected trace (evidence: trace). Measure on Linux\n" in doctor[1]
    assert run[0] == 0
    ran = json.loads((tmp_path / "run.json").read_text())
    assert f"no stacks: {lacking}; nothing says how the time divides" in ran["warnings"]
    assert ran["wall"]["ns"] > 0
    assert (profile[0], profile[2]) == (0, "")
    breakdown = json.loads(profile[1])
    assert f"no samples ({lacking}): shares come from the corrected trace" in breakdown["warnings"]
    assert sum(row["ns"] for row in breakdown["host"]) == breakdown["wall"]["ns"]
    assert {row["evidence"] for row in breakdown["host"] if row["ns"]} == {"trace"}


def _elsewhere(*systems: tuple[str, Sequence[tuple[object, ...]]], cwd: Path) -> list[list[tuple[int, str, str]]]:
    """Exit code, stdout and stderr of ``overhead-lens`` lines, in a process for each system."""
    given = [(system, [[str(word) for word in line] for line in lines]) for system, lines in systems]
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, json.dumps(given)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    return [[(code, stdout, stderr) for code, stdout, stderr in json.loads(line)] for line in done.stdout.splitlines()]
