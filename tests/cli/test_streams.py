"""Standard streams that are closed, full, gone or of few letters; names that hold control characters."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from overhead_lens.report.text.plain import plain
from tests.cli.run import error_line, lens, lens_apart
from tests.drawn.captures import draw_capture
from tests.worker.warm import COMMANDS, fork

LENS = f"{sys.executable} -m overhead_lens"


def shell(text: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", text], cwd=cwd, capture_output=True, text=True, timeout=240, check=False)


@contextlib.contextmanager
def without_reader() -> Iterator[IO[bytes]]:
    """A pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as pipe:
        yield pipe


def written(arguments: str, stdout: IO[bytes], cwd: Path) -> tuple[int, str]:
    """Exit code and stderr of a command that writes to ``stdout``."""
    with open(os.devnull, "rb") as nothing, tempfile.TemporaryFile() as stderr:
        words = ("-m", "overhead_lens", *arguments.split())
        code = fork(words, [nothing, stdout, stderr], cwd, modules=COMMANDS).wait(240)
        stderr.seek(0)
        return code, stderr.read().decode()


@pytest.mark.parametrize("arguments", ["--version", "--help", "report c", "report c --json"])
def test_a_reader_that_is_gone(tmp_path: Path, arguments: str) -> None:
    draw_capture(tmp_path / "c")
    with without_reader() as gone:
        assert written(arguments, gone, tmp_path) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", ["--version", "report c", "report c --json"])
def test_an_output_that_is_full(tmp_path: Path, arguments: str) -> None:
    draw_capture(tmp_path / "c")
    with open("/dev/full", "wb") as full:
        line = "overhead-lens: cannot write the output: No space left on device\n"
        assert written(arguments, full, tmp_path) == (3, line)


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_not_mistaken_for_files(tmp_path: Path, closed: str) -> None:
    draw_capture(tmp_path / "c")
    before = {path.name: path.read_bytes() for path in (tmp_path / "c").iterdir()}
    assert shell(f"{LENS} report c --json {closed}", tmp_path).returncode == 0
    assert shell(f"{LENS} report {closed}", tmp_path).returncode == 2
    assert {path.name: path.read_bytes() for path in (tmp_path / "c").iterdir()} == before


def test_an_output_of_few_letters(tmp_path: Path) -> None:
    draw_capture(tmp_path / "c")
    done = lens_apart("report", "c", cwd=tmp_path, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("drawn, eager, cpu   1.00 ?s per call")


def test_controls_in_a_name_stay_text(tmp_path: Path) -> None:
    name = "a\x1b[31m\n\u202eb.py"
    done = lens("profile", f"./{name}", cwd=tmp_path)
    assert error_line(done) == "no file ./a\\x1b[31m \\u202eb.py"
    assert done.returncode == 2
    hostile = draw_capture(tmp_path / "c", scenario="x\x1b]0;title\x07", params={"a\nb": "\x1b[2J"})
    text = lens("report", hostile, cwd=tmp_path).stdout
    assert "\x1b" not in text
    assert "x\\x1b]0;title\\x07:drawn, eager, cpu" in text
    assert "a\\nb=\\x1b[2J" in text


def test_plain() -> None:
    assert plain("aten::add µ █ 日本") == "aten::add µ █ 日本"
    assert plain("\x1b\n\t\u202e\udcff") == "\\x1b\\n\\t\\u202e\\udcff"


def test_a_defect_is_not_a_regression(tmp_path: Path) -> None:
    code = (
        "import overhead_lens.__main__ as program\n"
        "def app(**_): raise KeyError('x\\ny')\n"
        "program.application = lambda *_: app\n"
        "program.main()"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert error_line(done) == (
        "internal error (please report): KeyError: 'x\\ny' (run again with OVERHEAD_LENS_TRACEBACK=1 for a traceback)"
    )
    assert done.returncode == 3
    shown = shell(f"OVERHEAD_LENS_TRACEBACK=1 {sys.executable} -c '{code.replace(chr(39), chr(34))}'", tmp_path)
    assert "Traceback" in shown.stderr
