"""Who holds the GIL: a single thread of the process that runs Python while another one waits for it."""

from __future__ import annotations

from overhead_lens.readers.py_spy.stacks import parse_stacks
from overhead_lens.samplers.blocks import blocks_of
from overhead_lens.samplers.holders import Aligned, with_holders
from tests.drawn.stacks import CLASSIFIER, claimed

WAITS = "train (train.py:5);take_gil (python3.11)"
RUNS = "log (logger.py:3)"
SLEEPS = "log (logger.py:4);clock_nanosleep (libc.so.6)"
HELD = f"{WAITS};GIL held by thread logger"


def thread(number: int, name: str, *stacks: str, process: int = 0) -> tuple[str, ...]:
    head = f'process 9:"x";process {process}:"y";' if process else ""
    return tuple(f"{head}thread ({number}): {name};{stack}" for stack in stacks)


def named(*threads: tuple[tuple[str, ...], int | None]) -> list[list[str]]:
    """Stacks of the threads, with their holders, without their heads."""
    found = with_holders([Aligned(stacks, first) for stacks, first in threads], CLASSIFIER)
    return [[stack.partition(";")[2] for stack in each.stacks] for each in found]


def test_the_thread_that_runs_python_at_the_same_look_holds_it() -> None:
    main = thread(1, "MainThread", WAITS, WAITS, SLEEPS, WAITS)
    logger = thread(2, "logger", RUNS, SLEEPS, RUNS)
    assert named((main, 0), (logger, 0)) == [[HELD, WAITS, SLEEPS, WAITS], [RUNS, SLEEPS, RUNS]]
    # It began one look later.
    assert named((main, 0), (logger, 1))[0] == [WAITS, HELD, SLEEPS, HELD]
    assert claimed(next(parse_stacks([f"{HELD} 1"]))) == "wait/gil"


def test_of_several_nobody_is_named_and_one_without_a_name_has_its_number() -> None:
    main, logger = thread(1, "MainThread", WAITS), thread(2, "logger", RUNS)
    assert named((main, 0), (logger, 0), (thread(3, "other", RUNS), 0))[0] == [WAITS]
    assert named((main, 0), (thread(0x7F, "", RUNS), 0))[0] == [f"{WAITS};GIL held by thread 127"]


def test_a_thread_of_another_process_holds_another_gil() -> None:
    main, child = thread(1, "MainThread", WAITS), thread(2, "logger", RUNS, process=12)
    assert named((main, 0), (child, 0))[0] == [WAITS]


def test_a_thread_whose_looks_are_not_known_names_nobody() -> None:
    main, logger = thread(1, "MainThread", WAITS), thread(2, "logger", RUNS)
    assert named((main, None), (logger, 0)) == [[WAITS], [RUNS]]
    assert named((main, 0), (logger, None)) == [[WAITS], [RUNS]]


def test_blocks_have_their_holders() -> None:
    main, logger = thread(1, "MainThread", RUNS, WAITS, WAITS), thread(2, "logger", SLEEPS, RUNS)
    (block,) = blocks_of([main, logger], 1, frozenset({1, 2}))
    assert block.stacks[f"thread (1): MainThread;{HELD}"] == 1
    assert block.stacks[f"thread (1): MainThread;{WAITS}"] == 1
