"""Bad input gets one line that says what to do, and the right exit code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.run import TINY, error_line, lens, scenario
from tests.drawn.captures import draw_capture
from tests.recorder.effort import little_effort


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["profile", "ad1"], "no scenario 'ad1'; did you mean 'add1'? (`overhead-lens scenarios` lists them)"),
        (["profile", "gone.py"], "no file gone.py"),
        (["profile", "add1", "-p", "size"], "-p takes NAME=VALUE, not 'size'"),
        (["profile", "add1", "-p", "size=1", "-p", "size=2"], "parameter size is given twice"),
        (["profile", "add1", "--mode", "default"], "--mode needs --compile"),
        (["profile", "add1", "--device", "cpu", "-p", "device=cuda"], "--device cpu and -p device=cuda disagree"),
        (["profile", "add1", "--rules", "gone.toml"], "cannot read rules gone.toml: No such file or directory"),
        (["report", "gone"], "no capture gone"),
        (["diff", "gone", "gone"], "no capture gone"),
        (["diff", ".", "gone"], "gone does not exist"),
        (["export", "gone", "--format", "chrome"], "no capture gone"),
        (["profile"], "Missing argument 'TARGET'."),
        (["profil", "add1"], "No such command 'profil'. Did you mean 'profile'?"),
        (["profile", "add1", "--fast"], "No such option: --fast"),
        (
            ["profile", "add1", "--timeout", "0"],
            "Invalid value for '--timeout': 0.0 is not in the range 1<=x<=1000000.",
        ),
        (
            ["export", "gone", "--format", "svg"],
            "Invalid value for '-f' / '--format': 'svg' is not one of 'chrome', 'collapsed', 'perfetto', 'speedscope'.",
        ),
        (["open", "gone.pftrace"], "no trace gone.pftrace"),
    ],
)
def test_seen_before_anything_starts(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = lens(*arguments, cwd=tmp_path)
    assert (error_line(done), done.returncode) == (message, 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("answered_here")
@pytest.mark.parametrize(
    ("arguments", "start", "code"),
    [
        (["add1:add2"], "scenario add1 has no variant 'add2'; did you mean 'add1'?", 2),
        (["add1", "-p", "sizee=3"], "scenario add1 has no parameter 'sizee'; did you mean 'size'?", 2),
        (["add1", "-p", "size=ten"], "parameter size must be of type int, not 'ten'", 2),
        (["add1", "-p", "dtype=int8"], "parameter dtype must be one of float32", 2),
        (["add1", "--device", "cuda"], "no cuda device can be used here", 3),
    ],
)
def test_seen_by_the_worker(tmp_path: Path, arguments: list[str], start: str, code: int) -> None:
    if "cuda" in arguments and shutil.which("nvidia-smi"):
        pytest.skip("this machine may have a GPU")
    done = lens("profile", *arguments, cwd=tmp_path)
    assert error_line(done).startswith(start)
    assert done.returncode == code
    # A machine that cannot measure leaves its logs; an input that is refused leaves nothing.
    assert (list(tmp_path.iterdir()) == []) == (code == 2)


@pytest.mark.usefixtures("answered_here")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "tiny.py defines no SCENARIO = Scenario(...): name one of its functions, "),
        ("x = 1\ndef f(:\n", "tiny.py:2: syntax error: "),
        ("import math\nx = 1 / 0\n", "tiny.py:2: ZeroDivisionError: division by zero"),
        (
            TINY.replace("BODY", "return 7"),
            "tiny:total gives a wrong result: ValueError: expected a triangle number, got 7; nothing was timed",
        ),
        (TINY.replace("BODY", "raise RuntimeError('no\\nway')"), "tiny:total failed: RuntimeError: no"),
    ],
)
def test_a_users_file_with_a_fault(tmp_path: Path, text: str, message: str) -> None:
    done = lens("profile", scenario(tmp_path, text=text), "-o", tmp_path / "out", cwd=tmp_path)
    assert message in error_line(done)
    assert done.returncode == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.measures
def test_no_compiler_for_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    monkeypatch.delenv("CXX", raising=False)
    env = {"PATH": str(bare), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    with little_effort(processes=1):
        done = lens("profile", "add1", "--compile", "-o", tmp_path / "out", cwd=tmp_path, env=env)
    assert error_line(done) == (
        "torch.compile found no working C++ compiler; install g++ or clang++ (or set CXX), or leave --compile out"
    )
    assert done.returncode == 3


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    done = lens("profile", "add1", "-o", "out", cwd=tmp_path)
    assert error_line(done) == "out is not empty; nothing is overwritten, name another --output"
    assert done.returncode == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_an_output_place_that_refuses(tmp_path: Path) -> None:
    done = lens("profile", "add1", "-o", "/proc/overhead-lens/out", cwd=tmp_path)
    assert error_line(done).startswith("cannot write to /proc/overhead-lens/out: ")
    assert done.returncode == 3
    (tmp_path / "traces").write_text("a file")
    done = lens("profile", "add1", cwd=tmp_path)
    assert error_line(done).endswith("choose another place with --output")
    assert done.returncode == 3


@pytest.mark.measures
def test_a_full_disk(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mounted = hasattr(os, "geteuid") and os.geteuid() == 0
    mounted = (
        mounted
        and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=False, capture_output=True
        ).returncode
        == 0
    )
    if not mounted:
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        (place / "filler").write_bytes(bytes(48 << 10))
        with little_effort(processes=1, sampled=False):
            done = lens("profile", scenario(tmp_path), "--quick", "-o", place / "out", cwd=tmp_path)
        line = error_line(done)
        assert "No space left on device" in line
        assert done.returncode == 3
        assert not (place / "out" / "meta.json").exists()
    finally:
        subprocess.run(["umount", place], check=True)


def test_captures_that_cannot_be_compared(tmp_path: Path) -> None:
    base, new = draw_capture(tmp_path / "a"), draw_capture(tmp_path / "b", params={"size": 2})
    done = lens("diff", base, new, cwd=tmp_path)
    assert (
        error_line(done)
        == "the captures differ in params: {'size': 10} against {'size': 2}: use --allow-mismatch to compare them anyway"
    )
    assert done.returncode == 2
    forced = lens("diff", base, new, "--allow-mismatch", "--json", cwd=tmp_path)
    assert forced.returncode == 0, forced.stderr
    assert json.loads(forced.stdout)["verdict"] == "same"


def test_a_damaged_capture_is_named_by_every_command(tmp_path: Path) -> None:
    path = draw_capture(tmp_path / "c")
    (path / "clock.parquet").write_text("not parquet")
    for arguments in (["report", path], ["diff", path, path], ["export", path, "--format", "chrome"], ["open", path]):
        done = lens(*arguments, cwd=tmp_path)
        assert error_line(done).startswith(f"the capture {path} is damaged: ")
        assert done.returncode == 2
    (path / "meta.json").write_text('{"schema": "overhead-lens/capture/9"}')
    done = lens("report", path, cwd=tmp_path)
    assert error_line(done) == (
        f"the capture {path} has schema 'overhead-lens/capture/9'; this version reads 'overhead-lens/capture/2'"
    )
    assert done.returncode == 2
