"""The watcher inside a program, driven by a drawn clock: which marks are steps, what measures them, and regions."""

from __future__ import annotations

import builtins
import gc
import json
import os
import signal
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead_lens.program import watcher as watching
from overhead_lens.program.area import NOTES, Area, Phase, StepRecord, Word
from overhead_lens.program.loops import EACH, LEFT, TICK, Loop, marked
from overhead_lens.program.watcher import KINDS, StepWatcher

MS = 1_000_000
S = 1_000_000_000
CODE = compile("pass", "train.py", "exec")
OUTER, INNER = Loop("train.py", 3, 9), Loop("train.py", 5, 7)


class DrawnTrace:
    """Stands in for torch.profiler."""

    steps = 3
    reason = ""
    sees_device = False

    def __init__(self, folder: Path) -> None:
        self.traced: list[int] = []

    def begin(self, step_ns: float) -> bool:
        return not self.reason

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        yield
        self.traced.append(number)

    def close_window(self) -> None:
        pass

    def abandon(self) -> None:
        pass

    def end(self) -> None:
        assert self.traced == [0, 1, 2]

    def forget(self) -> None:
        pass

    def would_see_device(self) -> bool:
        return self.sees_device


class Program:
    """A program under the watcher, and the recorder that answers it."""

    def __init__(self, folder: Path, loops: tuple[Loop, ...] = (), kinds: tuple[str, ...] = KINDS) -> None:
        self.now_ns = 1_000
        self.folder = folder
        self.area = Area.create(folder)
        self.holds: list[int] = []
        self.watcher = StepWatcher(self.area, folder, kinds)
        self.watcher.watch_loops(loops)

    def resume(self) -> None:
        self.now_ns += MS
        assert self.area.read(Word.REQUESTED) % 2

    def hold(self) -> None:
        self.now_ns += 5 * MS
        self.holds.append(len(self.rows()))

    def mark(self, kind: str, key: object = None, after_ns: int = 10 * MS) -> None:
        self.now_ns += after_ns
        self.watcher.marked(kind, key)

    def tick(self, number: int = 0, after_ns: int = 10 * MS) -> None:
        self.now_ns += after_ns
        getattr(builtins, TICK.format(number))()

    def leave(self, number: int = 0, after_ns: int = 10 * MS) -> None:
        self.now_ns += after_ns
        getattr(builtins, LEFT.format(number))()

    def chosen(self, kind: str = "optimizer", interval_ns: int = 10 * MS) -> None:
        """Let a source become the one that is measured."""
        for _ in range(3):
            self.mark(kind, after_ns=interval_ns)
        assert self.found_by == kind

    @property
    def found_by(self) -> str | None:
        return self.notes().get("found_by")

    def notes(self) -> dict[str, Any]:
        path = self.folder / NOTES
        lines = path.read_text().splitlines() if path.exists() else []
        return {name: value for line in lines for name, value in json.loads(line).items()}

    def rows(self) -> list[StepRecord]:
        return self.area.rows()

    def phases(self) -> list[tuple[Phase, int]]:
        """Stretches of one phase, with their steps."""
        return [(Phase(phase), len(list(steps))) for phase, steps in groupby(row.phase for row in self.rows())]


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What a forked child does first."""
    actions: list[Callable[[], None]] = []
    monkeypatch.setattr(os, "register_at_fork", lambda *, after_in_child: actions.append(after_in_child))
    return actions


@pytest.fixture
def start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked: list[Callable[[], None]]
) -> Iterator[Callable[..., Program]]:
    programs: list[Program] = []
    monkeypatch.setattr(watching, "_clock", lambda: programs[-1].now_ns if programs else 0)
    monkeypatch.setattr(watching, "StepTrace", DrawnTrace)
    # The sampler catches up within 5 ms.
    monkeypatch.setattr(watching, "hold_until_sampled", lambda _: programs[-1].hold())
    monkeypatch.setattr(watching, "hold_until_resumed", lambda _: programs[-1].resume())

    def begin(*loops: Loop, kinds: tuple[str, ...] = KINDS) -> Program:
        programs.append(Program(tmp_path, loops, kinds))
        return programs[-1]

    yield begin
    for name in [name for name in vars(builtins) if name.startswith("__overhead_lens_")]:
        delattr(builtins, name)


# ---------------------------------------------------------------- which marks are steps
@pytest.mark.parametrize("better", range(len(KINDS) - 1))
def test_the_most_telling_source_is_waited_for_until_it_is_regular(start: Callable[..., Program], better: int) -> None:
    program = start()
    for worse in KINDS[better + 1 :]:
        for _ in range(2):
            program.mark(worse)
    program.mark(KINDS[better])
    for worse in KINDS[better + 1 :]:
        for _ in range(20):
            program.mark(worse, after_ns=S // 50)
    program.mark(KINDS[better])
    assert (program.found_by, program.area.read(Word.FOUND)) == (None, 0)
    program.mark(KINDS[better])
    assert (program.found_by, program.area.read(Word.FOUND)) == (KINDS[better], 1)
    assert program.notes()["before"] == 3
    for worse in KINDS[better + 1 :]:
        program.mark(worse)
    assert program.rows() == []
    program.mark(KINDS[better])
    assert len(program.rows()) == 1


def test_a_single_mark_of_a_more_telling_source_is_waited_for_no_longer_than_3_s(start: Callable[..., Program]) -> None:
    program = start()
    program.mark("module")
    for _ in range(29):
        program.mark("loop", after_ns=S // 10)
    assert program.found_by is None
    program.mark("loop", after_ns=S // 10)
    assert program.found_by == "loop"


@pytest.mark.parametrize("worse", range(1, len(KINDS) - 1))
def test_a_more_telling_source_takes_over_later(start: Callable[..., Program], worse: int) -> None:
    program = start()
    program.chosen(KINDS[worse])
    for _ in range(5):
        program.mark(KINDS[worse])
    for _ in range(2):
        program.mark(KINDS[worse - 1])
        program.mark(KINDS[worse])
    assert (program.found_by, len(program.rows())) == (KINDS[worse], 7)
    program.mark(KINDS[worse - 1])
    assert (program.found_by, program.rows()) == (KINDS[worse - 1], [])
    program.mark(KINDS[worse])
    program.mark(KINDS[worse - 1])
    ((begin_ns, end_ns, *_),) = program.rows()
    assert end_ns - begin_ns == 20 * MS


def test_hooks_are_taken_out_when_better_steps_have_warmed_up(start: Callable[..., Program]) -> None:
    program = start()
    gone: list[str] = []
    for kind in ("optimizer", "module"):
        program.watcher.let_go[kind] = lambda kind=kind: gone.append(kind)
    for kind, taken_out in (("optimizer", ["module"]), ("explicit", ["module", "optimizer"])):
        before = list(gone)
        program.chosen(kind, interval_ns=50 * MS)
        for _ in range(11):
            program.mark(kind, after_ns=50 * MS)
        assert gone == before
        program.mark(kind, after_ns=50 * MS)
        assert gone == taken_out


@pytest.mark.parametrize("better", range(1, len(KINDS) - 1))
def test_another_source_takes_over_from_one_that_falls_silent_before_it_is_measured(
    start: Callable[..., Program], better: int
) -> None:
    # As a module that is called a few times while it is exported.
    program = start(OUTER)
    program.chosen(KINDS[better])
    for _ in range(300):
        program.tick(after_ns=10 * MS)
    assert program.found_by == KINDS[better]
    for _ in range(100):
        program.tick(after_ns=10 * MS)
    assert program.found_by == KINDS[better]
    program.tick(after_ns=10 * MS)
    program.tick(after_ns=10 * MS)
    assert (program.found_by, len(program.rows())) == ("loop", 1)


def test_steps_are_not_silent_within_ten_of_their_intervals(start: Callable[..., Program]) -> None:
    program = start(OUTER)
    program.chosen("optimizer", interval_ns=2 * S)
    for _ in range(19):
        program.tick(after_ns=S)
    program.mark("optimizer", after_ns=S // 2)
    assert [row.end_ns - row.begin_ns for row in program.rows()] == [19 * S + S // 2]
    for _ in range(21 + 10):
        program.tick(after_ns=S)
    assert program.found_by == "loop"
    # All of its steps count once it is chosen again.
    for _ in range(3):
        program.mark("optimizer")
    assert (program.found_by, program.notes()["before"]) == ("optimizer", 3 + 1 + 3)


def test_another_module_takes_over_from_one_that_falls_silent(start: Callable[..., Program]) -> None:
    program = start()
    for _ in range(3):
        program.mark("module", "teacher")
    program.mark("module", "student", after_ns=4 * S)
    for _ in range(3):
        program.mark("module", "student")
    assert [row.end_ns - row.begin_ns for row in program.rows()] == [10 * MS]


@pytest.mark.parametrize("named", [True, False])
def test_steps_that_the_user_named_or_that_have_warmed_up_stay(start: Callable[..., Program], named: bool) -> None:
    program = start(OUTER)
    if named:
        program.chosen("explicit")
    else:
        warmed_up(program, 50)
    before = program.found_by
    for _ in range(40):
        program.tick(after_ns=S)
    assert program.found_by == before


def test_of_two_optimizers_the_first_that_is_regular(start: Callable[..., Program]) -> None:
    program = start()
    for _ in range(2):
        program.mark("optimizer", "generator")
        program.mark("optimizer", "critic")
    for _ in range(3):
        program.mark("optimizer", "generator")
        program.mark("optimizer", "critic")
    assert [row.end_ns - row.begin_ns for row in program.rows()] == [20 * MS] * 2


@pytest.mark.parametrize(("kind", "others_ns"), [("optimizer", 10 * MS), ("module", 0)])
def test_the_last_step_of_another_optimizer_is_noted(kind: str, others_ns: int, start: Callable[..., Program]) -> None:
    program = start()
    warmed_up(program, 50)
    ended_ns = program.now_ns
    program.mark(kind, "student")
    program.now_ns += S
    program.watcher.finish()
    assert program.notes()["others_ns"] == (ended_ns + others_ns if others_ns else 0)
    assert program.notes()["others"] == (kind if others_ns else "")


def test_steps_that_go_on_in_another_thread_are_noted(start: Callable[..., Program]) -> None:
    program = start()
    warmed_up(program, 50)
    OtherThread("other").do(program.mark, "optimizer")
    program.watcher.finish()
    assert (program.notes()["others"], program.notes()["others_ns"]) == ("thread", program.now_ns)


def test_a_step_that_the_user_named_is_the_only_source(start: Callable[..., Program]) -> None:
    program = start(OUTER, kinds=("explicit",))
    for _ in range(20):
        program.mark("optimizer")
        program.tick(after_ns=S)
    assert program.found_by is None
    program.chosen("explicit")


class OtherThread:
    """A thread of the program that does what it is told, one thing after the other."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, name)
        self.number = self.do(threading.get_native_id)
        self.name = self.do(lambda: threading.current_thread().name)

    def do(self, action: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return self._pool.submit(action, *arguments, **named).result()


def test_a_regular_source_of_another_thread_is_found(start: Callable[..., Program]) -> None:
    program = start()
    model = OtherThread("model")
    for _ in range(3):
        model.do(program.mark, "optimizer")
    assert program.found_by == "optimizer"
    assert program.area.read(Word.THREAD) == model.number != threading.get_native_id()
    notes = program.notes()
    assert (notes["thread"], notes["before"], notes["first_ns"]) == (model.name, 3, 1_000 + 10 * MS)
    # The same source in the main thread is another one.
    program.mark("optimizer")
    assert program.rows() == []
    model.do(program.mark, "optimizer")
    assert [row.end_ns - row.begin_ns for row in program.rows()] == [20 * MS]


def test_marks_of_several_threads_are_sources_of_their_own(start: Callable[..., Program]) -> None:
    program = start()
    threads = [OtherThread(f"short {number}") for number in range(5)]
    for thread in threads:
        thread.do(program.mark, "optimizer")
    assert program.found_by is None
    # Nor those of threads that are gone, whose identifiers the next ones have.
    for _ in range(5):
        short = threading.Thread(target=program.mark, args=("optimizer",))
        short.start()
        short.join()
    assert program.found_by is None
    program.chosen("optimizer")
    assert (program.area.read(Word.THREAD), program.notes()["thread"]) == (threading.get_native_id(), "")


def test_a_thread_with_the_identifier_of_one_that_has_ended_is_another(
    start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "threading", SimpleNamespace(**{**vars(threading), "get_ident": lambda: 7}))
    program = start()
    replies = [OtherThread("reply") for _ in range(2)]
    for reply in replies:
        for _ in range(5):
            reply.do(program.mark, "module")
    assert len(program.rows()) == 2
    assert program.area.read(Word.THREAD) == replies[0].number


def test_steps_of_another_thread_are_sampled_and_not_traced(start: Callable[..., Program]) -> None:
    program = start()
    model = OtherThread("model")
    sampler = answering(program)
    for step in range(400):
        model.do(program.mark, "optimizer")
        sampler(step)
    phases = [phase for phase, _ in program.phases()]
    assert phases.count(Phase.SAMPLED) == 3
    assert Phase.TRACED not in phases
    assert program.notes()["untraced"] == "they run in another thread than the main one"


def test_a_more_telling_source_of_another_thread_takes_over(start: Callable[..., Program]) -> None:
    program = start(OUTER)
    for _ in range(12):
        program.tick(after_ns=100 * MS)
    assert program.found_by == "loop"
    model = OtherThread("model")
    for _ in range(3):
        model.do(program.mark, "module")
    assert (program.found_by, program.notes()["thread"]) == ("module", model.name)
    assert program.area.read(Word.THREAD) == model.number


def test_the_outermost_of_loops_that_turn_often(start: Callable[..., Program]) -> None:
    program = start(OUTER, INNER)
    while program.found_by is None:
        program.tick(0, after_ns=10 * MS)
        for _ in range(4):
            program.tick(1)
        program.leave(1)
    assert program.now_ns >= S
    assert program.notes()["home"] == ["train.py", "", 3, 9]
    program.tick(0)
    assert len(program.rows()) == 1


def test_not_a_loop_that_turns_seldom(start: Callable[..., Program]) -> None:
    program = start(OUTER, INNER)
    while program.found_by is None:
        program.tick(0)
        for _ in range(40):
            program.tick(1)
        program.leave(1)
    assert program.notes()["home"] == ["train.py", "", 5, 7]


@pytest.mark.parametrize(("inner_ns", "home"), [(1_999, [3, 9]), (2_000, [5, 7])])
def test_not_a_loop_whose_iterations_are_shorter_than_their_marks(
    start: Callable[..., Program], inner_ns: int, home: list[int]
) -> None:
    program = start(OUTER, INNER)
    while program.found_by is None:
        program.tick(0, after_ns=400 * MS)
        for _ in range(600):
            program.tick(1, after_ns=inner_ns)
        program.leave(1)
    assert program.notes()["home"] == ["train.py", "", *home]
    # From its next start on, it costs nothing.
    assert (getattr(builtins, EACH.format(1)) is watching.as_they_are) == (home == [3, 9])


def test_a_loop_may_first_skip_what_is_done(start: Callable[..., Program]) -> None:
    program = start(OUTER, INNER)
    for number in range(3_000):
        program.tick(0, after_ns=100 if number % 100 else 5_000)
    for _ in range(100):
        program.tick(0, after_ns=5 * MS)
        for _ in range(4):
            program.tick(1, after_ns=2 * MS)
        program.leave(1)
    assert program.notes()["home"] == ["train.py", "", 3, 9]


def test_a_loop_of_short_iterations_goes_on_without_marks(
    start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_SKIPPED_MARKS", 900)
    start(INNER)
    items = iter(getattr(builtins, EACH.format(0))(range(3_000)))
    assert [next(items) for _ in range(2_000)] == [*range(2_000)]
    called: list[str] = []
    sys.setprofile(lambda _frame, event, _argument: called.append(event))
    rest = [*items]
    sys.setprofile(None)
    assert rest == [*range(2_000, 3_000)]
    assert "call" not in called


@pytest.mark.parametrize("let_go", [False, True])
def test_items_are_asked_once_for_an_iterator_which_may_have_no_method_iter(
    start: Callable[..., Program],
    let_go: bool,  # noqa: FBT001
) -> None:
    class Loader:
        started = 0

        def __iter__(self) -> Any:
            self.started += 1
            numbers = iter(range(3))
            return type("Iterator", (), {"__next__": lambda _: next(numbers)})()

    program = start(OUTER)
    if let_go:
        warmed_up(program, 50)
    loader = Loader()
    assert [*map(str, getattr(builtins, EACH.format(0))(loader))] == ["0", "1", "2"]
    assert loader.started == 1


def test_a_slow_loop_is_waited_for(start: Callable[..., Program]) -> None:
    program = start(OUTER)
    for _ in range(4):
        program.tick(after_ns=900 * MS)
        assert program.found_by is None
    program.tick(after_ns=900 * MS)
    # Five began, so four are over.
    assert (program.found_by, program.notes()["before"]) == ("loop", 4)


def test_a_loop_that_is_left_ends_its_step_and_what_follows_is_none(start: Callable[..., Program]) -> None:
    program = start(OUTER)
    for _ in range(11):
        program.tick(after_ns=100 * MS)
    program.tick(after_ns=20 * MS)
    program.leave(after_ns=30 * MS)
    program.tick(after_ns=7 * S)
    program.tick(after_ns=40 * MS)
    assert [row.end_ns - row.begin_ns for row in program.rows()] == [20 * MS, 30 * MS, 40 * MS]


def test_the_loop_over_what_a_generator_yields_has_the_steps(start: Callable[..., Program]) -> None:
    program = start()
    source = """\
def batches():
    for number in range(40):
        yield number
for batch in batches():
    work(batch)
"""
    code, loops = marked(source.encode(), "train.py", loops=True)
    program.watcher.watch_loops(loops)

    def work(_batch: int) -> None:
        program.now_ns += 100 * MS

    exec(code, {"work": work})
    assert program.notes()["home"] == ["train.py", "", 4, 5]
    assert {row.end_ns - row.begin_ns for row in program.rows()} == {100 * MS}


def test_a_loop_that_is_left_while_it_is_recorded_has_a_row_for_each_window(start: Callable[..., Program]) -> None:
    program = start(OUTER)
    program.area.write(Word.REFUSED, 1)
    for entry in range(60):
        for _ in range(11 if entry == 0 else 2):
            program.tick(after_ns=100 * MS)
        program.leave()
        program.now_ns += S
    assert program.notes()["traced"] == 3
    assert dict(program.phases())[Phase.TRACED] == 3


def test_what_follows_a_return_out_of_the_loop_is_no_step(start: Callable[..., Program]) -> None:
    program = start(OUTER)
    for _ in range(11):
        program.tick(after_ns=100 * MS)
    for _ in range(2):
        program.now_ns += 7 * S
        items = getattr(builtins, EACH.format(0))(range(3))
        for _ in zip(items, range(2)):
            program.now_ns += 40 * MS
    assert [row.end_ns - row.begin_ns for row in program.rows()] == [40 * MS] * 4


def test_the_next_loop_may_be_the_real_one(start: Callable[..., Program]) -> None:
    program = start(Loop("train.py", 3, 4), Loop("train.py", 6, 7))
    for _ in range(12):
        program.tick(0, after_ns=100 * MS)
    program.tick(1)
    program.leave(0)
    assert program.notes()["home"][2] == 3
    for _ in range(12):
        program.tick(1, after_ns=100 * MS)
    assert program.notes()["home"][2] == 6
    assert len(program.rows()) == 1


def test_a_short_loop_within_slow_first_steps_does_not_hide_the_optimizer(start: Callable[..., Program]) -> None:
    program = start(OUTER, INNER)
    found = []
    for step in range(8):
        program.tick(0, after_ns=4 * S if step < 2 else 100 * MS)
        for _ in range(2):
            program.tick(1)
        program.leave(1)
        program.mark("optimizer")
        found.append(program.found_by)
    # After three seconds a loop is better than nothing; three calls of the optimizer are better than a loop.
    assert found == [None, "loop", *["optimizer"] * 6]
    # The step before the loop was chosen counts, too.
    assert program.notes()["before"] + len(program.rows()) == 8


def test_a_loop_within_the_steps_is_not_the_next(start: Callable[..., Program]) -> None:
    program = start(OUTER, INNER)
    for _ in range(31):
        program.tick(0, after_ns=100 * MS)
    before = len(program.rows())
    program.leave(0)
    for _ in range(21):
        program.tick(0)
        for _ in range(8):
            program.tick(1)
    assert program.notes()["home"][2] == 3
    assert len(program.rows()) == before + 1 + 20


def test_a_loop_after_one_that_a_return_left_may_be_the_next(start: Callable[..., Program]) -> None:
    program = start(OUTER, INNER)
    for _ in range(12):
        program.tick(0, after_ns=100 * MS)
    program.leave(0)
    program.tick(0)
    for _ in range(12):
        program.tick(1, after_ns=S)
    assert program.notes()["home"][2] == 5


def test_a_loop_that_was_measured_stays(start: Callable[..., Program]) -> None:
    program = start(Loop("train.py", 3, 4), Loop("train.py", 6, 7))
    sampler = answering(program)
    for _ in range(60):
        program.tick(0, after_ns=100 * MS)
        sampler(0)
    program.leave(0)
    assert Phase.SAMPLED in [phase for phase, _ in program.phases()]
    for _ in range(20):
        program.tick(1, after_ns=100 * MS)
    before = program.rows()
    program.tick(0)
    program.tick(0)
    assert program.rows()[:-1] == before
    assert len(before) > 40


def test_a_forked_child_is_silent(start: Callable[..., Program], forked: list[Callable[[], None]]) -> None:
    program = start(OUTER, INNER)
    program.watcher.enter("outside", CODE, 1)
    (in_child,) = forked
    in_child()
    for _ in range(30):
        program.tick(0, after_ns=S)
        program.tick(1, after_ns=S)
        program.mark("optimizer")
        program.watcher.step()
        program.watcher.compiled(0, "a shape")
    program.leave(0)
    program.watcher.leave("outside")
    program.watcher.finish()
    assert (program.rows(), program.notes()) == ([], {})
    assert [program.area.read(word) for word in (Word.FOUND, Word.REQUESTED, Word.FINISHED_NS)] == [0, 0, 0]


def test_a_forked_child_of_a_measured_loop_is_silent(
    start: Callable[..., Program], forked: list[Callable[[], None]]
) -> None:
    program = start(OUTER, INNER)
    for _ in range(12):
        program.tick(0, after_ns=100 * MS)
    before = program.rows(), program.notes()
    (in_child,) = forked
    in_child()
    for _ in range(30):
        program.tick(0, after_ns=S)
        program.leave(0)
        program.tick(1, after_ns=S)
    assert (program.rows(), program.notes()) == before


@pytest.fixture
def placed(start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch) -> Program:
    """A program on the cores 0, 1 and 2, sampled on core 1."""
    cores: list[set[int]] = [{0, 1, 2, 3}]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cores[-1], raising=False)
    program = start()
    cores.append({0, 1, 2})
    program.chosen("optimizer")
    run_on(program, 40, answering(program))
    assert program.phases()[-1][0] == Phase.SAMPLED
    program.area.write(Word.PLACED, 1 + 1)
    return program


@pytest.mark.parametrize("watches", [True, False])
@pytest.mark.parametrize(("mask", "is_placed"), [({1}, True), ({0, 2}, True), ({2}, False)])
def test_a_forked_child_gets_the_cores_that_the_program_chose(
    placed: Program,
    forked: list[Callable[[], None]],
    monkeypatch: pytest.MonkeyPatch,
    mask: set[int],
    is_placed: bool,  # noqa: FBT001
    watches: bool,  # noqa: FBT001
) -> None:
    given: list[object] = []
    monkeypatch.setattr(placed.watcher, "_affinity", lambda _: mask)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, chosen: given.append(chosen), raising=False)
    monkeypatch.setattr(os, "sched_getscheduler", lambda _: os.SCHED_BATCH, raising=False)
    monkeypatch.setattr(os, "sched_setscheduler", lambda _, policy, __: given.append(policy), raising=False)
    if not watches:
        placed.watcher._alive = False
    forked[0]()
    assert given == [*([{0, 1, 2}] if is_placed else []), os.SCHED_OTHER]
    placed.area.write(Word.PLACED, 0)
    given.clear()
    forked[0]()
    assert given == []


