"""The programs do what they say, and what a run says of them is judged by what was built in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from scripts.validation import run_cost
from scripts.validation.programs import FOLDER, row_of
from tests.programs.expected import PROGRAMS, Expected, complaints
from tests.worker.warm import ended

EXPECTED = Expected(
    program="drawn",
    arguments=("--slow",),
    flaw="it waits",
    found_by=("optimizer",),
    largest=("wait",),
    at_least={"wait/data": 0.4},
    at_most={"kernel": 0.2},
    frame="_try_get_data",
    slowest="garbage",
)

# The flaw, and what computes the same without it.
REMEDIES = (
    ("mlp_adamw", ("--no-foreach",), ("--foreach",)),
    ("starved_loader", ("--workers", "1"), ("--workers", "0")),
    ("per_node", (), ("--vmap",)),
    ("items", (), ("--at-once",)),
    ("collected", (), ("--no-gc",)),
    ("page_faults", (), ("--reuse",)),
    ("threads", (), ("--threads", "1")),
    ("gil", (), ("--no-beside",)),
)
OTHERS = (("transformer", ()), ("rollouts", ()), ("adjoint", ()), ("decode", ()), ("matmul", ()))

# Runs programs one after the other in one process; prints what each printed.
RUNNER = """
import contextlib, io, json, runpy, sys
printed = []
for path, *arguments in json.loads(sys.argv[1]):
    sys.argv = [path, *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as text:
        runpy.run_path(path, run_name="__main__")
    printed.append(text.getvalue())
print(json.dumps(printed))
"""


def document(
    *,
    found_by: str = "optimizer",
    frame: str = "_try_get_data (dataloader.py)",
    because: str = "garbage collection",
    **ns: float,
) -> dict[str, Any]:
    """A run whose step takes 1,000 ns: in Python what no category of ``ns`` takes, waiting for data only."""
    given = {"wait": 600.0, "kernel": 100.0} | ns
    given["python"] = 1000 - sum(value for name, value in given.items() if name != "python")
    host = [
        {
            "category": name,
            "ns": given.get(name, 0.0),
            "parts": [{"name": "data", "ns": given["wait"]}] if name == "wait" else [],
            "top": [{"frame": frame, "ns": 1.0}] if name == "wait" else [],
        }
        for name in HOST_CATEGORIES
    ]
    slowest = [
        {"step": 3, "wall_ns": 2000, "because": "page faults"},
        {"step": 9, "wall_ns": 9000, "because": because},
    ]
    return {
        "schema": "overhead-lens/run/1",
        "steps": {"found_by": found_by, "count": 100},
        "wall": {"ns": 1000.0, "ci95_ns": [990.0, 1010.0]},
        "host": host,
        "slowest": slowest,
    }


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ({}, []),
        ({"found_by": "loop"}, ["steps found by loop, not optimizer"]),
        ({"wait": 450.0, "kernel": 0.0}, ["largest is python, not wait"]),
        ({"wait": 390.0, "kernel": 200.0, "guard": 25.0}, ["wait/data is 39%, less than 40%"]),
        ({"kernel": 201.0}, ["kernel is 20%, more than 20%"]),
        ({"frame": "sleep (time.py)"}, ["no function like _try_get_data is listed"]),
        ({"because": "a recompile"}, ["the slowest step is slow because of a recompile, not garbage"]),
        ({"unattributed": 20.0}, []),
        ({"unattributed": 21.0}, ["2.1% unattributed, more than 2%"]),
    ],
)
def test_a_run_that_says_otherwise_is_wrong(said: dict[str, Any], wrong: list[str]) -> None:
    assert complaints(EXPECTED, document(**said)) == wrong


def test_a_program_is_a_row() -> None:
    said = ["drawn --slow", "it waits", "optimizer", 1000.0, "wait", 0.6, "wait/data", 0.6, 0.0, "garbage collection"]
    assert row_of(EXPECTED, document()) == [*said, "right"]
    assert row_of(EXPECTED, document(found_by="loop") | {"slowest": []})[-2:] == [
        None,
        "steps found by loop, not optimizer; the slowest step is slow because of nothing, not garbage",
    ]


def test_what_is_expected_is_of_programs_and_categories_that_exist() -> None:
    assert {each.program for each in PROGRAMS} == {
        path.stem for path in FOLDER.glob("*.py") if path.stem not in {"__init__", "expected"}
    }
    assert len({each.name for each in PROGRAMS}) == len(PROGRAMS)
    named = {name.partition("/")[0] for each in PROGRAMS for name in (*each.largest, *each.at_least, *each.at_most)}
    assert named <= set(HOST_CATEGORIES)


@pytest.mark.measures
def test_a_program_computes_the_same_without_its_flaw(tmp_path: Path) -> None:
    sides = [(name, side) for name, *both in REMEDIES for side in both]
    words = [[str(FOLDER / f"{name}.py"), "--steps", "4", *arguments] for name, arguments in (*sides, *OTHERS)]
    done = ended("-c", RUNNER, json.dumps(words), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert all(text.count("\n") == 1 for text in printed), printed
    flawed, mended = printed[: len(sides) : 2], printed[1 : len(sides) : 2]
    assert flawed == mended


def test_what_a_run_costs_is_held_against_its_goals() -> None:
    assert run_cost.notes_of([(0.01, 100.0, 124.0), (0.03, 100.0, 126.0)]) == [
        "Steps inside differ by +2.00% (standard error 1.00%), within the goal of 2%.",
        "The whole run takes 25.0 s more, 25%, within the goal of 25.0 s.",
    ]
    assert run_cost.notes_of([(-0.03, 10.0, 25.1)]) == [
        "Steps inside differ by -3.00% (standard error nan%), not within the goal of 2%.",
        "The whole run takes 15.1 s more, 151%, not within the goal of 15.0 s.",
    ]
