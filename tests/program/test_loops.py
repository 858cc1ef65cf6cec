"""Which loops of a program are marked, and that marks count right and change nothing."""

from __future__ import annotations

import textwrap
import traceback
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from overhead_lens.program.loops import EACH, LEFT, STEP, TICK, Loop, StepPlace, marked
from overhead_lens.program.watcher import StepWatcher, as_they_are


class Marked(NamedTuple):
    code: CodeType
    loops: list[Loop]


def mark(source: str, step: StepPlace | None = None, *, loops: bool = True, first: int = 0) -> Marked:
    return Marked(*marked(textwrap.dedent(source).encode(), "train.py", loops=loops, step=step, first=first))


def lines(source: str) -> list[int]:
    """Lines of the loops that are marked."""
    return sorted(loop.line for loop in mark(source).loops)


def executed(module: Marked, **names: Any) -> tuple[dict[int, tuple[int, int]], int, dict[str, Any]]:
    """Run the code: ticks and ends by a loop's line, how often the user's step was reached, and what was left behind."""
    seen: Counter[str] = Counter()

    def count(name: str) -> Any:
        return lambda: seen.update([name])

    marks = [name.format(number) for name in (TICK, LEFT) for number in range(len(module.loops))]
    namespace = {**names, **{name: count(name) for name in (*marks, STEP)}}
    namespace |= ticking({number: namespace[TICK.format(number)] for number in range(len(module.loops))})
    exec(module.code, namespace)
    ticks = {
        loop.line: (seen[TICK.format(number)], seen[LEFT.format(number)]) for number, loop in enumerate(module.loops)
    }
    return ticks, seen[STEP], namespace


def ticking(ticks: dict[int, Callable[[], Any]]) -> dict[str, Any]:
    """What the watcher wraps the items of ``for`` loops in, by its name."""
    watcher: Any = SimpleNamespace(_ticks=ticks)
    return {EACH.format(number): StepWatcher._ticking(watcher, number) for number in ticks}


# ---------------------------------------------------------------- which loops
def test_loops_of_the_module_and_of_functions_that_it_calls() -> None:
    source = """\
        def train(batches):
            for batch in batches:
                evaluate(batch)

        def evaluate(batch):
            while batch:
                batch = batch.next()

        if __name__ == "__main__":
            try:
                for epoch in range(3):
                    train([1])
            except ValueError:
                while True:
                    wait()
    """
    assert lines(source) == [2, 6, 11, 14]
    assert mark(source).loops[0] == Loop("train.py", 11, 12)


def test_coroutines_of_the_main_flow() -> None:
    source = """\
        async def serve(requests):
            for request in requests:
                answer(request)
            while False:
                await request
            async for request in requests:
                pass
            for request in requests:
                async with request:
                    pass
            for request in requests:
                [part async for part in request]
            for request in requests:
                async def later():
                    await request
        asyncio.run(serve(requests()))
    """
    assert lines(source) == [2, 13]


def test_a_loop_that_yields_is_not_marked() -> None:
    source = """\
        def batches(data):
            while True:
                yield from load(data)
        def epochs(data):
            for epoch in range(3):
                for batch in batches(data):
                    train(batch)
                yield epoch
        for epoch in epochs(data):
            def numbers():
                yield epoch
            print(numbers())
    """
    assert lines(source) == [6, 9]


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    for x in y: pass\ntorch.compile(f)(1)",
        "def f():\n    for x in y: pass\ng = f\ng()",
        "def f():\n    for x in y: pass\nThread(target=f).start(); f()",
        "def f():\n    for x in y: pass\nrun = lambda: f()",
        "@torch.compile\ndef f():\n    for x in y: pass\nf()",
        "class Model:\n    def forward(self):\n        for x in y: pass\nModel().forward()",
        "class Model:\n    for x in y: pass",
        "def f():\n    for x in y: pass\nclass Model:\n    def forward(self):\n        f()",
        "def main():\n    def inner():\n        for x in y: pass\n    inner()\nmain()",
        "def f():\n    for x in y: pass\ndef main():\n    def inner():\n        f()\n    inner()\nmain()",
        "def f():\n    for x in y: pass\n@no_grad\ndef g():\n    f()\ng()",
        # What a function that may be compiled calls is compiled with it, however far below.
        "def f():\n    for x in y: pass\ndef g():\n    f()\ndef h():\n    g()\ntorch.compile(h)()",
        "x = [y for y in z]",
    ],
)
def test_what_a_compiler_may_see_is_left_alone(source: str) -> None:
    assert mark(source).loops == []


