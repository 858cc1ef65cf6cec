"""The order of what a round asks its two processes, and a call that is compiled anew."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import count, groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.clock.record import Blocks, Clock
from overhead_lens.instruments.guards import worker as guards
from overhead_lens.instruments.instrument import Recording, When
from overhead_lens.instruments.page_faults.record import MeasurePageFaults
from overhead_lens.instruments.samples import record as samples
from overhead_lens.instruments.samples.record import SampleStacks, Traceable
from overhead_lens.instruments.samples.record import Spinning as Spins
from overhead_lens.machine.operations import Operation, WarmUp
from overhead_lens.machine.request import Effort, Request
from overhead_lens.recorder import paired as record_pair
from overhead_lens.recorder.side import Side
from overhead_lens.samplers.sampler import SamplerRun
from overhead_lens.target import Target, parse_target
from overhead_lens.worker import workload
from tests.compiler import needs_compiler
from tests.drawn.speedscope import sequence
from tests.worker.answering import session_of

# Stacks of each process that do not count.
SETTLING = 40

EFFORT = Effort(processes=3, blocks=24, clock_budget_ns=10**9, sampled_every=5)


class Quiet:
    def begin(self, steps: int) -> None:
        """Nobody looks."""

    def step(self, text: str) -> None:
        """Nobody looks."""


class Asked:
    """A worker that writes down what it is asked; a block takes 5 us, or what ``wall_ns`` says."""

    # Blocks of a round during which other threads run, and for how long of the 5 us.
    others: tuple[int, int] = (0, 0)

    def __init__(self, *, fails: bool = False, wall_ns: int = 5_000) -> None:
        self.name = "base"
        self.pid, self.steps, self.fails, self.wall_ns = 0, [], fails, wall_ns

    def ask(self, operation: Operation[Any], **_: Any) -> Any:
        step = step_of(operation)
        self.steps.append(step)
        if step == "recompile" and self.fails:
            raise MeasurementError("recompile failed: no space")
        row = {"block": 0, "calls": 1, "wall_ns": self.wall_ns, "reference_ns": 1_000}
        blocks, others_ns = self.others
        return Blocks([row], others_ns * (self.steps.count("time_blocks") <= blocks))


def step_of(operation: Operation[Any]) -> str:
    return operation.name.rpartition(":")[2]


def side(options: Mapping[str, Any] | None, folder: Path) -> Side:
    request = Request(
        target=Target("add1.py", Path("add1.py")),
        params={},
        compile_options=options,
        output=None,
        parent=folder,
        timeout_s=1.0,
        effort=EFFORT,
    )
    return Side(request, folder, Quiet(), record_pair._instruments())


def rows(found: Side) -> list[dict[str, int]]:
    return found.of(Clock).rows


def test_processes_that_had_not_settled_are_one_line(tmp_path: Path) -> None:
    found = side(None, tmp_path)
    for name, settled in (("clock-0", True), ("clock-1", False), ("tracer", False)):
        worker = SimpleNamespace(name=name, receive=lambda _, settled=settled: WarmUp(1.0, settled, 0))
        found.note_warm_up(worker)  # type: ignore[arg-type]
    assert found.all_warnings == ["clock-1, tracer had not settled after the warm-up: their blocks may still drift"]
    assert side(None, tmp_path).all_warnings == []
    # Every process may lack the same.
    found.warnings.extend(["no ablation: why", "no ablation: why"])
    assert found.all_warnings[1:] == ["no ablation: why"]


def run(sides: list[Side], workers: list[Asked], monkeypatch: pytest.MonkeyPatch, number: int = 1) -> None:
    order = workers if number % 2 == 0 else workers[::-1]
    monkeypatch.setattr(record_pair, "_start", lambda *_: order)
    monkeypatch.setattr(record_pair, "share_one_core", lambda _: {})
    record_pair._round(number, sides, Quiet(), last=False)


def test_what_the_last_round_measures_may_use_every_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []
    sides, workers = [side(None, tmp_path) for _ in range(2)], [Asked(), Asked()]
    monkeypatch.setattr(record_pair, "_start", lambda *_: workers)
    monkeypatch.setattr(record_pair, "share_one_core", lambda _: {7: {7: {0, 1}}, 8: {}})
    monkeypatch.setattr(record_pair, "put_back", lambda *moved: steps.append(moved))
    monkeypatch.setattr(Side, "give_turns", lambda _, when, *__: steps.append(when))
    record_pair._round(1, sides, Quiet(), last=False)
    assert steps == []
    record_pair._round(1, sides, Quiet(), last=True)
    assert steps == [(7, {7: {0, 1}}), (8, {}), *2 * (When.RECORDED, When.TRACED), When.LAST]


def runs(steps: list[str]) -> list[tuple[str, int]]:
    return [(step, len(list(same))) for step, same in groupby(steps)]


@pytest.mark.parametrize("options", [({}, {}), (None, {}), (None, None)])
def test_a_compiled_call_is_compiled_many_times_in_a_process(
    options: tuple[Mapping[str, Any] | None, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides, workers = [side(each, tmp_path) for each in options], [Asked(), Asked()]
    run(sides, workers, monkeypatch)
    # Four blocks settle the call, four are kept.
    in_parts = [("recompile", 1), ("time_blocks", 8)] * 6
    compiled = options != (None, None)
    for each, recording, worker in zip(options, sides, workers, strict=True):
        assert runs(worker.steps) == (in_parts if each is not None else [("time_blocks", 48 if compiled else 28)])
        assert [(row["process"], row["block"]) for row in rows(recording)] == [(1, block) for block in range(24)]
        assert [row["compilation"] for row in rows(recording)] == [block // 4 * compiled for block in range(24)]


class Compiled(Asked):
    """A worker that writes down when it compiles."""

    log: list[Compiled]

    def ask(self, operation: Operation[Any], **arguments: Any) -> Any:
        if step_of(operation) == "recompile":
            self.log.append(self)
        return super().ask(operation, **arguments)


@pytest.mark.parametrize("number", [1, 2])
def test_the_side_that_compiles_first_changes_each_time(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Compiled.log = []
    workers = [Compiled(), Compiled()]
    run([side({}, tmp_path) for _ in range(2)], list(workers), monkeypatch, number)
    first, second = workers if number % 2 == 0 else workers[::-1]
    assert Compiled.log == [first, second, second, first] * 3


def test_each_compilation_has_its_part_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 2 s for both sides: 0.33 s for each compilation; at least three pairs of blocks are timed. One settles a long call.
    for wall_ns, blocks in ((9 * 10**6, 5), (55 * 10**6, 5), (56 * 10**6, 4), (10**9, 4)):
        sides, workers = [side({}, tmp_path) for _ in range(2)], [Asked(wall_ns=wall_ns) for _ in range(2)]
        run(sides, workers, monkeypatch)
        asked = [count for step, count in runs(workers[0].steps) if step == "time_blocks"]
        assert asked == [blocks + 3 * (wall_ns <= 10 * 10**6)] * 6
        assert len(rows(sides[0])) == 6 * (blocks - 1)


@pytest.mark.parametrize(("wall_ns", "settling"), [(10 * 10**6, 4), (10 * 10**6 + 1, 1)])
def test_blocks_that_settle_a_call_are_not_kept(
    wall_ns: int, settling: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = count()
    ask = Asked.ask

    def numbered(worker: Asked, operation: Operation[Any], **how: Any) -> Any:
        found = ask(worker, operation, **how)
        for row in found.rows:
            row["calls"] = next(number)
        return found

    monkeypatch.setattr(Asked, "ask", numbered)
    sides = [side(None, tmp_path) for _ in range(2)]
    run(sides, [Asked(wall_ns=wall_ns) for _ in range(2)], monkeypatch)
    kept = sorted(row["calls"] for each in sides for row in rows(each))
    assert kept == list(range(2 * settling, 2 * (settling + 24)))


@pytest.mark.parametrize(
    ("start_s", "compiling_s", "recompilations", "timed"),
    [(19.9, 0.39, 6, 6), (19.9, 0.99, 4, 4), (5.0, 1.9, 2, 2), (5.0, 4.1, 1, 1), (20.0, 0.1, 0, 1)],
)
def test_it_is_compiled_as_many_times_as_there_is_time_for(
    start_s: float,
    compiling_s: float,
    recompilations: int,
    timed: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = iter([0.0, start_s, 100.0, 100.0 + compiling_s])
    monkeypatch.setattr(record_pair.time, "monotonic", moments.__next__)
    workers = [Asked(), Asked()]
    run([side({}, tmp_path) for _ in range(2)], workers, monkeypatch)
    assert workers[0].steps == workers[1].steps
    assert workers[0].steps.count("recompile") == recompilations
    assert [count for step, count in runs(workers[0].steps) if step == "time_blocks"] == [4 + 24 // timed] * timed


def test_what_cannot_be_compiled_twice_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sides, workers = [side({}, tmp_path) for _ in range(2)], [Asked(fails=True), Asked()]
    for number in (1, 2):
        run(sides, workers, monkeypatch, number)
    assert sides[0].warnings == [
        "base could not compile the call again, so no later process was asked to: recompile failed: no space"
    ]
    assert [worker.steps.count("recompile") for worker in workers] == [1, 12]
    assert [worker.steps.count("time_blocks") for worker in workers] == [2 * 6 * (4 + 4)] * 2


class Attached:
    """A sampler that writes down where it was attached, when, and to whom."""

    log: list[tuple[Any, ...]]
    threads: list[bool]

    def __init__(self, pid: int, count: int, folder: Path, name: str, core: int | None, *, threads: bool) -> None:
        self.pid = pid
        self.threads.append(threads)
        self.log.append(("attach", pid, count, core))

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.append(("close", self.pid))

    def wait_until_begun(self) -> None:
        self.log.append(("begun", self.pid))

    def stacks_per_call(self, call_ns: float) -> float:
        return call_ns / 500.0

    def end(self, since_ns: int) -> None:
        self.log.append(("end", self.pid, since_ns))

    def finish(self) -> SamplerRun:
        self.log.append(("finish", self.pid))
        if self.pid < 0:
            raise MeasurementError("refused")
        settling = f"g (a.py:1);settle (overhead_lens/instruments/samples/worker.py:61);f (a.py:1) {SETTLING}\n"
        return SamplerRun((sequence(f"{settling}f (a.py:1) {self.pid}"),), self.pid + SETTLING, 0)


class Spinning(Asked):
    """A worker with a pid."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid = pid

    def ask(self, operation: Operation[Any], **arguments: Any) -> Any:
        if step_of(operation) == "allow_tracing":
            return Traceable(self.pid)
        if step_of(operation) == "stop":
            Attached.log.append(("stop", self.pid))
            return None
        return super().ask(operation, **arguments)

    def send(self, operation: Operation[Any], **_: Any) -> None:
        Attached.log.append((step_of(operation), self.pid))

    def receive(self, _: Operation[Any]) -> Any:
        return Spins(1_000 + self.pid, 500.0)


