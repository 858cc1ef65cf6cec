"""What the scripts make of other people's programs, and of one step that is measured in two ways, by drawn figures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from scripts.results import ROOT
from scripts.validation import agrees
from scripts.validation.wild.__main__ import CLAIM, TRUTHS, complaints, kernel_shares, notes_of, run_row, truth_row
from scripts.validation.wild.clocked import Clock
from scripts.validation.wild.listed import ALL, PROGRAMS, Program
from scripts.validation.wild.measuring import WAYS, requirements
from scripts.validation.wild.truth import KERNEL_NS, Bounds, Reading, bounds, least, share
from tests.worker.warm import WORKERS, ended

PROGRAM = Program(file="drawn", steps=9, smallest=("--width", "1"))
ENDED = {"exit_codes": (0, 0), "same_output": True}


def reading(step_ns: float, around_ns: float = 0, operators_ns: float = 0, kernels: float = 0) -> dict[str, float]:
    return {"step_ns": step_ns, "around_ns": around_ns, "operators_ns": operators_ns, "kernels": kernels}


def rounds(*steps_ns: float) -> list[dict[str, dict[str, float]]]:
    """Rounds with such a step as usual; kernels take 40,000 ns by walls, 30,000 by clocks, 20,000 by the trace."""
    others = {
        "one_thread": reading(110_000),
        "no_gc": reading(99_000),
        "kept": reading(95_000, 31_000, 23_000, 12),
        "smallest": reading(55_000, 1_000, 3_000, 10),
    }
    return [{"usual": reading(step_ns, 33_000, 24_000, 12), **others} for step_ns in steps_ns]


def document(*, wall_ns: float = 100_000, found_by: str = "optimizer", **ns: float) -> dict[str, Any]:
    """A run whose step is Python's where no category is given; ``parallel`` is a part of ``wait``."""
    parallel_ns = ns.pop("parallel", 0.0)
    given = {"wait": parallel_ns} | ns
    given["python"] = wall_ns - sum(given.values())
    host = [
        {
            "category": name,
            "ns": given.get(name, 0.0),
            "share": given.get(name, 0.0) / wall_ns,
            "ci95_ns": [given.get(name, 0.0) - 1_000, given.get(name, 0.0) + 1_000],
            "parts": [{"name": "parallel", "ns": parallel_ns}] if name == "wait" else [],
        }
        for name in HOST_CATEGORIES
    ]
    wall = {"ns": wall_ns, "ci95_ns": [wall_ns - 500, wall_ns + 500]}
    return {"steps": {"found_by": found_by}, "wall": wall, "host": host, "warnings": []}


def test_the_least_of_each_reading_counts() -> None:
    readings = least(rounds(1_000_000, 100_000, 300_000))
    assert readings["usual"] == Reading(100_000, 33_000, 24_000, 12)
    assert readings["kept"] == Reading(95_000, 31_000, 23_000, 12)
    assert set(WAYS) == set(readings)


def test_the_truth_is_a_difference_of_sizes() -> None:
    readings = least(rounds(100_000))
    assert [share(readings, by) for by in ("walls", "operators", "trace")] == [0.4, 0.3, 0.2]
    fixed = 10 * KERNEL_NS / 100_000
    assert bounds(readings, ("operators",)) == Bounds(0.3, 0.3 + fixed)
    assert bounds(readings, ("walls", "trace")) == Bounds(0.2, 0.4 + fixed)


def test_the_truth_is_at_least_nothing_and_at_most_the_step() -> None:
    (drawn,) = rounds(100_000)
    drawn["smallest"] = reading(55_000, kernels=1_000)
    assert bounds(least([drawn]), ("walls",)) == Bounds(0.4, 1)
    drawn["smallest"] = reading(98_000)
    assert bounds(least([drawn]), ("walls",)) == Bounds(0, 0)


def test_the_shorter_of_fresh_and_kept_pages_counts() -> None:
    assert share(least(rounds(80_000)), "walls") == 25_000 / 80_000


def test_what_holds_for_a_program() -> None:
    assert PROGRAM.truth == ("walls", "trace")
    assert replace(PROGRAM, waits=True).truth == ("trace",)
    assert replace(PROGRAM, operators=("torch:add",), waits=True).truth == ("operators",)


def test_how_far_a_share_lies_outside() -> None:
    true = Bounds(0.25, 0.5)
    assert [true.off(each) for each in (0.125, 0.25, 0.375, 0.5, 0.75)] == [-0.125, 0, 0, 0, 0.25]


@pytest.mark.parametrize(
    ("said", "ended", "wrong"),
    [
        ({"kernel": 30_000, "parallel": 10_000}, {}, []),
        ({"kernel": 47_200}, {}, []),
        ({"kernel": 50_000}, {}, ["8 points above the truth"]),
        ({"kernel": 10_000}, {}, ["10 points below the truth"]),
        ({"kernel": 15_100}, {}, []),
        ({"kernel": 40_000, "unattributed": 2_100}, {}, ["2.1% unattributed"]),
        ({"found_by": "none", "unattributed": 100_000}, {}, ["no steps", "100.0% unattributed"]),
        ({"kernel": 40_000}, {"exit_codes": (0, 3)}, ["exit code 3, by itself 0"]),
        ({"kernel": 40_000}, {"same_output": False}, ["another output"]),
    ],
)
def test_a_run_is_held_against_the_truth(said: dict[str, Any], ended: dict[str, Any], wrong: list[str]) -> None:
    run = {"documents": [document(**said)], "ended": ENDED | ended}
    assert list(complaints(PROGRAM, run, Bounds(0.2, 0.423))) == wrong