def test_numbers_go_on_from_file_to_file() -> None:
    module = mark("for x in y: pass", first=3)
    assert {EACH.format(3), LEFT.format(3)} <= set(module.code.co_names)


@pytest.mark.parametrize(
    ("body", "marks"),
    [("x -= 1", 0), ("pass", 0), ("x = y[x]", 0), ("x = next(y)", 1), ("y = y @ y", 1), ("if x:\n    z()", 1)],
)
def test_a_while_loop_is_marked_only_where_its_body_calls(body: str, marks: int) -> None:
    assert len(mark(f"while x:\n{textwrap.indent(body, '    ')}").loops) == marks


def test_a_module_without_loops_to_mark() -> None:
    assert mark("for x in y: pass", loops=False).loops == []


# ---------------------------------------------------------------- what is counted
def test_nested_loops() -> None:
    ticks, _, _ = executed(mark("for x in range(3):\n    for y in range(x):\n        pass\n"))
    assert ticks == {1: (3, 1), 2: (3, 3)}


def test_loops_that_end_by_themselves_by_break_and_by_else() -> None:
    source = """\
        for x in range(5):
            if x % 2:
                continue
            if x == 4:
                break
        else:
            while never:
                print()
        while left:
            left.pop()
        else:
            for x in "ab":
                pass
        for x in ():
            pass
    """
    ticks, _, _ = executed(mark(source), never=True, left=[1, 2])
    assert ticks == {1: (5, 1), 7: (0, 0), 9: (2, 1), 12: (2, 1), 14: (0, 1)}


def test_a_return_and_an_exception_leave_without_a_word() -> None:
    source = """\
        def first():
            for x in range(5):
                if x == 2:
                    return x
        def failing():
            while True:
                raise ValueError()
        value = first()
        try:
            failing()
        except ValueError:
            failed = True
    """
    ticks, _, left = executed(mark(source))
    assert ticks == {2: (3, 0), 6: (1, 0)}
    assert (left["value"], left["failed"]) == (2, True)


# ---------------------------------------------------------------- nothing else changes
PROGRAMS = {
    "items that are none": "import sys\nfor x in 3:\n    pass\n",
    "items over several lines": "for x in (\n    3\n):\n    pass\n",
    "items that fail": "def items():\n    yield 1\n    raise ValueError('over')\nfor x in items():\n    y = x\n",
    "items that cannot be made": "for x in gone(3):\n    pass\n",
    "a body that fails": "for x in range(3):\n    for y in range(x):\n        y / 0\n",
    "items that do not unpack": "for x, y in [(1, 2), (3,)]:\n    pass\n",
    "a condition that fails": "while gone():\n    print()\n",
}


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_errors_are_those_of_the_plain_program(tmp_path: Path, source: str) -> None:
    file = str(tmp_path / "train.py")
    Path(file).write_text(source)
    module = Marked(*marked(source.encode(), file, loops=True))
    names = {name.format(number): count().__next__ for name in (TICK, LEFT) for number in range(len(module.loops))}
    ours = ticking({number: count().__next__ for number in range(len(module.loops))})
    assert module.loops

    def complaint(code: Any, marks: dict[str, Any]) -> str:
        try:
            exec(code, dict(marks))
        except Exception as error:
            trace = error.__traceback__.tb_next if error.__traceback__ else None
            return "".join(traceback.format_exception(type(error), error, trace))
        pytest.fail("it raises nothing")

    assert complaint(module.code, names | ours) == complaint(compile(source, file, "exec"), {})
    # ... and of a loop that is not measured, whose items nothing wraps.
    free = dict.fromkeys(ours, as_they_are)
    assert complaint(module.code, names | free) == complaint(compile(source, file, "exec"), {})


def test_iterators_that_the_program_uses_elsewhere() -> None:
    source = """\
        left = iter(range(10))
        for x in left:
            if x == 2:
                break
        then = next(left)
        for y in left:
            skipped = next(left, None)
            pairs.append((y, skipped))
        for a in rows:
            for b in rows:
                pairs.append((a, b))
        for z in left:
            pairs.append(z)
    """
    ticks, _, left = executed(mark(source), pairs=[], rows=iter("abc"))
    assert (left["x"], left["then"]) == (2, 3)
    assert left["pairs"] == [(4, 5), (6, 7), (8, 9), ("a", "b"), ("a", "c")]
    assert ticks == {2: (3, 1), 6: (3, 1), 9: (1, 1), 10: (2, 1), 12: (0, 1)}


