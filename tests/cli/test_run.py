"""``run`` refuses what it cannot run, in one line and before anything starts."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import error_line, lens
from tests.cli.test_streams import without_reader
from tests.worker.warm import COMMANDS, fork

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="run is for Linux and macOS")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "name a script, or a module with -m"),
        (("-m",), "name a script, or a module with -m"),
        (("gone.py",), "no script gone.py"),
        (("gone.py", "--json", "made.json"), "no script gone.py"),
        (
            ("--bogus", "train.py"),
            "unknown option --bogus; options for your program go after its name",
        ),
        (("--step", "nonsense", "train.py"), "--step nonsense: write FILE:LINE or MODULE:FUNCTION"),
        (("--step", ":7", "train.py"), "--step :7: write FILE:LINE or MODULE:FUNCTION"),
        (("--step", "train.py:", "train.py"), "--step train.py:: write FILE:LINE or MODULE:FUNCTION"),
        (
            ("--json-file", "there.json", "train.py"),
            "there.json exists: name another --json-file, or overwrite it with --force",
        ),
        (("--rules", "gone.toml", "train.py"), "cannot read rules gone.toml: No such file or directory"),
    ],
)
def test_bad_input(tmp_path: Path, arguments: tuple[str, ...], line: str) -> None:
    (tmp_path / "train.py").write_text("open('started', 'w')")
    (tmp_path / "there.json").write_text("{}")
    done = lens("run", *arguments, cwd=tmp_path)
    assert (error_line(done), done.returncode) == (line, 2)
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "there.json"}
    assert (tmp_path / "there.json").read_text() == "{}"


def test_an_output_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("open('started', 'w')")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("kept")
    done = lens("run", "--output", "kept", "train.py", cwd=tmp_path)
    assert (error_line(done), done.returncode) == (
        "kept is not empty; nothing is overwritten, name another --output",
        2,
    )
    assert not (tmp_path / "started").exists()


@pytest.mark.measures
@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize("reader", [lambda: open("/dev/full", "wb"), without_reader], ids=["full", "gone"])
def test_the_exit_code_is_the_programs_whatever_becomes_of_the_report(tmp_path: Path, reader: Any) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit(7)")
    words = ("-m", "overhead_lens", "run", "--json-file", "run.json", "train.py")
    with open(os.devnull, "r+b") as nothing, reader() as stderr:
        assert fork(words, [nothing, nothing, stderr], tmp_path, modules=COMMANDS).wait(240) == 7
    assert json.loads((tmp_path / "run.json").read_text())["exit_code"] == 7


@pytest.mark.measures
def test_an_analysis_that_fails_is_a_line_and_the_exit_code_is_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("a")

    (tmp_path / "train.py").write_text("raise SystemExit(7)")
    monkeypatch.setattr("overhead_lens.studies.run.analysis.run_budget_of", fail)
    done = lens("run", "train.py", cwd=tmp_path)
    assert (error_line(done), done.returncode) == ("internal error (please report): KeyError: 'a'", 7)
    monkeypatch.undo()
    monkeypatch.setattr("overhead_lens.terminal.output.print_result", fail)
    done = lens("run", "--output", "kept", "--json-file", "run.json", "train.py", cwd=tmp_path)
    assert (error_line(done), done.returncode) == ("internal error (please report): KeyError: 'a'", 7)
    assert json.loads((tmp_path / "run.json").read_text())["exit_code"] == 7


@pytest.mark.measures
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "cannot write to kept: No space left on device; choose another place with --output",
        ),
        (KeyError("a"), "internal error (please report): KeyError: 'a'"),
    ],
)
def test_a_directory_that_cannot_be_written_is_a_line_and_the_exit_code_is_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    (tmp_path / "train.py").write_text("raise SystemExit(7)")
    monkeypatch.setattr("overhead_lens.studies.run.record.write_meta", fail)
    done = lens("run", "--output", "kept", "train.py", cwd=tmp_path)
    assert (error_line(done), done.returncode) == (line, 7)


@pytest.mark.measures
def test_a_rank_that_is_started_again_records_beside_its_first_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("open('started', 'a').write('x')")
    codes = [
        lens("run", "-q", "train.py", cwd=tmp_path, env={"RANK": rank}).returncode for rank in ("0", "0", "1", "0")
    ]
    assert (codes, (tmp_path / "started").read_text()) == ([0, 0, 0, 0], "xxxx")
    job = f"run-train-{os.getppid()}"
    found = sorted(str(path.parent.relative_to(tmp_path / "traces")) for path in tmp_path.rglob("meta.json"))
    assert found == [f"{job}-2/rank-0", f"{job}-3/rank-0", f"{job}/rank-0", f"{job}/rank-1"]
