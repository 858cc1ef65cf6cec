"""Threads on cores while one of them is sampled, of real processes: where they run, and that they run as before afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead_lens.machine import guard, placement, thread_clocks
from overhead_lens.machine.guard import Placed, descendants, let_go, threads_of
from overhead_lens.machine.other_process import thread_states
from overhead_lens.machine.placement import Placement

S = 1_000_000_000
CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()

two_cores = pytest.mark.skipif(len(CORES) < 2, reason="threads are placed where this process may use two cores")

# It does what it reads: starts a thread or a child, pins a thread, or ends.
PROGRAM = """
import os, subprocess, sys, threading, time
def sleep(cores=None):
    if cores is not None:
        os.sched_setaffinity(0, cores)
    said.append(threading.get_native_id())
    time.sleep(600)
def work():
    said.append(threading.get_native_id())
    while True: sum(range(10_000))
said = []
for line in sys.stdin:
    what, _, cores = line.strip().partition(" ")
    if what == "thread":
        threading.Thread(target=sleep, args=([int(core) for core in cores.split(",")] if cores else None,), daemon=True).start()
        while not said: time.sleep(0.001)
        print(said.pop(), flush=True)
    elif what == "work":
        threading.Thread(target=work, daemon=True).start()
        while not said: time.sleep(0.001)
        print(said.pop(), flush=True)
    elif what == "child":
        print(subprocess.Popen(["sleep", "600"]).pid, flush=True)
    elif what == "pin":
        os.sched_setaffinity(int(cores.split(",")[0]), [int(core) for core in cores.split(",")[1:]])
        print(0, flush=True)
"""


class Target:
    """A process that does as it is told, and answers with a number."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def does(self, what: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def running() -> Iterator[Target]:
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Target(process)
        finally:
            for child in list(descendants(process.pid)):
                os.kill(child, signal.SIGKILL)
            process.kill()


@pytest.fixture
def target() -> Iterator[Target]:
    with running() as target:
        yield target