def test_an_item_is_let_go_as_soon_as_the_program_lets_go_of_it() -> None:
    class Batch:
        pass

    def batches() -> Iterator[Batch]:
        for _ in range(3):
            yield Batch()

    seen: list[object] = []
    source = """\
        for batch in batches():
            known = ref(batch)
            del batch
            seen.append(known())
    """
    executed(mark(source), batches=batches, ref=weakref.ref, seen=seen)
    assert seen == [None] * 3


def test_a_generator_is_closed_when_its_loop_is_left() -> None:
    done: list[str] = []

    def items() -> Iterator[int]:
        try:
            yield from range(5)
        finally:
            done.append("closed")

    executed(mark("for x in items():\n    break\ndone.append('after')"), items=items, done=done)
    assert done == ["closed", "after"]


@pytest.mark.parametrize("returned", [None, 0, False, True, 7])
def test_what_a_tick_returns_ends_no_loop(returned: object) -> None:
    module = mark("for x in range(3):\n    seen.append(x)")
    seen: list[int] = []
    exec(module.code, {"seen": seen, LEFT.format(0): lambda: None, **ticking({0: lambda: returned})})
    assert seen == [0, 1, 2]


def test_lines_of_a_traceback() -> None:
    source = """\
        def run():
            for x in range(2):
                for y in range(2):
                    pass
                if x:
                    x.gone
        run()
    """
    module = mark(source)
    names = {LEFT.format(number): lambda: None for number in range(2)}
    with pytest.raises(AttributeError) as error:
        exec(module.code, names | ticking(dict.fromkeys(range(2), lambda: None)))
    frames = traceback.extract_tb(error.value.__traceback__)[-2:]
    assert [(frame.filename, frame.name, frame.lineno) for frame in frames] == [
        ("train.py", "<module>", 7),
        ("train.py", "run", 6),
    ]


def test_docstrings_and_the_future_stay_first() -> None:
    source = '"""What it is."""\nfrom __future__ import annotations\ndef f(x: Gone):\n    for y in x: pass\nf([1])\n'
    ticks, _, left = executed(mark(source))
    assert (left["__doc__"], left["f"].__annotations__, ticks) == ("What it is.", {"x": "Gone"}, {4: (1, 1)})


def test_what_does_not_compile() -> None:
    with pytest.raises(SyntaxError) as error:
        mark("x = 1\nfor :\n")
    assert (error.value.filename, error.value.lineno) == ("train.py", 2)


# ---------------------------------------------------------------- the user's step
STEPS = '''\
class Trainer:
    """It trains."""

    def step(self):
        """A step."""
        for x in range(2):
            pass

    async def step_later(self):
        pass

def step():
    def step():
        pass
    if True:
        step()
        step()

Trainer().step()
step()
step()
'''


def has_step(code: CodeType) -> bool:
    """Whether the code, or that of a function in it, calls the user's step."""
    return STEP in code.co_names or any(has_step(each) for each in code.co_consts if isinstance(each, CodeType))


@pytest.mark.parametrize(
    ("step", "times"),
    [
        (StepPlace(line=6), 1),
        (StepPlace(line=7), 2),
        (StepPlace(line=16), 2),
        (StepPlace(line=20), 1),
        (StepPlace(function="step"), 2),
        (StepPlace(function="Trainer.step"), 1),
        (StepPlace(function="Trainer.step_later"), 0),
    ],
)
def test_a_step_at_a_line_or_a_function(step: StepPlace, times: int) -> None:
    module = mark(STEPS, step)
    assert has_step(module.code)
    assert executed(module)[1] == times


@pytest.mark.parametrize(
    "step", [StepPlace(line=8), StepPlace(line=99), StepPlace(function="train"), StepPlace(function="Trainer")]
)
def test_a_step_that_is_not_there(step: StepPlace) -> None:
    module = mark(STEPS, step)
    assert not has_step(module.code)
    assert executed(module)[1] == 0


def test_a_function_keeps_its_docstring() -> None:
    _, _, left = executed(mark(STEPS, StepPlace(function="Trainer.step")))
    assert left["Trainer"].step.__doc__ == "A step."
