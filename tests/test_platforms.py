"""Windows: stored captures are read there, and what measures refuses in one line.

A process stands for it: ``sys.platform`` is patched, and the modules that Windows lacks cannot be imported. Whatever is imported
before (torch, numpy, ...) keeps to the system that runs the test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cli.run import lens

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "traces" / "reference"

_ELSEWHERE = """
import importlib, sys

for name in ("asyncio", "concurrent.futures.process", "subprocess", "tempfile", "torch", "numba", "pandas", "scipy.stats",
             "pyarrow.parquet", "duckdb", "isal.igzip_threaded", "typer.main", "rich.progress", "matplotlib.pyplot"):
    importlib.import_module(name)
assert not [name for name in sys.modules if name.startswith("overhead_lens")]
sys.platform = "win32"
sys.modules.update(dict.fromkeys(("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")))
import contextlib, io, json
import overhead_lens
from overhead_lens.__main__ import main

outcomes = []
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    outcomes.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(outcomes))
"""

READING: list[tuple[object, ...]] = [
    ("report", REFERENCE / "eager", "--json"),
    ("report", REFERENCE / "ladder", "--json"),
    ("report", REFERENCE / "run", "--json"),
    ("analyze", REFERENCE / "training.json.gz", "--json"),
    ("diff", REFERENCE / "release-old", REFERENCE / "release-new", "--force", "--json"),
]

REFUSING: dict[tuple[object, ...], str] = {
    ("profile", "add1"): "profile measures on Linux and macOS only; captures made there can be read here",
    ("run", "program.py"): "run measures on Linux and macOS only; runs made there can be read here",
    ("attach", "1"): "attach watches processes on Linux and macOS only; captures made there can be read here",
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


def test_what_was_measured_reads_the_same_on_windows(tmp_path: Path) -> None:
    for words, (code, stdout, stderr) in zip(READING, _on_windows(READING, tmp_path), strict=True):
        here = lens(*words, cwd=tmp_path)
        assert (code, stderr) == (here.returncode, here.stderr) == (0, "")
        assert json.loads(stdout) == json.loads(here.stdout)


def test_what_measures_refuses_on_windows(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("raise SystemExit('it ran')\n")
    outcomes = _on_windows(list(REFUSING), tmp_path)
    assert outcomes == [(2, "", f"overhead-lens: {reason}\n") for reason in REFUSING.values()]
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


def _on_windows(lines: Sequence[tuple[object, ...]], cwd: Path) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each ``overhead-lens`` line, in a process that stands for Windows."""
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, json.dumps([[str(word) for word in line] for line in lines])],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    return [(code, stdout, stderr) for code, stdout, stderr in json.loads(done.stdout)]
