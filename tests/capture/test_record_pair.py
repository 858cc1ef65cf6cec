from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from overhead_lens.capture import record_pair

Log = list[str]


@dataclass
class FakeWorker:
    name: str
    log: Log

    @property
    def pid(self) -> int:
        return int(self.name.rpartition("-")[2])

    def send(self, step: str) -> None:
        assert step == "warm_up"

    def end(self) -> None:
        self.log.append(f"end {self.name}")


@dataclass
class FakeSide:
    name: str
    log: Log
    variables: list[dict[str, str]] = field(default_factory=list)

    def start(self, label: str, variables: dict[str, str]) -> FakeWorker:
        self.log.append(f"start {self.name} {label}")
        self.variables.append(variables)
        return FakeWorker(f"{self.name} {label}", self.log)

    def send_load(self, worker: FakeWorker) -> None:
        pass

    def note_load(self, worker: FakeWorker) -> None:
        self.log.append(f"await {worker.name}")

    def note_warm_up(self, worker: FakeWorker) -> None:
        pass


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    found: Log = []
    monkeypatch.setattr(record_pair, "stand_back", lambda pid: found.append(f"back {pid}"))
    monkeypatch.setattr(record_pair, "step_forward", lambda pid: found.append(f"forward {pid}"))
    return found


def starts(sides: list[Any], rounds: int) -> list[record_pair.Start]:
    return [partial(record_pair._start_round, sides=sides, number=number) for number in range(rounds)]


def rounds_of(log: Log, rounds: int) -> list[Any]:
    sides: list[Any] = [FakeSide("base", log), FakeSide("new", log)]
    with closing(record_pair._pairs(starts(sides, rounds))) as pairs:
        for number, turns in enumerate(pairs):
            log.append(f"measure {number}: {', '.join(worker.name for _, worker in turns)}")
    return sides


def test_the_next_pair_warms_up_behind_the_measured_one(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_pair, "may_stand_back", lambda: True)
    sides = rounds_of(log, 2)
    assert log == [
        "start base clock-0",
        "start new clock-0",
        "forward 0",
        "forward 0",
        "await base clock-0",
        "await new clock-0",
        "start new clock-1",
        "start base clock-1",
        "back 1",
        "back 1",
        "measure 0: base clock-0, new clock-0",
        "end new clock-0",
        "end base clock-0",
        "forward 1",
        "forward 1",
        "await new clock-1",
        "await base clock-1",
        "measure 1: new clock-1, base clock-1",
        "end base clock-1",
        "end new clock-1",
    ]
    # Both processes of a round have one layout, and no two rounds the same.
    assert sides[0].variables == sides[1].variables
    assert sides[0].variables[0] != sides[0].variables[1]


def test_where_nobody_can_stand_back_each_pair_waits_for_the_one_before(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_pair, "may_stand_back", lambda: False)
    rounds_of(log, 2)
    assert [entry for entry in log if not entry.startswith("forward")] == [
        "start base clock-0",
        "start new clock-0",
        "await base clock-0",
        "await new clock-0",
        "measure 0: base clock-0, new clock-0",
        "end new clock-0",
        "end base clock-0",
        "start new clock-1",
        "start base clock-1",
        "await new clock-1",
        "await base clock-1",
        "measure 1: new clock-1, base clock-1",
        "end base clock-1",
        "end new clock-1",
    ]


def test_whatever_goes_wrong_in_a_round_ends_the_waiting_workers_too(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_pair, "may_stand_back", lambda: True)
    sides: list[Any] = [FakeSide("base", log), FakeSide("new", log)]

    def interrupted() -> None:
        with closing(record_pair._pairs(starts(sides, 3))) as pairs:
            next(pairs)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    ended = {entry for entry in log if entry.startswith("end")}
    assert ended == {"end base clock-0", "end new clock-0", "end base clock-1", "end new clock-1"}
