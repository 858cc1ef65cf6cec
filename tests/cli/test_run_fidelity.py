"""``run`` runs a program as Python does: output, errors and exit code are the same, byte for byte."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.worker import warm

pytestmark = [pytest.mark.measures, pytest.mark.skipif(sys.platform == "win32", reason="run is for Linux and macOS")]

FOLDER = Path(__file__).resolve().parents[1] / "programs" / "fidelity"

# Output is buffered as it is for users: what a program loses by ``os._exit`` it must lose here too.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


@dataclass(frozen=True, slots=True)
class Ended:
    """What a program left behind."""

    stdout: bytes
    stderr: bytes
    code: int


PROGRAMS = {
    "argparse": ("arguments.py", "a", "--json", "x", "-m", "y", "--number", "3"),
    "help": ("arguments.py", "--help"),
    "wrong usage": ("arguments.py", "--number", "many"),
    "exit code": ("exits.py",),
    "exception": ("raises.py",),
    "spawn": ("processes.py", "spawn"),
    "fork": ("processes.py", "fork"),
    "asyncio": ("coroutines.py",),
    "stdin": ("reads_input.py",),
    "os._exit": ("leaves_at_once.py",),
    "bytes": ("writes_bytes.py",),
    "module": ("-m", "package", "one", "--json", "f", "--output", "g"),
    "directory": ("changes_directory.py",),
    "signals": ("signals.py",),
}

EXIT_CODES = {"wrong usage": 2, "exit code": 7, "exception": 1, "os._exit": 5, "signals": -15}

INPUT = "Ada\nanother lïne\nand\tthe rest"


def ended(*words: object) -> Ended:
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=FOLDER,
        env=ENVIRONMENT,
        input=INPUT.encode(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Ended(done.stdout, done.stderr, done.returncode)


def by_the_tool(folder: Path, *words: object, page: bool = False) -> Ended:
    files = ("--html", folder / "page.html") if page else ()
    command = (*run_into(folder), *files, *words)
    done = warm.ended(*command, cwd=FOLDER, env=ENVIRONMENT, modules=warm.COMMANDS, said=INPUT)
    return Ended(*(each.encode(errors="surrogateescape") for each in (done.stdout, done.stderr)), done.returncode)


def run_into(folder: Path) -> tuple[object, ...]:
    return "-m", "overhead_lens", "run", "--output", folder / "capture", "--json-file", folder / "run.json"


def test_a_signal_that_is_ignored_in_the_background_stays_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        expected = ended(*PROGRAMS["signals"])
        assert ended(*run_into(tmp_path), *PROGRAMS["signals"]) == expected
    finally:
        signal.signal(signal.SIGINT, before)
    assert expected != ended(*PROGRAMS["signals"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_ends_as_it_does_in_python(name: str, tmp_path: Path) -> None:
    expected = ended(*PROGRAMS[name])
    assert expected.code == EXIT_CODES.get(name, 0)
    assert expected.stdout or expected.stderr
    assert by_the_tool(tmp_path, *PROGRAMS[name]) == expected
    assert json.loads((tmp_path / "run.json").read_text())["exit_code"] == expected.code


def test_a_program_with_an_error_in_its_syntax_ends_as_it_does_in_python(tmp_path: Path) -> None:
    script = tmp_path / "unfinished.py"
    script.write_text("def main(:\n", encoding="utf-8")
    expected = ended(script)
    assert b"def main(:" in expected.stderr
    assert by_the_tool(tmp_path, script) == expected


def test_a_program_that_fails_has_its_page(tmp_path: Path) -> None:
    assert by_the_tool(tmp_path, *PROGRAMS["exit code"], page=True).code == 7
    assert "exits.py" in re.search("<h1>(.*)</h1>", (tmp_path / "page.html").read_text())[1]


def test_files_that_cannot_be_written_in_the_end_are_said_and_the_exit_code_is_the_programs(tmp_path: Path) -> None:
    script = tmp_path / "takes.py"
    script.write_text(
        f"import os; os.mkdir({str(tmp_path / 'page.html')!r}); os.mkdir({str(tmp_path / 'run.json')!r}); os._exit(7)"
    )
    done = by_the_tool(tmp_path, script, page=True)
    assert done.code == 7
    assert done.stderr.decode().splitlines() == [
        f"overhead-lens: cannot write {tmp_path / 'run.json'}: File exists",
        f"overhead-lens: cannot write {tmp_path / 'page.html'}: File exists",
    ]


def test_ranks_write_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "RANK", "3")
    assert by_the_tool(tmp_path, "exits.py", page=True).code == 7
    assert {path.name for path in tmp_path.iterdir()} == {"capture", "page-rank-3.html", "run-rank-3.json"}
    assert (
        by_the_tool(tmp_path, "exits.py")
        .stderr.decode()
        .startswith(f"overhead-lens: {tmp_path / 'run-rank-3.json'} exists: ")
    )


def test_a_forked_server_lives_on(tmp_path: Path) -> None:
    expected = ended("forks_server.py", tmp_path / "in_python")
    assert (expected.stdout, expected.code) == (b"b'REQUEST'\n", 4)
    assert by_the_tool(tmp_path, "forks_server.py", tmp_path / "by_the_tool") == expected
    for name in ("in_python", "by_the_tool"):
        assert written(tmp_path / name) == "served"


def written(path: Path) -> str:
    """What a process that lives on writes in the end."""
    for _ in range(1_200):
        if path.exists() and (text := path.read_text()):
            return text
        time.sleep(0.1)
    return "nothing"
