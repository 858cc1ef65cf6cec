"""Where the threads of measured processes run."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from overhead_lens.machine import cores
from tests.machine.two_threads import two_threads

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two cores"
)


def where(threads: tuple[int, int]) -> list[set[int]]:
    return [os.sched_getaffinity(thread) for thread in threads]


def test_main_threads_share_a_core_that_no_other_thread_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.sched_getaffinity(0)
    core = min(own)
    monkeypatch.setattr(cores, "quietest_core", lambda allowed: min(allowed))
    with two_threads() as one, two_threads() as two:
        before = cores.share_one_core([one[0], two[0]])
        assert where(one) == where(two) == [{core}, own - {core}]
        assert before == {each[0]: dict.fromkeys(each, own) for each in (one, two)}


def test_the_other_threads_leave_the_core_that_the_main_one_comes_to() -> None:
    own = os.sched_getaffinity(0)
    first, second, *_ = sorted(own)
    with two_threads() as target:
        cores.confine_others(target[0], first)
        os.sched_setaffinity(target[1], {second})
        before = cores.confine_others(target[0], second)
        assert before == dict(zip(target, [{first}, {second}], strict=True))
        assert where(target) == [{second}, own - {second}]
        cores.put_back(target[0], before)
        assert where(target) == [{first}, {second}]


def test_a_thread_that_was_started_since_runs_where_the_main_one_could() -> None:
    own = os.sched_getaffinity(0)
    first, second, *_ = sorted(own)
    with two_threads() as target:
        os.sched_setaffinity(target[0], {second})
        os.sched_setaffinity(target[1], {first})
        cores.put_back(target[0], {target[0]: own})
        assert where(target) == [own, own]
        # Where nothing could be moved nothing is put back.
        os.sched_setaffinity(target[1], {first})
        cores.put_back(target[0], {})
        assert where(target) == [own, {first}]


def test_a_process_that_has_ended_has_no_threads() -> None:
    with two_threads() as target:
        before = cores.confine_others(target[0], min(os.sched_getaffinity(0)))
    assert len(before) == 2
    assert cores.confine_others(target[0], 0) == {}
    cores.put_back(target[0], before)


def states(folder: Path, *texts: str) -> None:
    for number, text in enumerate(texts):
        (folder / "5" / "task" / str(number)).mkdir(parents=True, exist_ok=True)
        (folder / "5" / "task" / str(number) / "stat").write_text(text, encoding="utf-8")


@dataclass
class Stopped:
    """A process that counts how often it was stopped."""

    pid: int
    stops: int = 0

    def stop(self) -> None:
        self.stops += 1


def test_waiting_ends_once_no_thread_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_PROCESSES", tmp_path)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            states(tmp_path, "5 (a) R (b) S 1", "6 (c) S 1")

    monkeypatch.setattr(cores.time, "sleep", sleep)
    states(tmp_path, "5 (a) R (b) S 1", "6 (c) R 1")
    # A name may hold anything; a process that is not there does not run.
    processes = [Stopped(4), Stopped(5)]
    cores.wait_until_idle(processes)
    assert len(slept) == 3
    cores.wait_until_idle(processes)
    assert len(slept) == 3
    assert [process.stops for process in processes] == [0, 0]


def test_waiting_does_not_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_PROCESSES", tmp_path)
    now = [7.0]
    monkeypatch.setattr(cores.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(cores.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    states(tmp_path, "5 (a) R 1")
    busy, idle = Stopped(5), Stopped(4)
    cores.wait_until_idle([idle, busy])
    assert now[0] == pytest.approx(7.25, abs=0.0015)
    # OMP_WAIT_POLICY=active spins without end: what still runs is stopped, and nothing else.
    assert (busy.stops, idle.stops) == (1, 0)