def stacks(found: Side) -> SampleStacks:
    return found.of(SampleStacks)


def sampled(
    idle: list[int], pids: tuple[int, int], number: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Side]:
    Attached.log, Attached.threads = [], []
    monkeypatch.setattr(samples, "Sampling", Attached)
    monkeypatch.setattr(record_pair, "idle_cores", lambda: idle)
    monkeypatch.setattr(MeasurePageFaults, "measure", lambda *_: None)
    sides = [side(None, folder), side(None, folder)]
    run(sides, [Spinning(pid) for pid in pids], monkeypatch, number)
    return sides


def test_both_sides_are_sampled_at_the_same_time_where_two_cores_are_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = EFFORT.samples_per_process
    # Of every fifth round as of every second, cores are exchanged each time.
    for every, number, first, second in (
        (5, 0, 7, 9),
        (5, 5, 9, 7),
        (5, 10, 7, 9),
        (2, 0, 7, 9),
        (2, 2, 9, 7),
        (2, 4, 7, 9),
    ):
        monkeypatch.setattr(sys.modules[__name__], "EFFORT", replace(EFFORT, sampled_every=every))
        sides = sampled([2, 4, 5], (7, 9), number, tmp_path, monkeypatch)
        assert Attached.log == [
            *(("attach", first, count, 2), ("begun", first), ("spin", first)),
            *(("attach", second, count, 4), ("begun", second), ("spin", second)),
            *(("end", first, 1_000 + first), ("end", second, 1_000 + second)),
            *(("finish", first), ("stop", first), ("close", first)),
            *(("finish", second), ("stop", second), ("close", second)),
        ]
        assert [stacks(each).sampled.samples for each in sides] == [7, 9]
        assert [stacks(each).folded for each in sides] == [["f (a.py:1) 7\n"], ["f (a.py:1) 9\n"]]