def test_the_thread_of_the_steps_is_told_the_cores_that_the_program_chose(
    placed: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, watcher = threading.get_native_id(), placed.watcher
    masks = {0: {1}, thread: {1}, 1: {1}}
    monkeypatch.setattr(watcher, "_affinity", masks.get)
    monkeypatch.setattr(os, "sched_setaffinity", None, raising=False)
    assert [watcher.cores_of(pid) for pid in (0, thread, 1)] == [{0, 1, 2}, {0, 1, 2}, {1}]
    watcher.cores_of(0).clear()
    # Those of another thread, and those that the program has chosen meanwhile, are what they are.
    with ThreadPoolExecutor(1) as other:
        assert other.submit(watcher.cores_of, 0).result() == {1}
    masks[0] = {2}
    assert watcher.cores_of(0) == {2}
    masks[0] = {1}
    assert watcher.cores_of(0) == {0, 1, 2}
    placed.area.write(Word.PLACED, 0)
    assert watcher.cores_of(0) == {1}


# ---------------------------------------------------------------- instruments in turns
def warmed_up(program: Program, *steps_ms: int, compiling: tuple[int, ...] = ()) -> int:
    """Steps of warm-up when steps last as long as given, and then as the last."""
    program.chosen("optimizer", interval_ns=50 * MS)
    for number in range(200):
        if number in compiling:
            program.watcher.compile_ns += 1
        program.mark("optimizer", after_ns=steps_ms[min(number, len(steps_ms) - 1)] * MS)
        if program.rows()[-1].phase != Phase.WARM_UP:
            break
    return program.phases()[0][1]


def test_warm_up_of_steady_steps(start: Callable[..., Program]) -> None:
    # Two steps tell where the loop is; then two windows of five.
    program = start()
    assert warmed_up(program, 50) == 2 + 2 * 5
    assert program.notes()["settled_ns"] == program.rows()[11].end_ns


def test_short_steps_make_windows_by_their_time(start: Callable[..., Program]) -> None:
    assert warmed_up(start(), 10) == 2 + 2 * 10


def test_warm_up_lasts_while_steps_get_faster(start: Callable[..., Program]) -> None:
    assert warmed_up(start(), 9, 9, *(5 * [100] + 5 * [80] + 5 * [60]), 60) == 2 + 4 * 5


def test_warm_up_lasts_while_something_compiles(start: Callable[..., Program]) -> None:
    assert warmed_up(start(), 50, compiling=(9,)) == 2 + 4 * 5


def test_warm_up_ends_in_the_end(start: Callable[..., Program]) -> None:
    assert warmed_up(start(), 9, 9, *(5 * [1000] + 5 * [900] + 5 * [800]), 10) == 2 + 3 * 5


def test_what_follows_a_return_out_of_a_while_loop_is_no_step(start: Callable[..., Program]) -> None:
    program = start()
    source = """\
def serve():
    while True:
        work(100)
        if is_over():
            return
serve()
work(7_000)
serve()
"""
    code, loops = marked(source.encode(), "serve.py", loops=True)
    program.watcher.watch_loops(loops)
    is_over = iter([*(14 * [False]), True, False, False, True]).__next__

    def work(ms: int) -> None:
        program.now_ns += ms * MS

    exec(code, {"work": work, "is_over": is_over})
    # Chosen after a second, at the eleventh of fifteen iterations; the last one of each call has no end.
    assert [row.end_ns - row.begin_ns for row in program.rows()] == [100 * MS] * (4 + 2)


def run_on(program: Program, steps: int, sampler: Callable[[int], None] = lambda step: None) -> None:
    for step in range(steps):
        program.mark("optimizer")
        sampler(step)


def answering(program: Program) -> Callable[[int], None]:
    """A recorder that answers after three steps."""
    since = 0

    def answer(step: int) -> None:
        nonlocal since
        request = program.area.read(Word.REQUESTED)
        since = since + 1 if request > program.area.read(Word.ANSWERED) else 0
        if since == 3:
            program.area.write(Word.ANSWERED, request)

    return answer


def test_instruments_take_turns(start: Callable[..., Program]) -> None:
    program = start()
    program.chosen("optimizer")
    run_on(program, 4_000, answering(program))
    sampled_ms = (400, 800, 1600, 3200, *(5 * [4000]))
    # Asking takes until the answer after three steps is seen; the step in which the sampler is asked for is of the phase before.
    turns = [
        [(Phase.ATTACHING, 4), (Phase.SAMPLED, ms // 10), (Phase.ATTACHING, 4), (Phase.BARE, ms // 40)]
        for ms in sampled_ms
    ]
    # ... and the trace comes after the second turn.
    turns[1] += [(Phase.TRACED, 3), (Phase.BARE, 40)]
    phases = [(Phase.WARM_UP, 2 + 2 * 10), *(each for turn in turns for each in turn)]
    *found, rest = program.phases()
    assert found == phases[:-1]
    assert rest == (Phase.BARE, 4_000 - sum(count for _, count in phases[:-1]))
    assert program.area.read(Word.REQUESTED) == program.area.read(Word.ANSWERED) == 2 * 9
    assert program.notes()["sampled_ns"] == program.notes()["settled_ns"]
    assert program.area.read(Word.ENOUGH) == 1
    # Before the first step of each turn, and in no step.
    starts = [sum(count for _, count in phases[:at]) for at, (phase, _) in enumerate(phases) if phase == Phase.SAMPLED]
    assert program.holds == starts
    assert program.notes()["traced"] == 3
    assert all(row.end_ns - row.begin_ns == 10 * MS for row in program.rows())


def test_nothing_is_measured_after_devices_were_recorded(
    start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DrawnTrace, "sees_device", True)
    program = start()
    program.chosen("optimizer")
    run_on(program, 2_000, answering(program))
    sampled_ms = (400, 800, 1600)
    turns = [(Phase.SAMPLED, ms // 10) for ms in sampled_ms]
    *found, traced, rest = program.phases()
    assert [each for each in found if each[0] == Phase.SAMPLED] == turns
    assert [count for phase, count in found if phase == Phase.BARE] == [ms // 40 for ms in sampled_ms]
    assert (traced, rest[0]) == ((Phase.TRACED, 3), Phase.AFTERWARDS)
    assert program.area.read(Word.ENOUGH) == 1
    assert program.notes()["untraced"] == ""


def test_steps_after_devices_were_recorded_in_earlier_ones_are_slowed(
    start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = start()
    program.chosen("module")
    assert program.notes()["slowed"] is False
    monkeypatch.setattr(DrawnTrace, "sees_device", True)
    program.chosen("optimizer")
    assert program.notes()["slowed"] is True


def test_a_program_that_ends_before_its_devices_were_recorded_says_so(
    start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DrawnTrace, "sees_device", True)
    program = start()
    program.chosen("optimizer")
    run_on(program, 200, answering(program))
    assert Phase.TRACED not in dict(program.phases())
    assert program.notes()["untraced"].startswith("the program ended before its devices were recorded")


def test_long_steps_have_three_bare_ones_a_turn(start: Callable[..., Program]) -> None:
    program = start()
    program.chosen("optimizer", interval_ns=S)
    sampler = answering(program)
    for step in range(60):
        program.mark("optimizer", after_ns=S)
        sampler(step)
    bare = [count for phase, count in program.phases()[:-1] if phase == Phase.BARE]
    assert bare[:4] == [3, 3, 3, 3]
    assert [count for phase, count in program.phases() if phase == Phase.SAMPLED][:3] == [1, 1, 2]


def test_the_trace_ends_where_the_next_bare_stretch_begins(
    start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DrawnTrace, "reason", "the program does not import torch")
    program = start()
    program.chosen("optimizer")
    run_on(program, 900, answering(program))
    assert Phase.TRACED not in [phase for phase, _ in program.phases()]
    assert program.notes()["untraced"] == "the program does not import torch"


def test_without_a_sampler_steps_stay_bare(start: Callable[..., Program]) -> None:
    program = start()
    program.area.write(Word.REFUSED, 1)
    program.chosen("optimizer")
    run_on(program, 900)
    assert [phase for phase, _ in program.phases()] == [Phase.WARM_UP, Phase.BARE, Phase.TRACED, Phase.BARE]
    assert (program.area.read(Word.REQUESTED), program.area.read(Word.ENOUGH)) == (0, 1)


@pytest.mark.parametrize("word", [Word.REFUSED, Word.ENOUGH])
def test_a_sampler_that_ends_in_a_turn(start: Callable[..., Program], word: Word) -> None:
    program = start()
    program.chosen("optimizer")
    run_on(program, 40, answering(program))
    assert program.phases()[-1][0] == Phase.SAMPLED
    program.area.write(word, 1)
    run_on(program, 200)
    # The turn ends at its time, and nothing is waited for.
    assert program.phases()[1:] == [
        *((Phase.ATTACHING, 4), (Phase.SAMPLED, 40), (Phase.BARE, 10 + 40), (Phase.TRACED, 3)),
        (Phase.BARE, 240 - 22 - 4 - 40 - 50 - 3),
    ]


def test_a_sampler_that_is_refused_or_never_comes(start: Callable[..., Program]) -> None:
    program = start()
    program.chosen("optimizer")
    run_on(program, 160)
    assert program.phases()[-1] == (Phase.ATTACHING, 160 - 22)
    assert program.holds == []
    program.area.write(Word.REFUSED, 1)
    run_on(program, 5)
    assert program.phases()[-1][0] == Phase.BARE


def test_a_sampler_that_does_not_answer_is_given_up_after_a_minute(start: Callable[..., Program]) -> None:
    program = start()
    program.chosen("optimizer")
    # It asks for stacks, then for rest, each for 60 s.
    run_on(program, 22 + 2 * 6_002 + 2)
    assert program.phases()[1:] == [(Phase.ATTACHING, 2 * 6_002), (Phase.BARE, 2)]
    assert (program.area.read(Word.REQUESTED), program.holds) == (2, [])


@pytest.mark.parametrize("steps", [22 + 2, 22 + 4 + 20, 22 + 4 + 40 + 2, 22 + 4 + 40 + 4 + 5])
def test_other_steps_in_the_middle_of_a_turn_are_sampled_in_turns_of_their_own(
    start: Callable[..., Program], steps: int
) -> None:
    program = start()
    program.chosen("module")
    sampler = answering(program)
    for step in range(steps):
        program.mark("module")
        sampler(step)
    holds = len(program.holds)
    assert program.notes()["settled_ns"] == program.rows()[21].end_ns
    program.chosen("optimizer")
    assert (program.notes()["settled_ns"], program.notes()["earlier"]) == (0, holds)
    requests: list[tuple[int, Phase]] = []
    for step in range(300):
        before = program.area.read(Word.REQUESTED)
        program.mark("optimizer")
        if program.area.read(Word.REQUESTED) != before:
            requests.append((program.area.read(Word.REQUESTED) % 2, program.phases()[-1][0]))
        sampler(step)
    # An odd request when stacks are to come, an even one when the sampler is to rest.
    assert requests[:4] == [(1, Phase.WARM_UP), (0, Phase.SAMPLED), (1, Phase.BARE), (0, Phase.SAMPLED)]
    assert len(program.holds) == holds + 3


def test_better_steps_after_all_turns_are_sampled_too(start: Callable[..., Program]) -> None:
    program = start()
    program.chosen("optimizer")
    run_on(program, 4_000, answering(program))
    assert program.area.read(Word.ENOUGH) == 1
    program.chosen("explicit")
    assert program.area.read(Word.ENOUGH) == 0
    sampler = answering(program)
    for step in range(60):
        program.mark("explicit")
        sampler(step)
    assert Phase.SAMPLED in dict(program.phases())


def test_a_turn_that_the_user_interrupts_before_it_begins_is_one_of_the_earlier_steps(
    start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Area) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "hold_until_sampled", interrupt)
    program = start()
    program.chosen("optimizer")
    with pytest.raises(KeyboardInterrupt):
        run_on(program, 40, answering(program))
    program.chosen("explicit")
    assert program.notes()["earlier"] == 1


def test_a_defect_ends_the_watching_and_not_the_program(
    start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: object, _step_ns: float) -> bool:
        raise RuntimeError("profiler")

    monkeypatch.setattr(DrawnTrace, "begin", fail)
    program = start()
    program.area.write(Word.REFUSED, 1)
    program.chosen("optimizer")
    run_on(program, 500)
    assert program.notes()["defect"] == "RuntimeError: profiler"
    assert len(program.rows()) < 500


class _Expiry:
    def __call__(self, number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise TimeoutError("late")


def _expire(*_: object) -> None:
    raise TimeoutError("late")


@pytest.mark.parametrize(
    "handler", [_expire, partial(_expire, "late"), _Expiry()], ids=["function", "partial", "one that resets itself"]
)
def test_what_a_signal_handler_raises_reaches_the_program(
    start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch, handler: Any
) -> None:
    before = signal.signal(signal.SIGUSR1, handler)
    monkeypatch.setattr(watching, "hold_until_resumed", lambda _: signal.raise_signal(signal.SIGUSR1))
    program = start()
    program.chosen("optimizer")
    try:
        with pytest.raises(TimeoutError):
            run_on(program, 40)
    finally:
        signal.signal(signal.SIGUSR1, before)
    notes = program.notes()
    assert ("defect" in notes, notes["interrupted"]) == (False, "TimeoutError: late")
    # A turn of the sampler ends as well.
    assert program.area.read(Word.ENOUGH) == 1


def test_a_program_whose_watching_ends_before_its_steps_are_warm_is_sampled_to_its_end(
    start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "median", None)
    program = start()
    program.chosen("optimizer")
    run_on(program, 40)
    assert (program.notes()["defect"][:9], program.area.read(Word.ENOUGH)) == ("TypeError", 0)


def test_notes_that_cannot_be_written_are_left_out(start: Callable[..., Program]) -> None:
    program = start()
    (program.folder / NOTES).mkdir()
    for _ in range(5):
        program.mark("optimizer")
    program.watcher.compiled(0, "a shape")
    program.watcher.finish()
    assert len(program.rows()) == 2


def test_the_frame_around_the_steps_is_their_home(start: Callable[..., Program]) -> None:
    program = start()
    program.chosen("optimizer")

    def train() -> int:
        line = sys._getframe().f_lineno + 2
        for _ in range(3):
            program.mark("optimizer")
        return line

    line = train()
    assert program.notes()["home"] == [__file__, "train", line, line]


def test_the_home_of_earlier_steps_is_none_of_later_ones(start: Callable[..., Program]) -> None:
    program = start(OUTER)
    for _ in range(12):
        program.tick(after_ns=100 * MS)
    assert program.notes()["home"] == ["train.py", "", 3, 9]
    program.chosen("optimizer")
    assert program.notes()["home"] is None


def test_a_frame_that_is_on_no_stack_between_two_steps_is_no_home(start: Callable[..., Program]) -> None:
    program = start()
    program.chosen("optimizer")

    def batches() -> Iterator[None]:
        for _ in range(3):
            program.mark("optimizer")
            yield

    for _ in batches():
        line = sys._getframe().f_lineno - 1
    assert program.notes()["home"] == [__file__, sys._getframe().f_code.co_name, line, line]


def test_nothing_of_a_step_is_kept_where_the_frame_around_the_steps_is_looked_for(
    start: Callable[..., Program],
) -> None:
    class Logits:
        pass

    program = start()
    seen: list[weakref.ref[Logits]] = []
    alive: list[int] = []

    def train_step() -> None:
        alive.append(sum(each() is not None for each in seen))
        logits = Logits()
        seen.append(weakref.ref(logits))
        program.mark("optimizer")

    gc.disable()
    try:
        for _ in range(6):
            train_step()
    finally:
        gc.enable()
    assert alive == 6 * [0]
    frame = sys._getframe()
    assert program.notes()["home"][:2] == [__file__, frame.f_code.co_name]
    # What a debugger would look at is as it was.
    assert frame.f_trace_lines


def test_counters_of_a_step(start: Callable[..., Program]) -> None:
    program = start()
    program.chosen("optimizer", interval_ns=1_000_000)
    program.watcher.collected.extend([(1, 3), (2, 1_000)])  # while another thread collects
    program.watcher.data_ns = 5
    program.watcher.compiled(program.now_ns - 7, "a shape changed")
    program.mark("optimizer")
    (row,) = program.rows()
    assert (row.gc_ns, row.compile_ns, row.data_ns) == (3, 7, 5)
    assert row.user_ns > 0
    assert program.notes()["compiled"][1:] == [program.now_ns - 10 * MS, "a shape changed"]


def test_short_steps_are_not_counted_in_detail(start: Callable[..., Program]) -> None:
    program = start()
    program.chosen("optimizer", interval_ns=999_999)
    program.mark("optimizer")
    (row,) = program.rows()
    assert (row.user_ns, row.system_ns, row.faults, row.switches) == (0, 0, 0, 0)


def test_the_end_of_the_program(start: Callable[..., Program]) -> None:
    program = start()
    program.chosen("optimizer")
    program.mark("optimizer")
    program.watcher.finish()
    assert program.area.read(Word.FINISHED_NS) == program.now_ns
    program.mark("optimizer")
    assert len(program.rows()) == 1


# ---------------------------------------------------------------- regions
def regions(program: Program) -> dict[tuple[str, Phase], tuple[int, int, int]]:
    """Count, ns and squares by name and phase, as written at the end."""
    program.watcher.finish()
    return {
        (name, Phase(phase)): (count, ns, squares)
        for name, phase, count, ns, squares, _ in program.notes().get("regions", ())
    }


def test_regions_nest(start: Callable[..., Program]) -> None:
    program = start()
    for inner_ns in (2, 4):
        program.watcher.enter("decode", CODE, 3, ((CODE, 7),))
        program.now_ns += 10
        program.watcher.enter("sample", CODE, 0)
        program.now_ns += inner_ns
        program.watcher.leave("sample")
        program.watcher.leave("decode")
    assert regions(program) == {
        ("decode", Phase.WARM_UP): (2, 26, 12**2 + 14**2),
        ("sample", Phase.WARM_UP): (2, 6, 2**2 + 4**2),
    }
    # Line 0 is a whole function, known by its first line.
    assert program.notes()["region_places"] == {
        "decode": [["train.py", "<module>", 3, ["train.py", "<module>", 7]]],
        "sample": [["train.py", "<module>", -1]],
    }


def test_a_region_inside_itself_counts_once(start: Callable[..., Program]) -> None:
    program = start()
    for name in ("visit", "leaf", "visit"):
        program.watcher.enter(name, CODE, 0)
        program.now_ns += 10
    for name in ("visit", "leaf", "visit"):
        program.watcher.leave(name)
        program.now_ns += 1
    assert regions(program) == {("visit", Phase.WARM_UP): (1, 32, 32**2), ("leaf", Phase.WARM_UP): (1, 21, 21**2)}


def test_each_thread_has_its_own_regions(start: Callable[..., Program]) -> None:
    program = start()

    def other() -> None:
        program.watcher.enter("decode", CODE, 0)
        program.now_ns += 5
        program.watcher.leave("decode")

    program.watcher.enter("decode", CODE, 0)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    program.now_ns += 2
    program.watcher.leave("decode")
    assert regions(program) == {("decode", Phase.WARM_UP): (2, 12, 7**2 + 5**2)}


def test_a_region_that_is_left_in_another_thread(start: Callable[..., Program]) -> None:
    program = start()
    program.watcher.enter("decode", CODE, 0)
    OtherThread("other").do(program.watcher.leave, "decode")
    program.now_ns += 2
    program.watcher.leave("decode")
    assert regions(program) == {("decode", Phase.WARM_UP): (1, 2, 4)}


def test_blocks_of_a_region_are_in_the_order_of_time(start: Callable[..., Program]) -> None:
    program = start()
    for took_ns in (7, 5, 6):
        program.watcher.enter("decode", CODE, 0)
        program.now_ns += took_ns
        program.watcher.leave("decode")
    program.watcher.finish()
    ((*_, blocks),) = program.notes()["regions"]
    assert blocks == [[1, 7], [1, 5], [1, 6]]


def test_a_region_around_the_end_of_a_step_holds_nothing_of_what_is_done_between_steps(
    start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = start()

    def write(_trace: DrawnTrace) -> None:
        program.now_ns += S

    monkeypatch.setattr(DrawnTrace, "end", write)
    program.area.write(Word.REFUSED, 1)
    program.chosen("optimizer")
    other = OtherThread("other")
    other.do(program.watcher.enter, "serve", CODE, 3)
    for _ in range(100):
        program.watcher.enter("optimizer", CODE, 3)
        program.mark("optimizer", after_ns=10 * MS)
        program.watcher.leave("optimizer")
    other.do(program.watcher.leave, "serve")
    found = regions(program)
    # A region belongs to what measures the step after it.
    count, ns, squares = found["optimizer", Phase.BARE]
    assert count == 100 - (2 + 2 * 10) + 1 - 3
    assert (ns, squares) == (count * 10 * MS, count * (10 * MS) ** 2)
    # Another thread goes on meanwhile.
    assert found["serve", Phase.BARE] == (1, 2 * S, 4 * S**2)


def test_regions_are_told_apart_by_what_measured_them(start: Callable[..., Program]) -> None:
    program = start()
    program.area.write(Word.REFUSED, 1)
    program.chosen("optimizer")
    for _ in range(100):
        program.watcher.enter("decode", CODE, 0)
        program.now_ns += 3
        program.watcher.leave("decode")
        program.mark("optimizer")
    found = regions(program)
    counts = Counter(Phase(row.phase) for row in program.rows())
    assert {phase for phase, _ in program.phases()} == {Phase.WARM_UP, Phase.BARE, Phase.TRACED}
    assert found == {("decode", phase): (count, 3 * count, 9 * count) for phase, count in counts.items()}


def test_regions_of_a_long_run_take_little_room(start: Callable[..., Program]) -> None:
    program = start()
    program.area.write(Word.REFUSED, 1)
    program.chosen("optimizer")
    for _ in range(3_600):
        program.watcher.enter("decode", CODE, 1)
        program.mark("optimizer", after_ns=S)
        program.watcher.leave("decode")
    notes = (program.folder / NOTES).read_text()
    assert 5 < notes.count('"regions"') < 25


@pytest.mark.parametrize("sees_device", [True, False])
def test_regions_of_recorded_steps_are_told_one_by_one_where_a_device_is_recorded(
    start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch, sees_device: bool
) -> None:
    monkeypatch.setattr(DrawnTrace, "sees_device", sees_device)
    program = start()
    program.area.write(Word.REFUSED, 1)
    program.chosen("optimizer")
    entered = []
    for _ in range(100):
        for _ in range(30):
            entered.append(program.now_ns)
            program.watcher.enter("decode", CODE, 0)
            program.now_ns += 3
            program.watcher.leave("decode")
        program.mark("optimizer")
    traced = [row for row in program.rows() if row.phase == Phase.TRACED]
    inside = [[at, at + 3] for at in entered if traced[0].begin_ns <= at < traced[-1].end_ns]
    assert len(inside) == 90
    # The first ones are enough.
    assert program.notes().get("traced_regions") == ({"decode": inside[:50]} if sees_device else None)
