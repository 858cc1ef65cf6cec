"""What the script for known costs makes of its readings, by drawn ones: plan, truth, errors, verdicts, going on."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.captures.model import CaptureMeta
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.clock.record import TIME_BLOCKS, Blocks
from overhead_lens.machine.operations import Operation
from overhead_lens.stack import Stack
from overhead_lens.subject import Subject
from scripts.results import read_result
from scripts.validation.known_costs.__main__ import main
from scripts.validation.known_costs.bench import Bench, Readings, Switch, _stacks, of_turn, plan_samples
from scripts.validation.known_costs.cell import Cell
from scripts.validation.known_costs.judging import budget_of, judge
from scripts.validation.known_costs.sites import Site
from scripts.validation.known_costs.table import read_cells, write_cells
from tests.drawn.stacks import BINDING, CLASSIFIER, ENTRY, USER, stack

SITE = Site("drawn", "drawn", "dispatcher")
META = CaptureMeta(subject=Subject("scenario", "drawn", "drawn"), recorded_with="drawn")
CELL = Cell(
    "allocation, eager",
    1_000,
    1_000.0,
    (990.0, 1_010.0),
    "allocation",
    "allocation",
    1_000,
    30.0,
    "python",
    0,
    30.0,
    (9, 9),
    "allocation",
    1_000,
    0,
)


def test_a_plan_makes_the_error_a_third_of_what_is_tolerated() -> None:
    # 1,000 ns in a call of 2,000: half of 3,000 ns by n stacks has an error of 1,500 / sqrt(n), the side without of 1,000;
    # 100 / 3 ns for both of them together allow 4,050 stacks for one and 1,800 for the other.
    assert plan_samples(2_000, [1_000], 60) == {0: 300, 1_000: 600}
    assert _stacks(3_000, 1_000) == pytest.approx(4_050)
    assert _stacks(2_000, 1_000) == pytest.approx(1_800)


def test_the_smallest_cost_plans_what_is_sampled_without_one() -> None:
    # 60 ns are tolerated of 50: 20 ns allow 5,000 stacks without the cost and 5,253 with it, which 12 s do not hold.
    assert plan_samples(2_000, [50, 100_000], 12) == {0: 600, 50: 300, 100_000: 300}


def test_what_every_cell_uses_may_take_longer() -> None:
    # Four cells that want more than 20 s: 40 s without a cost, in whole seconds of each of twelve processes.
    plan = plan_samples(20_000, [50, 100, 150, 200], 20)
    assert plan == {0: 1_200, 50: 600, 100: 600, 150: 600, 200: 600}


@pytest.mark.parametrize(
    ("count", "turns"),
    [(300, [300, 0, 0]), (2_100, [900, 600, 600]), (6_000, [2_100, 2_100, 1_800])],
)
def test_stacks_are_taken_in_turns_of_whole_seconds(count: int, turns: list[int]) -> None:
    assert [of_turn(count, turn) for turn in range(3)] == turns


def test_a_block_holds_a_whole_number_of_events() -> None:
    rare = Site("rare", "rare", "compile", block_ns=1_000_000, event_ns=30_000, events=6)
    assert rare.calls_per_block(100, 0) == 10_000
    assert rare.calls_per_block(100, 70) == 6 * 429
    assert rare.calls_per_block(100, 30_000) == 6
    assert SITE.calls_per_block(1_000, 1_000) == 10_000


def test_workers_are_told_the_cost_through_the_file(tmp_path: Path) -> None:
    switch = Switch(tmp_path / "cell")
    switch.set(1_234)
    assert memoryview((tmp_path / "cell").read_bytes()).cast("q").tolist() == [1_234]


def readings(wall_ns: int, per_process: list[list[Stack]]) -> Any:
    rows = [
        {
            "process": process,
            "block": block,
            "calls": 10,
            "wall_ns": 10 * wall_ns,
            "reference_ns": 7,
            "minor_faults": 0,
            "system_ns": 0,
        }
        for process in range(5)
        for block in range(4)
    ]
    return Readings(rows, per_process)


def stacks(python: int, dispatcher: int) -> list[Stack]:
    return [stack(USER, count=python), stack(USER, BINDING, ENTRY, count=dispatcher)]


def judged(*sides: Any) -> Any:
    budgets = tuple(budget_of(SITE, side, META, CLASSIFIER) for side in sides)
    return judge(SITE, 1_000, sides, budgets)


def test_a_cell_is_the_difference_of_two_budgets() -> None:
    cell = judged(readings(1_000, [stacks(600, 400)] * 5), readings(2_000, [stacks(350, 650)] * 5))
    assert (cell.bare_ns, cell.bare_ci95_ns) == (1_000, (1_000, 1_000))
    assert (cell.first, cell.moved_ns, cell.other, cell.other_ns) == ("dispatcher", 900, "python", 100)
    assert cell.samples == (5_000, 5_000)
    # Equal processes leave the error of counts: 1.96 sqrt(p q / 5,000) of either wall.
    expected = 1.96 * math.hypot(1_000 * math.sqrt(0.24 / 5_000), 2_000 * math.sqrt(0.2275 / 5_000))
    assert cell.sampling_ns == pytest.approx(expected)
    assert cell.verdict == "pass"


def test_a_round_during_which_the_machine_was_disturbed_does_not_count() -> None:
    without, injected = readings(1_000, [stacks(600, 400)] * 5), readings(2_000, [stacks(350, 650)] * 5)
    for row in injected.rows:
        if row["block"] == 3:
            row["wall_ns"], row["reference_ns"] = 10 * row["wall_ns"], 10 * row["reference_ns"]
    cell = judged(without, injected)
    assert (cell.bare_ns, cell.bare_ci95_ns) == (1_000, (1_000, 1_000))


def test_processes_whose_movements_differ_widen_the_error() -> None:
    without = readings(1_000, [stacks(600, 400)] * 5)
    shifts = (-200, -100, 0, 100, 200)
    cell = judged(without, readings(2_000, [stacks(350 + shift, 650 - shift) for shift in shifts]))
    # Student's t of four degrees of freedom times the standard error of the mean of five, of 2,000 ns.
    scatter = math.sqrt(sum((shift / 1_000) ** 2 for shift in shifts) / 4)
    assert cell.sampling_ns == pytest.approx(2_000 * 2.7764451 * scatter / math.sqrt(5))


def test_what_processes_differ_by_all_the_time_is_no_error_of_a_movement() -> None:
    # 1,000 ns more, half of them for the dispatcher, in every process, however much it had of it before.
    shifts = (-200, -100, 0, 100, 200)
    without = readings(1_000, [stacks(600 + shift, 400 - shift) for shift in shifts])
    injected = readings(2_000, [stacks(1_100 + shift, 900 - shift) for shift in shifts])
    cell = judged(without, injected)
    expected = 1.96 * math.hypot(1_000 * math.sqrt(0.24 / 5_000), 2_000 * math.sqrt(0.2475 / 10_000))
    assert (cell.moved_ns, cell.sampling_ns) == (500, pytest.approx(expected))


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "pass"),
        ({"moved_ns": 1_100, "other_ns": -100}, "pass"),
        ({"moved_ns": 1_101}, "unresolved"),
        ({"moved_ns": 870}, "unresolved"),
        ({"moved_ns": 868}, "FAIL"),
        ({"moved_ns": 860, "bare_ci95_ns": (973.0, 1_020.0)}, "unresolved"),
        ({"moved_ns": 859, "bare_ci95_ns": (973.0, 1_020.0)}, "FAIL"),
        ({"other_ns": -130}, "unresolved"),
        ({"other_ns": 131}, "FAIL"),
        ({"first": "python"}, "unresolved"),
        ({"bare_ns": 200.0, "moved_ns": 260, "other_ns": 60}, "pass"),
        ({"bare_ns": 200.0, "bare_ci95_ns": (200.0, 200.0), "moved_ns": 291}, "FAIL"),
    ],
)
def test_verdicts(changes: dict[str, Any], verdict: str) -> None:
    assert replace(CELL, **changes).verdict == verdict


def test_cells_are_kept_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "cells.json"
    assert read_cells(path) == []
    write_cells(path, [CELL])
    assert read_cells(path) == [CELL]
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_goes_on_where_it_was_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cells.json"
    asked = []

    def judge_site(site: Any, costs_ns: list[int], _seconds: float) -> list[Any]:
        asked.append((site.name, costs_ns))
        if site.name == "kernel, eager":
            raise KeyboardInterrupt
        return [replace(CELL, site=site.name, cost_ns=cost_ns) for cost_ns in costs_ns]

    write_cells(path, [replace(CELL, cost_ns=200)])
    monkeypatch.setattr("scripts.validation.known_costs.__main__.judge_site", judge_site)
    arguments = ["--sites", "allocation, eager", "dispatch, eager", "kernel, eager", "--costs", "1000", "200"]
    with pytest.raises(KeyboardInterrupt):
        main([*arguments, "--cells", str(path), "--result", str(tmp_path / "result.json")])
    expected = [("allocation, eager", [1_000]), ("dispatch, eager", [200, 1_000]), ("kernel, eager", [200, 1_000])]
    assert asked == expected
    kept = [(cell.site, cell.cost_ns) for cell in read_cells(path)]
    assert kept == [(site, cost) for site in ("allocation, eager", "dispatch, eager") for cost in (200, 1_000)]
    asked.clear()
    result = tmp_path / "result.json"
    assert not result.exists()
    arguments = ["--sites", "allocation", "dispatch, eager", "--costs", "1000", "200"]
    main([*arguments, "--cells", str(path), "--result", str(result)])
    assert asked == [("allocation, eager", []), ("allocation, compiled", [200, 1_000]), ("dispatch, eager", [])]
    assert "of all 6 cells 6 pass, 0 fail and 0 are unresolved" in capsys.readouterr().out
    stored = read_result(result)
    assert [row[:3] for row in stored.rows] == [
        (site, cost, 1_000)
        for site in ("allocation, eager", "allocation, compiled", "dispatch, eager")
        for cost in (200, 1_000)
    ]
    assert "of all 6 cells 6 pass, 0 fail and 0 are unresolved" in stored.notes[0]


class DrawnWorker:
    """Answers every block with its length, as many calls as go into it by what it takes one to be."""

    def __init__(self, call_ns: int = 100) -> None:
        self.call_ns = call_ns
        self.blocks: list[int] = []
        self.pieces: list[int | None] = []

    def ask(
        self, step: Operation[Any], *, block_ns: int, blocks: int, budget_ns: int, piece_ns: int | None = None
    ) -> Blocks:
        assert (step, blocks, budget_ns) == (TIME_BLOCKS, 1, 0)
        self.blocks.append(block_ns)
        self.pieces.append(piece_ns)
        return Blocks([{"block": 0, "wall_ns": block_ns, "calls": block_ns // self.call_ns}], 0)


@pytest.mark.parametrize(("steady", "pieces"), [(False, [None] * 6), (True, [125, 7] * 3)])
def test_rounds_go_through_the_costs_in_turn(tmp_path: Path, steady: bool, pieces: list[int | None]) -> None:
    site = Site("drawn", "drawn", "compile", block_ns=10_000, event_ns=3_000, events=2, steady=steady)
    worker = DrawnWorker()
    bench = Bench(site, tmp_path, Switch(tmp_path / "cell"), [(worker, 100.0)], META)
    rows = bench.time(0, [0, 1_000], range(10, 12))
    # 100 calls without the cost, two times three with it; one round is thrown away.
    assert worker.blocks == [10_000, 600] * 3
    assert worker.pieces == pieces
    assert [(row["block"], row["process"]) for row in rows[0]] == [(10, 0), (11, 0)]
    assert [row["wall_ns"] for row in rows[1_000]] == [600, 600]


def test_a_block_without_a_whole_number_of_events_is_refused(tmp_path: Path) -> None:
    site = Site("drawn", "drawn", "compile", block_ns=10_000, event_ns=3_000, events=2, steady=False)
    bench = Bench(site, tmp_path, Switch(tmp_path / "cell"), [(DrawnWorker(60), 100.0)], META)
    with pytest.raises(MeasurementError, match="drawn: a block of 10 calls in place of 6; run it again"):
        bench.time_block(0, 1_000)
    # Without events any number will do.
    assert bench.time_block(0, 0)["calls"] == 166


@pytest.mark.parametrize(
    ("change", "passed"),
    [
        ({}, True),
        ({"blamed_ns": 1_100}, True),
        ({"blamed_ns": 1_101}, False),
        ({"blamed_besides_ns": -100}, True),
        ({"blamed_besides_ns": 101}, False),
        ({"blamed": "python"}, False),
        ({"blamed": None, "blamed_ns": 0}, False),
        # Whatever the categories' own estimates say.
        ({"first": "python", "moved_ns": 0}, True),
    ],
)
def test_what_the_comparison_must_say(change: dict[str, Any], passed: bool) -> None:
    assert replace(CELL, **change).blame_passed is passed