def test_a_program_is_a_row_of_both_tables() -> None:
    said = document(kernel=30_000, parallel=10_000) | {"sampling": {"stacks": 800, "step_ratio": 1.02}}
    run = {"documents": [said], "ended": ENDED, "bare_ns": 99_000.4}
    truth = {"rounds": rounds(100_000)}
    row = run_row(PROGRAM, run, truth)
    assert row[:8] == ["drawn", "optimizer", 100_000, 99_000, 0.3, 0.1, 0.2, 0.423]
    assert row[8:] == [0.6, 0, 0, 0, 800, 1.02, True, "right"]
    assert run_row(replace(PROGRAM, steps_of_run=17), run, truth)[2] == 1_700_000
    profile = document(kernel=50_000, parallel=10_000, wall_ns=200_000)
    assert truth_row(PROGRAM, truth, profile) == [
        *("drawn", 100_000, 110_000, 99_000, 95_000, 55_000, 10, "walls and trace", 0.2, 0.423),
        *(0.4, None, 0.2, 0.3),
    ]
    assert notes_of([row, [*row[:2], 120_000, 100_000, *row[4:-1], "no steps"]]) == [
        "1 of 2 are right.",
        "A step takes +1% to +20% longer, in the median +10.5%.",
    ]


def test_what_failed_says_why() -> None:
    failed = {"failed": "ended with 1: no module"}
    assert run_row(PROGRAM, failed, {"rounds": rounds(1)})[-1] == "ended with 1: no module"
    assert len(run_row(PROGRAM, failed, failed)) == len(CLAIM.columns)
    assert "ended with 1: no module" in truth_row(PROGRAM, failed, failed)
    assert len(truth_row(PROGRAM, failed, failed)) == len(TRUTHS.columns)
    assert run_row(PROGRAM, {"documents": [document()], "ended": ENDED, "bare_ns": 1.0}, failed)[-1] == "no truth"


def test_without_the_part_nothing_waits_for_threads() -> None:
    assert kernel_shares(document(kernel=1_000, wait=500)) == (0.01, 0)


def test_every_program_is_there_and_listed() -> None:
    assert {each.path for each in ALL} == set(PROGRAMS.glob("[!_]*.py"))
    assert len({each.name for each in ALL}) == len(ALL)
    for each in ALL:
        text = each.path.read_text(encoding="utf-8")
        assert all(f"{option[2:]}=" in text for option in (*each.arguments, *each.smallest) if option.startswith("--"))
        assert each.function is None or f"def {each.function}(" in text
        assert "set_num_threads" not in text


def test_torch_is_as_the_constraints_say() -> None:
    torch, *others = requirements()
    assert torch in (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    assert torch.startswith("torch==")
    assert not [each for each in others if "=" in each or "/" in each]


def test_a_clock_reads_steps_between_marks() -> None:
    clock = Clock(steps=9, ended=lambda _: None)
    # Three steps of warm-up, then six of 100 ns, in which 40 ns are clocked by themselves.
    clock.marks.extend([0, 1_000, 2_000, 3_000, *range(3_100, 3_601, 100)])
    clock.around.extend([0, 900, 1_800, 2_700, *range(2_740, 2_941, 40)])
    assert clock._clocked() == {"step_ns": 100, "around_ns": 40}


@pytest.mark.measures
def test_a_program_is_clocked_and_ended(tmp_path: Path) -> None:
    times = tmp_path / "times.json"
    script = PROGRAMS.parent / "clocked.py"
    words = ["--times", times, "--mark", "program:step", "--steps", 60, "--around", "torch:add", "--no-gc", "--"]
    words += [PROGRAMS / "additions.py", "--elements", "100"]
    # torch.profiler imports the compiler.
    done = ended(script, *words, cwd=tmp_path, modules=WORKERS)
    assert done.returncode == 0, done.stderr
    said = json.loads(times.read_text())
    assert 0 < said["around_ns"] < said["step_ns"]
    assert 0 < said["operators_ns"]
    assert said["kernels"] == 1
    assert "numbers" not in done.stdout


def told(said: dict[str, Any]) -> dict[str, Any]:
    return {"wall_ns": said["wall"]["ns"], "host": said["host"]}


def test_two_ways_agree_where_intervals_meet() -> None:
    mine, other = told(document(kernel=30_000)), told(document(kernel=63_000, wall_ns=200_000))
    rows = agrees.compared(mine, other)
    assert [(row[0], row[-1]) for row in rows] == [("python", True), ("kernel", True)]
    assert rows[1][1:7] == [0.3, 0.29, 0.31, 0.315, 0.31, 0.32]
    apart = agrees.compared(mine, told(document(kernel=66_000, wall_ns=200_000)))
    assert not apart[-1][-1]
    assert agrees.notes_of([[0, *rows[0]], [0, *rows[1]], [1, *rows[0]], [1, *apart[-1]]]) == [
        "All categories agree in 1 of 2 repetitions."
    ]
