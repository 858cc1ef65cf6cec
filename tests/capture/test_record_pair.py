"""The order of what a round asks its two processes, and a call that is compiled anew."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch

from overhead_lens.capture import guards, record_pair, workload
from overhead_lens.capture.record import Effort, Recording, Request
from overhead_lens.errors import MeasurementError
from tests.compiler import needs_compiler

EFFORT = Effort(processes=3, blocks=20, clock_budget_ns=10**9, sampled_every=5)


class Quiet:
    def begin(self, steps: int) -> None:
        """Nobody looks."""

    def step(self, text: str) -> None:
        """Nobody looks."""


class Asked:
    """A worker that writes down what it is asked; a block takes 5 us, or what ``wall_ns`` says."""

    def __init__(self, *, fails: bool = False, wall_ns: int = 5_000) -> None:
        self.name = "base"
        self.pid, self.steps, self.fails, self.wall_ns = 0, [], fails, wall_ns

    def ask(self, step: str, **_: Any) -> dict[str, Any]:
        self.steps.append(step)
        if step == "recompile" and self.fails:
            raise MeasurementError("recompile failed: no space")
        row = {"block": 0, "calls": 1, "wall_ns": self.wall_ns, "reference_ns": 1_000}
        return {"rows": [row]} if step == "clock" else {}


def side(options: Mapping[str, Any] | None, folder: Path) -> Recording:
    request = Request(
        path=Path("add1.py"),
        variant=None,
        params={},
        compile_options=options,
        output=None,
        parent=folder,
        timeout_s=1.0,
        effort=EFFORT,
    )
    return Recording(request, Quiet(), folder)


def run(sides: list[Recording], workers: list[Asked], monkeypatch: pytest.MonkeyPatch, number: int = 1) -> None:
    order = workers if number % 2 == 0 else workers[::-1]
    monkeypatch.setattr(record_pair, "_start", lambda *_: order)
    monkeypatch.setattr(record_pair, "share_one_core", list)
    record_pair._round(number, sides, Quiet(), last=False)


def runs(steps: list[str]) -> list[tuple[str, int]]:
    return [(step, len(list(same))) for step, same in groupby(steps)]


@pytest.mark.parametrize("options", [({}, {}), (None, {}), (None, None)])
def test_a_compiled_call_is_compiled_five_times_in_a_process(
    options: tuple[Mapping[str, Any] | None, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides, workers = [side(each, tmp_path) for each in options], [Asked(), Asked()]
    run(sides, workers, monkeypatch)
    in_parts = [("clock", 4), *[("recompile", 1), ("clock", 4)] * 4]
    for each, recording, worker in zip(options, sides, workers, strict=True):
        assert runs(worker.steps) == ([("clock", 20)] if each is None else in_parts)
        assert [(row["process"], row["block"]) for row in recording.rows] == [(1, block) for block in range(20)]


def test_each_compilation_has_its_part_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 2 s for both sides: 0.4 s for each compilation; at least three pairs of blocks are timed.
    for wall_ns, blocks in ((5 * 10**7, 4), (6 * 10**7, 4), (7 * 10**7, 3), (10**9, 3)):
        sides, workers = [side({}, tmp_path) for _ in range(2)], [Asked(wall_ns=wall_ns) for _ in range(2)]
        run(sides, workers, monkeypatch)
        assert [count for step, count in runs(workers[0].steps) if step == "clock"] == [blocks] * 5


def test_what_cannot_be_compiled_twice_or_takes_long_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides, workers = [side({}, tmp_path) for _ in range(2)], [Asked(fails=True), Asked()]
    for number in (1, 2):
        run(sides, workers, monkeypatch, number)
    assert sides[0].warnings == [
        "base could not compile the call once more, and none after it was asked to: recompile failed: no space"
    ]
    assert [worker.steps.count("recompile") for worker in workers] == [1, 8]
    assert [worker.steps.count("clock") for worker in workers] == [40, 40]
    moments = iter([0.0, 20.0])
    monkeypatch.setattr(record_pair.time, "monotonic", moments.__next__)
    slow = [Asked(), Asked()]
    run([side({}, tmp_path) for _ in range(2)], slow, monkeypatch)
    assert runs(slow[0].steps) == [("clock", 20)]


@needs_compiler
@pytest.mark.filterwarnings("ignore")
def test_compiled_anew_is_other_code_with_the_same_result() -> None:
    scenario = workload.load_scenario(str(Path(__file__).parents[2] / "scenarios" / "add1.py"))
    first = workload.prepare(scenario, None, {}, {})
    counts = [first.compile_count()]
    workload.compile_call(first)
    counts.append(first.compile_count())
    again = workload.recompiled(first)
    workload.compile_call(again)
    counts.append(again.compile_count())
    assert again.call is not first.call
    assert counts[2] - counts[1] == counts[1] - counts[0] > 0
    assert torch.equal(again.call(*again.args), first.original(*first.args))
    # Not those of before.
    assert len(guards.list_guards(again)["compilations"]) == 1
    # Nothing was left to compile.
    assert again.compile_count() == counts[2]
