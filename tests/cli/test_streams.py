"""Standard streams that are closed, full, gone or of few letters; names that hold control characters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from overhead_lens.report.text.plain import plain
from tests.cli.run import error_line, lens, lens_apart
from tests.drawn.captures import draw_capture

LENS = f"{sys.executable} -m overhead_lens"


def shell(text: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", text], cwd=cwd, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize("arguments", ["--version", "--help", "report c", "report c --json"])
def test_a_reader_that_is_gone(tmp_path: Path, arguments: str) -> None:
    draw_capture(tmp_path / "c")
    # The sleep makes sure that nobody reads when the line is written.
    done = shell(f"(sleep 0.1; {LENS} {arguments}; echo $? >&2) | true", tmp_path)
    assert done.stderr == "141\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", ["--version", "report c", "report c --json"])
def test_an_output_that_is_full(tmp_path: Path, arguments: str) -> None:
    draw_capture(tmp_path / "c")
    done = shell(f"{LENS} {arguments} > /dev/full", tmp_path)
    assert done.stderr == "overhead-lens: cannot write the output: No space left on device\n"
    assert done.returncode == 3


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
        "program.app = app\n"
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
