"""``overhead-lens export`` of a run: its stacks, and the steps that were traced."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.captures.files import KINETO
from overhead_lens.studies.run.analysis import run_budget_of
from overhead_lens.studies.run.stored import Compilation
from overhead_lens.taxonomy.classifier import default_classifier
from tests.cli.run import error_line, lens
from tests.documents import validated
from tests.drawn.runs import COMPILING, STEP_NS, WAIT, WORK, bare, main, run_of, slow_run, store
from tests.drawn.timelines import document, drawn


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return slow_run(tmp_path / "run")


def test_stacks_of_the_steps_and_of_other_threads(run: Path, tmp_path: Path) -> None:
    assert lens("export", run, "--format", "collapsed", "-o", "c", cwd=tmp_path).stdout == "c\n"
    assert (tmp_path / "c").read_text().splitlines() == [
        "MainThread;train (train.py) 60",
        "MainThread;train (train.py);at::native::add_kernel (libtorch_cpu.so) 40",
        "loader (10/11);wait (data.py);clock_nanosleep (libc.so.6) 100",
    ]


def test_stacks_of_steps_in_another_thread_bear_its_name(tmp_path: Path) -> None:
    run = store(
        tmp_path / "run",
        run_of(*bare(*[STEP_NS] * 20), thread=11, thread_name="trainer"),
        [[f"thread (11): trainer;{WORK} 60", main(WAIT, 100)]],
    )
    assert lens("export", run, "--format", "collapsed", "-o", "c", cwd=tmp_path).returncode == 0
    assert (tmp_path / "c").read_text().splitlines() == [
        "trainer;train (train.py) 60",
        "MainThread (10/10);<module> (train.py);train (train.py);clock_nanosleep (libc.so.6) 100",
    ]


def test_a_profile_is_as_long_as_a_step(run: Path) -> None:
    assert lens("export", run, "--format", "speedscope", cwd=run).returncode == 0
    document = json.loads((run / "speedscope.json").read_text())
    wall_ns = run_budget_of(run, default_classifier()).wall.ns
    assert document["name"] == "train.py --epochs 3"
    assert [(each["name"], sum(each["weights"])) for each in document["profiles"]] == [
        ("MainThread", wall_ns), ("loader (10/11)", wall_ns),
    ]  # fmt: skip
    assert document["profiles"][0]["weights"] == [wall_ns * 6 // 10, wall_ns - wall_ns * 6 // 10]


def test_a_profile_of_a_thread_that_ended_early_is_shorter(tmp_path: Path) -> None:
    turn = [main(WORK, 100), "thread (11): short;read (data.py:9) 10"]
    run = store(tmp_path / "run", run_of(*bare(*[1_000] * 10)), [turn])
    assert lens("export", run, "--format", "speedscope", cwd=run).returncode == 0
    profiles = json.loads((run / "speedscope.json").read_text())["profiles"]
    assert [each["weights"] for each in profiles] == [[1_000], [100]]
    (short,) = validated(run_budget_of(run, default_classifier()).to_json())["threads"]
    assert (short["wall_ns"], short["seen_share"], short["busy_share"]) == (1_000, 0.1, 0.1)


@pytest.mark.parametrize(
    ("steps", "compilations", "weights"),
    [
        # Outside the steps that set the wall.
        ([190] * 10, [Compilation(10, 900, "")], [114, 76]),
        # For 90 of the 190 ns of a step, by the compiler's clock.
        ([100] * 9 + [{"ns": 1_000, "compile_ns": 900}], [], [60, 40]),
        # No clock timed them.
        ([190] * 10, [], [14, 10, 166]),
    ],
)
def test_stacks_of_compilations_that_the_clock_times_are_left_out(
    steps: list[Any], compilations: list[Compilation], weights: list[int], tmp_path: Path
) -> None:
    turn = [main(WORK, 600), main(WAIT, 400), main(COMPILING, 7_000)]
    run = store(tmp_path / "run", run_of(*bare(*steps), compilations=compilations), [turn])
    for form in ("speedscope", "collapsed"):
        assert lens("export", run, "--format", form, cwd=run).returncode == 0
    (profile,) = json.loads((run / "speedscope.json").read_text())["profiles"]
    assert profile["weights"] == weights
    assert len((run / "stacks.collapsed").read_text().splitlines()) == len(weights)


def test_the_budget_of_a_step_above_the_traced_ones(run: Path) -> None:
    (run / KINETO).write_bytes(gzip.compress(document([drawn("  [---)  ", "aten::mm")]).encode()))
    budget = run_budget_of(run, default_classifier())
    assert lens("export", run, "--format", "chrome", cwd=run).returncode == 0
    events = json.loads(gzip.decompress((run / "chrome.json.gz").read_bytes()))["traceEvents"]
    lengths = {(event["name"], event["cat"]): round(event["dur"] * 1_000) for event in events if event["ph"] == "X"}
    assert lengths["aten::mm", "cpu_op"] == 4
    assert sum(ns for (_, kind), ns in lengths.items() if kind == "budget") == budget.wall.ns


def test_what_a_run_does_not_hold(run: Path, tmp_path: Path) -> None:
    refused = lens("export", run, "--format", "chrome", cwd=tmp_path)
    assert (
        error_line(refused) == f"{run} holds no traced step: export it with --format collapsed, perfetto or speedscope"
    )
    bare = store(tmp_path / "bare", run_of(reason="ptrace is not permitted"))
    for form in ("collapsed", "speedscope"):
        refused = lens("export", bare, "--format", form, cwd=tmp_path)
        assert error_line(refused) == f"{bare} holds no samples to export (ptrace is not permitted)"
    assert sorted(path.name for path in bare.iterdir()) == ["meta.json"]