@pytest.mark.parametrize(
    ("others", "at_once"), [((28, 500), True), ((16, 5_000), True), ((17, 501), False), ((28, 5_000), False)]
)
def test_a_call_that_uses_other_threads_is_sampled_by_itself(
    others: tuple[int, int], at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spinning, "others", property(lambda worker: others if worker.pid == 9 else (0, 0)))
    sampled([2, 4, 5], (7, 9), 0, tmp_path, monkeypatch)
    attached = [entry for entry in Attached.log if entry[0] == "attach"]
    count = EFFORT.samples_per_process
    assert Attached.threads == [not at_once] * 2
    if at_once:
        assert attached == [("attach", 7, count, 2), ("attach", 9, count, 4)]
    else:
        assert attached == [("attach", 7, count // 2, None), ("attach", 9, count // 2, None)]


def test_calls_on_a_device_are_sampled_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recording, "device", "cuda")
    sampled([2, 4, 5], (7, 9), 0, tmp_path, monkeypatch)
    count = EFFORT.samples_per_process // 2
    assert [entry for entry in Attached.log if entry[0] in ("attach", "close")] == [
        *(("attach", 7, count, None), ("close", 7)),
        *(("attach", 9, count, None), ("close", 9)),
    ]


@pytest.mark.parametrize(("others", "waits"), [((0, 0), 0), ((3, 500), 0), ((3, 501), 3), ((28, 5_000), 28)])
def test_a_block_waits_for_the_threads_of_the_one_before(
    others: tuple[int, int], waits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spinning, "others", property(lambda worker: others if worker.pid == 9 else (0, 0)))
    log: list[Any] = []
    monkeypatch.setattr(record_pair, "wait_until_idle", lambda workers: log.append([worker.pid for worker in workers]))
    ask = Spinning.ask

    def logged(worker: Spinning, operation: Operation[Any], **how: Any) -> Any:
        if step_of(operation) == "time_blocks":
            log.append(worker.pid)
        return ask(worker, operation, **how)

    monkeypatch.setattr(Spinning, "ask", logged)
    sampled([2, 4], (7, 9), 0, tmp_path, monkeypatch)
    blocks = [entry for entry in log if not isinstance(entry, list)]
    # Each wait is for both processes; it comes after a block of process 9 that had threads, unless that was the last of all.
    after = [before for before, entry in zip(log, log[1:], strict=False) if isinstance(entry, list)]
    assert after == [9] * (waits - (waits == 28 and blocks[-1] == 9))
    assert [entry for entry in log if isinstance(entry, list)] == [[7, 9]] * len(after)
    assert sorted(blocks) == [7] * 28 + [9] * 28


def test_waiting_for_threads_counts_as_measuring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = [0]

    def wait(_: Any) -> None:
        now_ns[0] += 90 * 10**6

    monkeypatch.setattr(record_pair.time, "monotonic_ns", lambda: now_ns[0])
    monkeypatch.setattr(record_pair, "wait_until_idle", wait)
    monkeypatch.setattr(Spinning, "others", (10**6, 5_000))
    # 2 s for both sides: 180 ms for a pair of blocks, both of which wait, and 12 us of their own.
    sides = sampled([2, 4], (7, 9), 0, tmp_path, monkeypatch)
    assert [len(rows(each)) for each in sides] == [12, 12]


def test_else_one_after_the_other_with_half_as_many_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = EFFORT.samples_per_process // 2
    sampled([3], (7, 9), 0, tmp_path, monkeypatch)
    assert Attached.threads == [False, False]
    assert Attached.log == [
        *(
            ("attach", 7, half, None),
            ("begun", 7),
            ("spin", 7),
            ("end", 7, 1_007),
            ("finish", 7),
            ("stop", 7),
            ("close", 7),
        ),
        *(
            ("attach", 9, half, None),
            ("begun", 9),
            ("spin", 9),
            ("end", 9, 1_009),
            ("finish", 9),
            ("stop", 9),
            ("close", 9),
        ),
    ]


def test_a_refusal_of_one_side_leaves_the_other_its_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = sampled([0, 1], (-7, 9), 0, tmp_path, monkeypatch)
    assert [stacks(each).sampled.reason for each in sides] == ["refused", None]
    assert [stacks(each).sampled.samples for each in sides] == [0, 9]
    assert Attached.log[-5:-3] == [("stop", -7), ("close", -7)]


def test_no_round_has_a_variable_that_is_too_long_to_start_a_process() -> None:
    rounds = [record_pair.layout(number) for number in range(2_000)]
    assert max(len(f"{name}={value}") for each in rounds for name, value in each.items()) < 2**17
    assert len({str(each) for each in rounds}) == 2_000
    assert rounds[9]["OVERHEAD_LENS_PADDING"] == 9 * 112 * "x"


@needs_compiler
@pytest.mark.filterwarnings("ignore")
def test_compiled_anew_is_other_code_with_the_same_result() -> None:
    first = workload.load(parse_target("add1"), {}, {})
    counts = [first.compile_count()]
    workload.compile_call(first)
    counts.append(first.compile_count())
    again = workload.recompiled(first)
    workload.compile_call(again)
    counts.append(again.compile_count())
    assert again.call is not first.call
    assert counts[2] - counts[1] == counts[1] - counts[0] == 1
    assert torch.equal(again.call(*again.args), first.original(*first.args))
    # Not those of before.
    assert len(guards.list_guards(session_of(again))["compilations"]) == 1
    # Nothing was left to compile.
    assert again.compile_count() == counts[2]


@pytest.mark.parametrize(("others_ns", "threads"), [(0, False), (500, False), (501, True)])
def test_a_profiled_call_that_uses_other_threads_is_sampled_so(
    others_ns: int, threads: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spinning, "others", property(lambda _: (1, others_ns)))
    monkeypatch.setattr(MeasurePageFaults, "measure", lambda *_: None)
    monkeypatch.setattr(samples, "Sampling", Attached)
    Attached.log, Attached.threads = [], []
    found = side(None, tmp_path)
    worker: Any = Spinning(7)
    found.give_turns(When.TIMED, 0, worker)
    found.give_turns(When.SAMPLED, 0, worker)
    assert Attached.threads == [threads]
    assert Attached.log[0] == ("attach", 7, EFFORT.samples_per_process, None)
    assert stacks(found).folded == ["f (a.py:1) 7\n"]
