"""The gate: profile again, compare, exit 1 on a regression; a baseline is replaced and never lost."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from overhead_lens.machine.environment import describe_machine
from tests.cli.run import error_line, lens, scenario
from tests.documents import validated
from tests.drawn.captures import draw_capture
from tests.recorder.effort import little_effort

needs_recorder = pytest.mark.skipif(sys.platform == "win32", reason="the recorder measures on Linux and macOS only")

SLOW = "sorted(values * 20)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``tiny.py`` and its quick capture ``base``."""
    path = tmp_path_factory.mktemp("gate")
    # A check takes the effort of its baseline: of five processes one may be disturbed.
    with little_effort(processes=5, sampled=False):
        done = lens("profile", scenario(path).name, "--quick", "-q", "-o", "base", cwd=path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.measures
@needs_recorder
def test_the_same_code_keeps_its_limits(folder: Path) -> None:
    scenario(folder)
    arguments = [
        "--max",
        "total=100%",
        "--max",
        "python=50ms",
        "--markdown",
        "same.md",
        "--junit",
        "same.xml",
        "--json",
    ]
    with little_effort(processes=5, sampled=False):
        done = lens("check", "base", *arguments, "-q", "-o", "same", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    document = validated(done.stdout)
    assert document["schema"] == "overhead-lens/delta/3"
    assert [(limit["name"], limit["state"]) for limit in document["limits"]] == [("total", "kept"), ("python", "kept")]
    assert document["regressed"] is False
    assert (folder / "same.md").read_text(encoding="utf-8").startswith("### No regression: tiny:total\n")
    assert ET.parse(folder / "same.xml").getroot().get("failures") == "0"
    assert (folder / "same" / "meta.json").exists()


@pytest.mark.measures
@needs_recorder
def test_slower_code_breaks_them(folder: Path) -> None:
    scenario(folder, SLOW)
    with little_effort(processes=5, sampled=False):
        done = lens("check", "base", "--max", "total=100%", "--junit", "slow.xml", "-q", "-o", "slow", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.startswith("Regression: tiny:total   ")
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("total ")]
    assert row.endswith("  broken")
    assert ET.parse(folder / "slow.xml").getroot().get("failures") == "1"


@pytest.mark.measures
@needs_recorder
def test_an_updated_baseline_keeps_the_old_one(folder: Path) -> None:
    scenario(folder, SLOW)
    before = (folder / "base" / "clock.parquet").read_bytes()
    with little_effort(processes=5, sampled=False):
        done = lens("baseline", "update", "base", "-q", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"base is new; the old one is {folder / 'base.1'}\n"
    assert (folder / "base.1" / "clock.parquet").read_bytes() == before
    assert (folder / "base" / "clock.parquet").read_bytes() != before
    assert not (folder / "base.new").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "gone"], "no capture gone"),
        (["baseline", "update", "gone"], "no capture gone"),
        (
            ["check", "base", "--max", "guards=3%"],
            "--max takes NAME=NUMBER and %, ns, us or ms (total=3%, guard=100ns), not",
        ),
        (
            ["check", "base", "--junit", "there.xml"],
            "there.xml exists: name another --junit, or overwrite it with --force",
        ),
        (["check", "base"], "no scenario 'drawn'"),
        (["check", "base", "gone.py"], "no file gone.py"),
        (["baseline", "update", "base", "gone.py"], "no file gone.py"),
    ],
)
def test_bad_input_changes_nothing(tmp_path: Path, arguments: list[str], message: str) -> None:
    draw_capture(tmp_path / "base")
    (tmp_path / "there.xml").write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = lens(*arguments, cwd=tmp_path)
    assert error_line(done).startswith(message)
    assert done.returncode == 2
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_baseline_of_another_machine_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "call.py").write_text("def call() -> None: ...\n")
    draw_capture(tmp_path / "base", environment={**describe_machine(), "host": "elsewhere"})
    done = lens("check", "base", "call.py", cwd=tmp_path)
    assert error_line(done) == (
        f"the baseline differs in host: 'elsewhere' against {platform.node()!r}: update it, or compare anyway with --allow-mismatch"
    )
    assert (done.returncode, list(tmp_path.glob("traces/*"))) == (2, [])


def test_the_second_capture_of_the_working_directory_goes_beside_it(tmp_path: Path) -> None:
    for name in ("run", "run.2"):
        (tmp_path / name).mkdir()
    done = lens("check", "base", "-o", ".", cwd=tmp_path / "run")
    assert done.returncode == 2
    assert error_line(done) == f"{tmp_path / 'run.2'} exists, where a second capture would go: name another --output"


def test_a_gate_in_instructions_needs_a_baseline_that_has_them(tmp_path: Path) -> None:
    draw_capture(tmp_path / "base")
    done = lens("check", "base", "--instructions", cwd=tmp_path)
    assert done.returncode == 2
    assert error_line(done) == ("the baseline has no instruction counts; record it with profile --instructions")


def test_a_gate_that_times_nothing_takes_no_limit_in_time(tmp_path: Path) -> None:
    draw_capture(tmp_path / "base")
    done = lens("check", "base", "--instructions", "--max", "total=3%", "--max", "instructions=1%", cwd=tmp_path)
    assert done.returncode == 2
    assert error_line(done) == "--instructions measures no times: use --max total without it"
