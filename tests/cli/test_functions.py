"""A plain function as a target: measured as a scenario is, and refused in one line where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.run import error_line, lens, scenario
from tests.recorder.effort import little_effort

FILE = """
def total(values):
    return sum(values)
def other(values):
    count = 0
    for value in values:
        count += value
    return count
def make():
    return (list(range(50)),)
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["profile", "gone.py:f"], "no file gone.py"),
        (["profile", "json.decoder"], "json.decoder is a module: name a function of it, json.decoder:f"),
        (["profile", "add1", "--inputs", "make"], "add1 is built in and makes its own inputs: leave --inputs out"),
        (["profile", "mine.py:total", "--inputs", "gone.py:make"], "no file gone.py"),
        (["compare", "mine.py:total --inputs gone.py:make", "mine.py:total"], "no file gone.py"),
        (
            ["compare", "json:dumps", "add1", "--rev", "base=HEAD"],
            "--rev is for a .py file of your own, not for json:dumps",
        ),
        (
            ["sweep", "json:dumps", "-p", "n=1,2"],
            "json:dumps is a plain function, which has no size to sweep: write a scenario for it",
        ),
    ],
)
def test_seen_before_anything_starts(mine: Path, arguments: list[str], message: str) -> None:
    done = lens(*arguments, cwd=mine)
    assert (error_line(done), done.returncode) == (message, 2)
    assert [path.name for path in mine.iterdir()] == ["mine.py"]


@pytest.mark.usefixtures("answered_here")
@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (
            ["profile", "mine.py:total"],
            "mine.py:total takes arguments (values): name a function that returns them in a tuple",
        ),
        (
            ["ladder", "mine.py:total", "--inputs", "total"],
            "mine.py:total failed: TypeError: total() missing 1 required positional argument: 'values'",
        ),
        (["profile", "no_such.module_anywhere:f"], "no module 'no_such.module_anywhere', neither in "),
        (
            ["profile", "mine.py:total", "--inputs", "make", "--device", "cuda"],
            "a function has no parameters: leave -p and",
        ),
        (
            ["sweep", "mine.py:total", "-p", "n=1,2"],
            "mine.py defines no SCENARIO = Scenario(...)",
        ),
    ],
)
def test_seen_by_the_worker(mine: Path, arguments: list[str], start: str) -> None:
    done = lens(*arguments, cwd=mine)
    assert error_line(done).removeprefix(f"{mine}/").startswith(start)
    assert done.returncode == 2
    assert sorted(path.name for path in mine.iterdir() if path.name != "__pycache__") == ["mine.py"]


@pytest.mark.measures
def test_a_profile_a_report_and_a_check_against_it(mine: Path) -> None:
    with little_effort(processes=2, sampled=False):
        done = lens("profile", "mine.py:total", "--inputs", "make", "--quick", "-o", "out", "--json", cwd=mine)
        checked = lens("check", "out", "--max", "total=100ms", "--json", cwd=mine)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert sum(each["ns"] for each in document["host"]) == document["wall"]["ns"]
    meta = json.loads((mine / "out" / "meta.json").read_text())
    assert (meta["target"], meta["inputs"]) == ("mine.py:total", "mine.py:make")
    assert meta["subject"] == {
        "kind": "function",
        "name": "mine",
        "variant": "total",
        "params": {},
        "compile": False,
        "device": "cpu",
    }
    assert json.loads(lens("report", "out", "--json", cwd=mine).stdout)["host"] == document["host"]
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["new"]["subject"]["variant"] == "total"


@pytest.mark.measures
def test_two_functions_compared(mine: Path) -> None:
    with little_effort(processes=3, sampled=False):
        done = lens("compare", "mine.py:total", "mine.py:other", "--inputs", "make", "-o", "pair", "--json", cwd=mine)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["verdict"] == "slower"
    assert (mine / "pair" / "base" / "meta.json").exists()


@pytest.mark.usefixtures("answered_here")
def test_a_scenario_file_still_names_variants(tmp_path: Path) -> None:
    done = lens("profile", f"{scenario(tmp_path)}:totl", cwd=tmp_path)
    assert error_line(done) == "scenario tiny has no variant 'totl'; did you mean 'total'?"