@pytest.fixture
def sampler() -> Iterator[int]:
    """A process in the sampler's place."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


def how(*threads: int) -> list[tuple[set[int], int]]:
    """Cores and policy of threads."""
    return [(os.sched_getaffinity(thread), os.sched_getscheduler(thread)) for thread in threads]


def await_that(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def signals_ignored(pid: int) -> set[int]:
    (mask,) = re.findall(r"SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return {bit + 1 for bit in range(64) if int(mask, 16) >> bit & 1}


def has_ended(pid: int) -> bool:
    return all(thread.state in "ZX" for thread in thread_states(pid))


def usual(count: int) -> list[tuple[set[int], int]]:
    return [(CORES, os.SCHED_OTHER)] * count


# ---------------------------------------------------------------- placed and put back
@two_cores
def test_the_sampled_thread_shares_its_core_with_the_samplers(target: Target, sampler: int) -> None:
    other, early, team = target.does("thread"), target.does("child"), target.does("work")
    with Placement(target.pid) as placed:
        time.sleep(0.1)
        assert (placed.core, how(other, target.pid, sampler)) == (None, usual(3))
        assert placed.place(other, sampler)
        core = placed.core
        assert core in CORES
        assert how(other) == [({core}, os.SCHED_BATCH)]
        assert how(target.pid) == [(CORES - {core}, os.SCHED_OTHER)]
        assert [cores for cores, _ in how(sampler, os.getpid())] == [{core}] * 2
        assert how(early) == usual(1)
        # Threads and children that begin later inherit a placement, and follow() sees to them.
        later, child = target.does("thread"), target.does("child")
        assert how(later, child) == [(CORES - {core}, os.SCHED_OTHER)] * 2
        placed.follow()
        assert how(later, child) == [(CORES - {core}, os.SCHED_OTHER), (CORES, os.SCHED_OTHER)]
        placed.put_back()
        time.sleep(0.1)
        assert (placed.core, how(target.pid, other, team, later, child)) == (None, usual(5))
        assert os.sched_getaffinity(0) == CORES
        placed.put_back()
        placed.follow()
        # Again, of another thread.
        assert placed.place(target.pid, sampler)
        assert how(target.pid)[0][0] == {placed.core}
        assert how(other)[0][0] == CORES - {placed.core}
    assert how(target.pid, other, team, later, child) == usual(5)
    assert placed.reason == ""


@two_cores
def test_what_the_sampled_thread_starts_is_let_go(target: Target, sampler: int) -> None:
    with Placement(target.pid) as placed:
        assert placed.place(target.pid, sampler)
        thread, child = target.does("thread"), target.does("child")
        assert [cores for cores, _ in how(thread, child)] == [{placed.core}] * 2
        placed.follow()
        assert how(thread) == [(CORES - {placed.core}, os.SCHED_OTHER)]
        assert how(child) == usual(1)
        # It waits for no other that computes: its policy stays.
        assert how(target.pid) == [({placed.core}, os.SCHED_OTHER)]
        team = target.does("work")
        await_that(lambda: (placed.follow(), os.sched_getscheduler(target.pid))[1] == os.SCHED_BATCH)
        assert how(target.pid, team) == [({placed.core}, os.SCHED_BATCH), (CORES - {placed.core}, os.SCHED_OTHER)]
        unseen, grandchild = target.does("thread"), target.does("child")
        assert how(unseen, grandchild) == [({placed.core}, os.SCHED_BATCH)] * 2
    assert how(target.pid, thread, team, child, unseen, grandchild) == usual(6)


@pytest.mark.parametrize(
    ("wall_ms", "cpu_ms", "cores"),
    [(3, {1: 3, 2: 1}, 0.01), (100, {1: 100, 2: 50, 3: 25}, 0.75), (200, {1: 0, 2: 50}, 0.25), (200, {}, 1.0)],
)
def test_a_thread_that_begins_does_not_yet_compute(wall_ms: int, cpu_ms: dict[int, int], cores: float) -> None:
    before = thread_clocks.Clocks(7 * S, {1: S, 2: 2 * S}, {})
    cpu_ns = {thread: before.cpu_ns.get(thread, 0) + ms * 1_000_000 for thread, ms in cpu_ms.items()}
    now = thread_clocks.Clocks(7 * S + wall_ms * 1_000_000, cpu_ns, {})
    assert now.others_share(before, 1) == pytest.approx(cores)


@two_cores
def test_a_thread_that_moves_itself_is_left_alone(target: Target, sampler: int) -> None:
    other = target.does("thread")
    every = ",".join(map(str, sorted(CORES)))
    with Placement(target.pid) as placed:
        assert placed.place(target.pid, sampler)
        target.does(f"pin {other},{every}")
        placed.follow()
        assert how(other)[0][0] == CORES


@two_cores
def test_a_program_that_places_its_threads_itself_is_left_alone(target: Target, sampler: int) -> None:
    pinned = target.does(f"thread {min(CORES)}")
    with Placement(target.pid) as placed:
        assert not placed.place(target.pid, sampler)
        assert placed.reason == "the program places its threads on cores itself"
        placed.follow()
        assert (how(target.pid), how(pinned)[0][0]) == (usual(1), {min(CORES)})
    assert (how(target.pid), how(pinned)[0][0], how(sampler)) == (usual(1), {min(CORES)}, usual(1))


@two_cores
@pytest.mark.parametrize(("threads", "reason"), [(0, ""), (1, "it has a single core")])
def test_a_single_core_matters_to_several_threads(sampler: int, threads: int, reason: str) -> None:
    with running() as target:
        target.does(f"pin {target.pid},{min(CORES)}")
        for _ in range(threads):
            target.does("thread")
        with Placement(target.pid) as placed:
            assert (placed.place(target.pid, sampler), placed.reason) == (False, reason)
        assert how(target.pid, sampler) == [({min(CORES)}, os.SCHED_OTHER), *usual(1)]


@two_cores
def test_a_policy_of_the_programs_own_stays(target: Target, sampler: int) -> None:
    other = target.does("thread")
    os.sched_setscheduler(other, os.SCHED_BATCH, os.sched_param(0))
    with Placement(target.pid) as placed:
        assert placed.place(target.pid, sampler)
        assert [policy for _, policy in how(target.pid, other)] == [os.SCHED_OTHER, os.SCHED_BATCH]
    assert how(target.pid, other) == [(CORES, os.SCHED_OTHER), (CORES, os.SCHED_BATCH)]


@two_cores
def test_a_process_or_a_thread_that_is_gone(target: Target, sampler: int) -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    with Placement(gone.pid) as placed:
        assert (placed.place(gone.pid, sampler), placed.reason) == (False, "its threads cannot be read")
    with Placement(target.pid) as placed:
        assert not placed.place(gone.pid, sampler)
        assert placed.reason == "its threads may not be placed on cores (No such process)"
    assert how(target.pid, sampler) == usual(2)


def test_a_system_without_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    with Placement(os.getpid()) as placed:
        assert not placed.place(os.getpid(), os.getpid())
        assert placed.reason == "this system does not let threads be placed on cores"


# ---------------------------------------------------------------- the guard
PLACING = """
import sys, time
from overhead_lens.machine.other_process import thread_states
from overhead_lens.machine.placement import Placement
pid, thread, sampler = map(int, sys.argv[1:])
placed = Placement(pid).__enter__()
assert placed.place(thread, sampler)
print(placed._guard.pid, flush=True)
while True:
    time.sleep(0.01)
    placed.follow()
