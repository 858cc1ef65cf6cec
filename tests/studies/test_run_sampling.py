"""The sampler of a run, driven by a program that is drawn: what it is asked, when another one takes over, what is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead_lens.errors import MeasurementError
from overhead_lens.machine import thread_clocks
from overhead_lens.program.area import Area, Word
from overhead_lens.samplers.sampler import NoStackError, NotPermittedError, SamplerRun, Watch
from overhead_lens.studies.run import sampling
from overhead_lens.studies.run.sampling import RunSampler

PID, MODEL = 123, 125
S = 1_000_000_000


class Drawn:
    """A program, a sampler and a machine that do as they are told, and a log of what is asked of the sampler."""

    def __init__(self, folder: Path) -> None:
        self.area = Area.create(folder)
        self.log: list[Any] = []
        self.now_ns = 100 * S
        self.threads = [PID, MODEL]
        self.thread_cpu_ns: dict[int, int] = {}
        self.children_cpu_ns: dict[int, int] = {}
        self.is_there = True
        self.reason = ""
        self.fails: dict[str, MeasurementError] = {}
        self.started = 0
        self.over = False
        self.caught_up: bool | None = False
        self.slept_s: list[float] = []

    def does(self, what: str) -> None:
        self.log.append(what)
        if what in self.fails:
            raise self.fails[what]

    def wants(self, number: int, after_ns: int = S) -> None:
        self.now_ns += after_ns
        self.area.write(Word.REQUESTED, number)

    @property
    def answered(self) -> int:
        return self.area.read(Word.ANSWERED)

    def said(self) -> list[Any]:
        """The log since the last time."""
        log, self.log = self.log, []
        return log


class DrawnRunning:
    def __init__(self, drawn: Drawn) -> None:
        self._drawn = drawn
        drawn.started += 1
        drawn.over = False
        self.pid = 1_000 + drawn.started

    def __enter__(self) -> DrawnRunning:
        return self

    def __exit__(self, *_: object) -> None:
        self._drawn.log.append("gone")

    @property
    def over(self) -> bool:
        return self._drawn.over

    @property
    def caught_up(self) -> bool | None:
        return self._drawn.caught_up

    def finish(self) -> SamplerRun:
        self._drawn.does("finish")
        return SamplerRun(((f"thread ({PID}): MainThread;f (a.py:1)",),), self._drawn.started, 0)

    def __getattr__(self, name: str) -> Callable[[], None]:
        return lambda: self._drawn.does({"wait_until_begun": "begun"}.get(name, name))


class DrawnPlacement:
    def __init__(self, drawn: Drawn, pid: int) -> None:
        self._drawn = drawn
        self.core: int | None = None
        assert pid == PID

    def __enter__(self) -> DrawnPlacement:
        return self

    def __exit__(self, *_: object) -> None:
        self._drawn.log.append("no placement")

    @property
    def reason(self) -> str:
        return self._drawn.reason

    def place(self, thread: int, sampler: int) -> bool:
        self._drawn.log.append(("place", thread, sampler))
        self.core = None if self._drawn.reason else 5
        return not self._drawn.reason

    def follow(self) -> None:
        self._drawn.log.append("follow")

    def put_back(self) -> None:
        self._drawn.log.append("put back")
        self.core = None


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drawn:
    drawn = Drawn(tmp_path)

    def start(watch: Watch) -> DrawnRunning:
        assert (watch.pid, watch.duration_s, watch.bound, watch.by_thread) == (PID, None, True, True)
        drawn.does(f"start at {watch.rate_hz} Hz{' with children' if watch.subprocesses else ''}")
        return DrawnRunning(drawn)

    clock = SimpleNamespace(
        monotonic=lambda: drawn.now_ns / S, monotonic_ns=lambda: drawn.now_ns, sleep=drawn.slept_s.append
    )
    named: dict[str, Any] = {
        "start_py_spy": start,
        "Placement": lambda pid: DrawnPlacement(drawn, pid),
        "time": clock,
        "threads_of": lambda pid: drawn.threads,
        "runs": lambda pid: drawn.is_there,
        "thread_cpu_ns": lambda pid: drawn.thread_cpu_ns,
        "cpu_ns": drawn.children_cpu_ns.get,
        "descendants": lambda pid: list(drawn.children_cpu_ns),
    }
    for name, value in named.items():
        monkeypatch.setattr(sampling, name, value)
    monkeypatch.setattr(thread_clocks, "time", clock)
    monkeypatch.setattr(thread_clocks, "thread_cpu_ns", lambda pid: dict(drawn.thread_cpu_ns))
    return drawn


@pytest.fixture
def sampler(drawn: Drawn, tmp_path: Path) -> RunSampler:
    """The sampler of a program that has begun and shown steps in its thread ``MODEL``."""
    sampler = RunSampler(PID, drawn.area, tmp_path)
    sampler.attend()
    assert drawn.said() == []
    drawn.area.write(Word.STARTED_NS, 7)
    sampler.attend()
    assert drawn.said() == ["start at 100 Hz", "begun"]
    drawn.area.write(Word.THREAD, MODEL)
    drawn.area.write(Word.FOUND, 1)
    return sampler


def turn(drawn: Drawn, sampler: RunSampler, number: int, *, sampled_s: float = 1.0, resting_s: float = 1.0) -> None:
    """A turn in which the thread runs for ``sampled_s`` of a second, and a second of rest with ``resting_s``."""
    drawn.caught_up = True
    for wanted, running_s in ((2 * number - 1, sampled_s), (2 * number, resting_s)):
        drawn.wants(wanted, after_ns=0)
        attended(sampler, wanted)
        assert drawn.answered == wanted
        drawn.now_ns += S
        drawn.thread_cpu_ns[MODEL] = drawn.thread_cpu_ns.get(MODEL, 0) + round(running_s * S)


def attended(sampler: RunSampler, number: int) -> None:
    """A request is answered; one for stacks when the sampler has gone on and, if it had rested, caught up."""
    for _ in range(1 + number % 2):
        sampler.attend()


SAMPLE = [("place", MODEL, 1_001), "resume"]
REST = ["put back", "pause"]
ENDED = ["put back", "stop", "finish", "gone"]


# ---------------------------------------------------------------- turns
def test_it_answers_what_it_is_asked(drawn: Drawn, sampler: RunSampler) -> None:
    drawn.wants(1)
    attended(sampler, 1)
    assert (drawn.said(), drawn.answered, drawn.area.read(Word.PLACED)) == (SAMPLE, 1, 6)
    sampler.attend()
    assert drawn.said() == ["follow"]
    drawn.wants(2)
    sampler.attend()
    assert (drawn.said(), drawn.answered, drawn.area.read(Word.PLACED)) == (REST, 2, 0)
    sampler.attend()
    assert drawn.said() == []
    drawn.wants(3)
    drawn.caught_up = True
    attended(sampler, 3)
    assert (drawn.said(), drawn.answered) == (SAMPLE, 3)
    drawn.area.write(Word.ENOUGH, 1)
    sampler.attend()
    assert (drawn.said(), drawn.area.read(Word.REFUSED), drawn.area.read(Word.PLACED)) == (ENDED, 0, 0)
    sampler.attend()
    assert drawn.said() == []
    ((run, rate_hz, alive),) = [(each.run, each.rate_hz, each.alive) for each in sampler.sampled]
    assert (run.sample_count, rate_hz, alive) == (1, 100, frozenset({PID, MODEL}))
    assert (sampler.reason, sampler.unplaced) == ("", "")


def test_other_steps_after_all_turns_are_sampled_too(drawn: Drawn, sampler: RunSampler) -> None:
    turn(drawn, sampler, 1)
    drawn.area.write(Word.ENOUGH, 1)
    sampler.attend()
    sampler.attend()
    assert (drawn.said()[-4:], sampler.wait_s) == (ENDED, 0.05)
    drawn.area.write(Word.ENOUGH, 0)
    sampler.attend()
    assert drawn.said() == ["start at 100 Hz", "begun"]
    drawn.wants(3)
    attended(sampler, 3)
    assert (drawn.said(), drawn.answered) == ([("place", MODEL, 1_002), "resume"], 3)


def test_threads_that_take_turns_in_other_steps_are_not_placed_either(drawn: Drawn, sampler: RunSampler) -> None:
    turn(drawn, sampler, 1)
    drawn.wants(3)
    attended(sampler, 3)
    # Their thread ends within the second turn.
    drawn.threads = [PID, 126]
    for _ in range(2):
        sampler.attend()
    drawn.area.write(Word.THREAD, 126)
    drawn.area.write(Word.ENOUGH, 0)
    sampler.attend()
    drawn.said()
    drawn.thread_cpu_ns = {PID: S // 2, 126: S // 2}
    drawn.wants(5)
    attended(sampler, 5)
    assert (drawn.said(), drawn.answered) == (["resume"], 5)


def test_other_steps_in_the_middle_of_a_turn_end_it(drawn: Drawn, sampler: RunSampler) -> None:
    drawn.wants(1)
    attended(sampler, 1)
    drawn.area.write(Word.THREAD, PID)
    drawn.said()
    drawn.wants(3)
    drawn.caught_up = True
    attended(sampler, 3)
    assert (drawn.said(), drawn.answered) == ([*REST, ("place", PID, 1_001), "resume"], 3)


def test_threads_that_cannot_be_placed_are_sampled_all_the_same(drawn: Drawn, sampler: RunSampler) -> None:
    drawn.reason = "the program places its threads on cores itself"
    drawn.wants(1)
    attended(sampler, 1)
    assert (drawn.answered, drawn.area.read(Word.PLACED), sampler.unplaced) == (1, 0, drawn.reason)
    assert drawn.said() == SAMPLE


def test_leaving_ends_it_whatever_it_does(drawn: Drawn, tmp_path: Path) -> None:
    with RunSampler(PID, drawn.area, tmp_path) as sampler:
        drawn.area.write(Word.STARTED_NS, 7)
        sampler.attend()
        drawn.wants(1)
        sampler.attend()
        drawn.said()
    assert drawn.said() == [*ENDED, "no placement"]
    assert (drawn.area.read(Word.REFUSED), len(sampler.sampled)) == (1, 1)


def test_how_long_to_wait_before_it_looks_again(drawn: Drawn, sampler: RunSampler) -> None:
    waits = [sampler.wait_s]
    for number in (1, 2):
        drawn.wants(number)
        attended(sampler, number)
        waits.append(sampler.wait_s)
    assert waits == [0.01, 0.01, 0.05]
    drawn.wants(3)
    sampler.attend()
    # It catches up.
    assert (drawn.answered, sampler.wait_s) == (2, 0.01)
    drawn.caught_up = True
    sampler.attend()
    assert (drawn.answered, sampler.wait_s) == (3, 0.01)
    drawn.area.write(Word.RELEASED, 3)
    assert sampler.wait_s == 0.05


def test_a_held_program_goes_on_when_the_sampler_has_caught_up_and_taken_a_stack(
    drawn: Drawn, sampler: RunSampler
) -> None:
    def released() -> int:
        sampler.attend()
        return drawn.area.read(Word.RELEASED)

    drawn.wants(1)
    attended(sampler, 1)
    drawn.caught_up = True
    assert released() == 0
    drawn.area.write(Word.HELD, 1)
    drawn.caught_up = False
    assert (released(), drawn.slept_s) == (0, [0.025])
    drawn.caught_up = True
    # Two and a half stacks at 100 Hz in each hold.
    assert (released(), drawn.slept_s) == (1, 2 * [0.025])
    assert (released(), drawn.slept_s) == (1, 2 * [0.025])
    drawn.wants(2)
    sampler.attend()
    drawn.wants(3)
    attended(sampler, 3)
    assert released() == 1
    drawn.area.write(Word.HELD, 3)
    assert (released(), drawn.slept_s) == (3, 4 * [0.025])


@pytest.mark.parametrize(("caught_up", "answered"), [(True, [3, 3]), (False, [2, 3]), (None, [3, 3])])
def test_what_was_due_while_it_rested_is_of_no_turn(
    drawn: Drawn, sampler: RunSampler, caught_up: bool | None, answered: list[int]
) -> None:
    """It goes on in the first hold, and the steps count from when it has caught up; or does not within as long as it rested."""
    for number in (1, 2):
        drawn.wants(number)
        attended(sampler, number)
    drawn.wants(3, after_ns=4 * S)
    drawn.caught_up = caught_up
    sampler.attend()
    assert (drawn.area.read(Word.RESUMED), drawn.answered) == (3, 2)
    answers = []
    for after_ns in (4 * S - 1, 1):
        drawn.now_ns += after_ns
        sampler.attend()
        answers.append(drawn.answered)
    assert answers == answered
    assert [what for what in drawn.said() if what == "resume"] == 2 * ["resume"]


@pytest.mark.parametrize(("before_s", "longest_s"), [(1, 600), (700, 700)])
def test_a_turn_that_is_longer_than_all_steps_before_it_is_the_last(
    drawn: Drawn, sampler: RunSampler, before_s: int, longest_s: int
) -> None:
    sampler.attend()
    drawn.wants(1, after_ns=before_s * S)
    attended(sampler, 1)
    drawn.said()
    drawn.now_ns += longest_s * S
    sampler.attend()
    assert drawn.said() == ["follow"]
    drawn.now_ns += S
    sampler.attend()
    sampler.attend()
    assert drawn.said() == ["follow", *ENDED]
    assert [drawn.area.read(word) for word in (Word.ENOUGH, Word.REFUSED, Word.PLACED)] == [1, 0, 0]
    assert (len(sampler.sampled), sampler.reason) == (1, "")


def test_a_turn_ends_with_its_thread(drawn: Drawn, sampler: RunSampler) -> None:
    sampler.attend()
    drawn.wants(1)
    attended(sampler, 1)
    sampler.attend()
    drawn.said()
    drawn.threads = [PID, 126]
    sampler.attend()
    sampler.attend()
    assert drawn.said() == ["follow", *ENDED]
    assert [drawn.area.read(word) for word in (Word.ENOUGH, Word.REFUSED, Word.PLACED)] == [1, 0, 0]


# ---------------------------------------------------------------- another sampler
def test_a_program_without_steps_is_looked_at_less_often(drawn: Drawn, sampler: RunSampler) -> None:
    drawn.area.write(Word.FOUND, 0)
    drawn.now_ns += 10 * S
    sampler.attend()
    assert drawn.said() == []
    drawn.now_ns += 1
    sampler.attend()
    assert drawn.said() == [*ENDED, "start at 20 Hz", "begun"]
    drawn.now_ns += 599 * S
    sampler.attend()
    assert drawn.said() == []
    # py-spy keeps all stacks in memory.
    drawn.now_ns += 2 * S
    sampler.attend()
    assert drawn.said() == [*ENDED, "start at 10 Hz", "begun"]
    # Steps after all.
    drawn.area.write(Word.FOUND, 1)
    drawn.wants(1)
    sampler.attend()
    assert drawn.said() == [*ENDED, "start at 100 Hz", "begun", ("place", MODEL, 1_004), "resume"]
    sampler.__exit__()
    assert [(each.rate_hz, each.run.sample_count) for each in sampler.sampled] == [(100, 1), (20, 2), (10, 3), (100, 4)]


def test_a_thread_that_hardly_runs_while_it_is_sampled_is_stopped_less_often(drawn: Drawn, sampler: RunSampler) -> None:
    turn(drawn, sampler, 1, sampled_s=0.6, resting_s=1.0)
    turn(drawn, sampler, 2, sampled_s=0.59, resting_s=1.0)
    assert drawn.said() == [*SAMPLE, *REST, *SAMPLE, *REST]
    turn(drawn, sampler, 3, sampled_s=0.1)
    again = [("place", MODEL, 1_002), "resume"]
    assert drawn.said() == [*ENDED, "start at 50 Hz", "begun", *again, *REST]
    for number in (4, 5, 6, 7):
        turn(drawn, sampler, number, sampled_s=0.1)
    rates = [each for each in drawn.said() if str(each).startswith("start")]
    assert rates == ["start at 25 Hz", "start at 20 Hz"]


@pytest.mark.parametrize(("after_s", "restart"), [(59, []), (60, [*ENDED, "start at 100 Hz", "begun"])])
def test_after_a_long_rest_another_one_begins(
    drawn: Drawn, sampler: RunSampler, after_s: int, restart: list[str]
) -> None:
    turn(drawn, sampler, 1)  # its rest has lasted for a second
    drawn.said()
    drawn.wants(3, after_ns=after_s * S)
    sampler.attend()
    assert drawn.said() == [*restart, ("place", MODEL, 1_000 + drawn.started), "resume"]


def test_what_threads_run_while_it_rests_is_known_whatever_sampler_comes_next(
    drawn: Drawn, sampler: RunSampler
) -> None:
    assert sampler.rested.running == {}
    for number, resting_s in ((1, 0.9), (2, 0.7), (3, 0.5)):
        turn(drawn, sampler, number, sampled_s=0.1, resting_s=resting_s)
    assert [each for each in drawn.said() if str(each).startswith("start")] == ["start at 50 Hz", "start at 25 Hz"]
    # The third rest is not over.
    assert sampler.rested.running == {MODEL: pytest.approx(0.8)}


def test_children_that_go_on_computing_are_sampled(drawn: Drawn, sampler: RunSampler) -> None:
    drawn.children_cpu_ns.update({200: 0, 201: 0})
    starts = []
    for number in range(1, 7):
        turn(drawn, sampler, number)
        starts.append([each for each in drawn.said() if str(each).startswith("start")])
        # One that computes now and then, and one that does from the third turn on.
        drawn.children_cpu_ns[200] += (number % 2) * S
        drawn.children_cpu_ns[201] += (number > 2) * S
    # Its clock was read before the fourth turn, and twice it had gone on since.
    assert starts == [[], [], [], [], ["start at 100 Hz with children"], []]


def test_a_child_that_ends_is_no_worker(drawn: Drawn, sampler: RunSampler) -> None:
    for number in range(1, 5):
        drawn.children_cpu_ns.clear()
        drawn.children_cpu_ns[200 + number] = number * S
        turn(drawn, sampler, number)
    assert drawn.started == 1


# ---------------------------------------------------------------- failures
@pytest.mark.parametrize("fails", ["start at 100 Hz", "begun"])
def test_one_that_does_not_begin_is_none_and_the_program_is_told(drawn: Drawn, tmp_path: Path, fails: str) -> None:
    drawn.fails = {fails: NotPermittedError("ptrace is not permitted"), "finish": MeasurementError("it never ran")}
    drawn.area.write(Word.STARTED_NS, 7)
    sampler = RunSampler(PID, drawn.area, tmp_path)
    sampler.attend()
    assert (drawn.area.read(Word.REFUSED), sampler.sampled) == (1, [])
    assert sampler.reason == ("ptrace is not permitted" if fails != "begun" else "it never ran")
    drawn.said()
    sampler.attend()
    assert drawn.said() == []


@pytest.mark.parametrize("at", ["pause", "resume"])
def test_one_that_fails_in_a_turn_keeps_what_it_has(drawn: Drawn, sampler: RunSampler, at: str) -> None:
    drawn.fails = {at: MeasurementError("py-spy does not release its target")}
    for number in (1, 2):
        drawn.wants(number)
        attended(sampler, number)
    assert drawn.area.read(Word.REFUSED) == 1
    assert drawn.answered == (1 if at == "pause" else 0)
    assert (sampler.reason, len(sampler.sampled)) == ("py-spy does not release its target", 1)
    assert drawn.said()[-4:] == ENDED
    assert drawn.area.read(Word.PLACED) == 0


def test_one_that_dies_is_replaced_once(drawn: Drawn, sampler: RunSampler) -> None:
    drawn.wants(1)
    sampler.attend()
    drawn.fails = {"finish": MeasurementError("py-spy was ended by SIGKILL")}
    drawn.over = True
    drawn.said()
    sampler.attend()
    assert drawn.said() == [*ENDED, "start at 100 Hz", "begun"]
    assert (drawn.area.read(Word.REFUSED), drawn.area.read(Word.PLACED)) == (0, 0)
    drawn.wants(2)
    sampler.attend()
    assert (drawn.said(), drawn.answered) == (REST, 2)
    drawn.over = True
    sampler.attend()
    assert (drawn.said(), drawn.area.read(Word.REFUSED)) == ([*ENDED, "put back"], 1)
    assert (sampler.reason, sampler.sampled) == ("py-spy was ended by SIGKILL", [])


@pytest.mark.parametrize("word", [Word.FINISHED_NS, None])
def test_the_programs_end_is_no_reason(drawn: Drawn, sampler: RunSampler, word: Word | None) -> None:
    drawn.fails = {"finish": MeasurementError("py-spy failed: no such process")}
    if word is None:
        drawn.is_there, drawn.over = False, True
    else:
        drawn.area.write(word, 9)
    sampler.attend()
    assert (drawn.said()[:4], sampler.reason, drawn.area.read(Word.REFUSED)) == (ENDED, "", word is None)
    assert drawn.started == 1


def test_stopped_before_its_first_stack_it_gives_none_and_no_reason(drawn: Drawn, sampler: RunSampler) -> None:
    drawn.fails = {"finish": NoStackError("py-spy took no samples")}
    drawn.area.write(Word.ENOUGH, 1)
    sampler.attend()
    assert (drawn.said(), sampler.sampled, sampler.reason) == (ENDED, [], "")


def test_threads_are_those_that_were_there_at_the_end(drawn: Drawn, sampler: RunSampler) -> None:
    drawn.threads = [PID, MODEL, 126]
    sampler.attend()
    # The process is gone, or its threads cannot be read any more.
    drawn.threads = []
    drawn.area.write(Word.FINISHED_NS, 9)
    sampler.attend()
    assert [each.alive for each in sampler.sampled] == [frozenset({PID, MODEL, 126})]