"""


@two_cores
@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGTERM])
def test_the_guard_puts_back_what_a_killed_program_left(target: Target, sampler: int, ended_by: signal.Signals) -> None:
    other = target.does("thread")
    target.does("work")
    command = [sys.executable, "-c", PLACING, str(target.pid), str(other), str(sampler)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as placing:
        assert placing.stdout is not None
        guarding = int(placing.stdout.readline())
        (((core,), _),) = how(other)
        await_that(lambda: how(other)[0][1] == os.SCHED_BATCH)
        assert how(target.pid) == [(CORES - {core}, os.SCHED_OTHER)]
        later = target.does("thread")
        child = target.does("child")
        # It is of another session, and takes no notice of signals that are meant for the terminal's programs.
        assert os.getsid(guarding) == guarding != os.getsid(placing.pid)
        await_that(lambda: signals_ignored(guarding) >= {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
        os.kill(guarding, signal.SIGTERM)
        placing.send_signal(ended_by)
    await_that(lambda: how(target.pid, other, later, child) == usual(4))
    await_that(lambda: has_ended(guarding))


@two_cores
def test_the_guard_does_nothing_for_what_was_put_back(target: Target, sampler: int) -> None:
    other = target.does("thread")
    with Placement(target.pid) as placed:
        assert placed.place(target.pid, sampler)
        assert placed._guard is not None
        placed.put_back()
        os.sched_setaffinity(other, {placed_core := min(CORES)})
        placed._guard.stdin.close()  # type: ignore[union-attr]
        assert placed._guard.wait(120) == 0
        assert how(other)[0][0] == {placed_core}


@two_cores
def test_a_guard_that_cannot_start_or_has_died_harms_nobody(
    target: Target, sampler: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Placement(target.pid) as placed:
        assert placed.place(target.pid, sampler)
        assert placed._guard is not None
        placed._guard.kill()
        placed._guard.wait()
        placed.put_back()
        assert how(target.pid) == usual(1)
        assert placed.place(target.pid, sampler)
    monkeypatch.setattr(placement.sys, "executable", "/nowhere/python")
    with Placement(target.pid) as placed:
        assert placed.place(target.pid, sampler)
    assert how(target.pid) == usual(1)


def test_the_last_line_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Placed] = []
    monkeypatch.setattr(guard, "put_back", done.append)
    monkeypatch.setattr(guard.signal, "signal", lambda *_: None)
    first, last = ({"pid": pid, "core": 1, "others": [0], "free": [0, 1], "batch": True} for pid in (1, 2))
    for lines, expected in (
        ([first, last], [last]),
        ([first, None], []),
        ([], []),
        # One that was cut off by the program's end.
        ([first, last, '{"pid": 3, "co'], [last]),
    ):
        done.clear()
        text = [each if isinstance(each, str) else json.dumps(each) for each in lines]
        monkeypatch.setattr(guard.sys, "stdin", text)
        guard.main()
        assert done == expected


# ---------------------------------------------------------------- on a machine of four cores, drawn
class Machine:
    """Threads with their cores and policies."""

    def __init__(self, patch: pytest.MonkeyPatch, **cores: set[int]) -> None:
        self.cores = {int(name[1:]): mask for name, mask in cores.items()}
        self.policy = dict.fromkeys(self.cores, os.SCHED_OTHER)
        patch.setattr(os, "sched_getaffinity", lambda thread: self.cores[thread])
        patch.setattr(os, "sched_setaffinity", self._move)
        patch.setattr(os, "sched_getscheduler", lambda thread: self.policy[thread])
        patch.setattr(os, "sched_setscheduler", lambda thread, policy, _: self.policy.update({thread: policy}))

    def _move(self, thread: int, cores: Any) -> None:
        self.cores[thread] = set(cores)


@pytest.mark.skipif(not CORES, reason="this system does not let threads be placed on cores")
def test_of_four_cores_only_what_was_placed_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    free = {0, 1, 2, 3}
    machine = Machine(monkeypatch, t1={3}, t2={0, 1, 2}, t3={2}, t4={0, 1}, t5=free)
    machine.policy |= {1: os.SCHED_BATCH, 4: os.SCHED_BATCH, 5: os.SCHED_FIFO}
    placed: Placed = {"pid": 1, "core": 3, "others": [0, 1, 2], "free": sorted(free), "batch": True}
    for thread in machine.cores:
        let_go(thread, placed)
    # The third and fourth were moved by the program itself.
    assert machine.cores == {1: free, 2: free, 3: {2}, 4: {0, 1}, 5: free}
    assert machine.policy == {**dict.fromkeys(range(1, 5), os.SCHED_OTHER), 5: os.SCHED_FIFO}


def four_cores(monkeypatch: pytest.MonkeyPatch, last: int | None, clocks_ns: list[dict[int, int]]) -> Machine:
    """A machine where process 1 has two threads, read once a second, the second of which ran on core ``last``."""
    own = os.getpid()
    free = {0, 1, 2, 3}
    machine = Machine(monkeypatch, t1=free, t2=free, t9=free, **{f"t{own}": free, "t0": free})
    processes = {1: [1, 2], 9: [9], own: [own]}
    for module in (placement, guard):
        monkeypatch.setattr(module, "threads_of", lambda pid: processes.get(pid, []))
        monkeypatch.setattr(module, "descendants", lambda pid: iter(()))
    monkeypatch.setattr(placement, "last_core", lambda thread: last)
    monkeypatch.setattr(thread_clocks, "thread_cpu_ns", lambda pid: clocks_ns.pop(0))
    clock = SimpleNamespace(monotonic_ns=iter(range(0, 100 * S, S)).__next__)
    monkeypatch.setattr(thread_clocks, "time", clock)
    monkeypatch.setattr(Placement, "_update_guard", lambda self: None)
    return machine


@pytest.mark.skipif(not CORES, reason="this system does not let threads be placed on cores")
@pytest.mark.parametrize(("last", "core"), [(2, 2), (7, 3), (None, 3)])
def test_the_core_is_that_on_which_the_thread_runs(
    monkeypatch: pytest.MonkeyPatch, last: int | None, core: int
) -> None:
    own, free = os.getpid(), {0, 1, 2, 3}
    machine = four_cores(monkeypatch, last, [{}, {}])
    with Placement(1) as placed:
        assert placed.place(2, 9)
        assert placed.core == core
        assert [machine.cores[each] for each in (1, 2, 9, own)] == [free - {core}, {core}, {core}, {core}]
        # One that the program moves itself stays where it is.
        machine.cores[1] = {0}
    assert [machine.cores[each] for each in (1, 2, own)] == [{0}, free, free]


@pytest.mark.skipif(not CORES, reason="this system does not let threads be placed on cores")
@pytest.mark.parametrize(
    ("clocks_ns", "is_batch"),
    [
        # Of a second the other thread computed 2 %, then a little more.
        ([{1: S, 2: 0}, {1: S + S // 50, 2: S}, {1: S + 2 * (S // 50) + 1, 2: 2 * S}], [False, True]),
        # ... in the first one only; the policy stays until the threads are put back.
        ([{1: 0, 2: 0}, {1: S // 2, 2: 0}, {1: S // 2, 2: S}], [True, True]),
        # One that has begun since counts from its start; the sampled thread does not count.
        ([{2: 0}, {2: S}, {1: S // 10, 2: 2 * S}], [False, True]),
        # Where the clocks cannot be read, other threads may compute.
        ([{}, {}, {}], [True, True]),
    ],
)
def test_a_thread_waits_for_the_sampler_where_others_compute(
    monkeypatch: pytest.MonkeyPatch, clocks_ns: list[dict[int, int]], is_batch: list[bool]
) -> None:
    machine = four_cores(monkeypatch, 2, clocks_ns)
    seen = []
    with Placement(1) as placed:
        assert placed.place(2, 9)
        seen.append(machine.policy[2] == os.SCHED_BATCH)
        placed.follow()
        seen.append(machine.policy[2] == os.SCHED_BATCH)
    assert (seen, machine.policy[1], machine.policy[2]) == (is_batch, os.SCHED_OTHER, os.SCHED_OTHER)


def test_threads_of_a_process() -> None:
    assert os.getpid() in threads_of(os.getpid()) or not Path("/proc").is_dir()
    assert threads_of(2**22 + 1) == []
