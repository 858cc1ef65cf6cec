"""A sampler's stacks in blocks and turns: holds part the turns, other threads lie beside the thread with the steps."""

from __future__ import annotations

import gzip
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.program import hold
from overhead_lens.samplers.blocks import Block, SampledBlock, blocks_of, read_blocks, write_blocks

PID, OTHER, GONE = 10, 11, 12
WAITING = "hold_until_sampled (site-packages/overhead_lens/program/hold.py:30)"
HELD = f"train (train.py:5);StepWatcher._sampled (site-packages/overhead_lens/program/watcher.py:9);{WAITING}"

RESUMED = (
    HELD.replace("hold_until_sampled", "hold_until_resumed") + ";_hold (site-packages/overhead_lens/program/hold.py:44)"
)


def steps(*stacks: str) -> list[str]:
    return [f"thread ({PID}): MainThread;{stack}" for stack in stacks]


def other(*stacks: str, thread: int = OTHER) -> list[str]:
    return [f"thread ({thread}): reader;{stack}" for stack in stacks]


def drawn(turn: int, number: int, *stacks: str) -> Block:
    return Block(turn, number, Counter(stacks))


def frame(name: str) -> str:
    return f"{name} (a.py:1)"


A, B, C = map(frame, "abc")


def test_the_holds_are_known_by_their_names() -> None:
    assert (hold.hold_until_resumed.__name__, hold.hold_until_sampled.__name__) == (hold.CATCH_UP, hold.HOLD)
    assert Path(hold.__file__).as_posix().endswith(hold.HOLD_FILE)


def test_holds_part_the_turns_and_are_left_out() -> None:
    sequence = steps(A, A, B, HELD, A, B, HELD, HELD, HELD, C)
    assert list(blocks_of([sequence], PID, frozenset())) == [
        drawn(0, 0, *steps(A, A, B)),
        drawn(1, 0, *steps(A, B)),
        drawn(2, 0, *steps(C)),
    ]


def test_what_was_due_while_the_sampler_rested_is_left_out() -> None:
    sequence = steps(A, HELD, B, RESUMED, A, A, A, C, HELD, B, RESUMED, RESUMED, A, HELD, C, RESUMED, A)
    assert list(blocks_of([sequence], PID, frozenset())) == [
        drawn(0, 0, *steps(A)),
        drawn(1, 0, *steps(B)),
        drawn(2, 0, *steps(B)),
        drawn(3, 0, *steps(C)),
    ]


def test_a_function_of_that_name_elsewhere_is_no_hold() -> None:
    sequence = steps(A, "hold_until_sampled (train.py:3)", A)
    assert list(blocks_of([sequence], PID, frozenset())) == [drawn(0, 0, *sequence)]


def test_turns_go_on_from_sampler_to_sampler() -> None:
    for first_turn, turns in ((0, [0, 1]), (3, [4])):
        assert [block.turn for block in blocks_of([steps(A, HELD, A)], PID, frozenset(), first_turn)] == turns
    # One that begins in a hold has nothing before it.
    assert [block.turn for block in blocks_of([steps(HELD, A)], PID, frozenset(), 3)] == [4]


def test_what_a_replacing_sampler_takes_before_its_first_hold_is_left_out() -> None:
    sequences = [steps(A, B, HELD, C), other(A, B, HELD, C)]
    assert list(blocks_of(sequences, PID, frozenset({OTHER}), 3)) == [drawn(4, 0, *steps(C), *other(C))]


def test_a_turn_is_cut_into_blocks_of_fifty() -> None:
    names = [frame(f"f{number}") for number in range(120)]
    blocks = list(blocks_of([steps(A, HELD, *names)], PID, frozenset()))
    assert blocks == [
        drawn(0, 0, *steps(A)),
        *(drawn(1, number, *steps(*names[50 * number : 50 * number + 50])) for number in range(3)),
    ]


def test_threads_that_are_there_at_the_end_are_aligned_from_it() -> None:
    main = steps(A, A, HELD, B, B, HELD, C, C)
    late = other(B, B, HELD, C, C)
    blocks = {block.turn: block.stacks for block in blocks_of([main, late], PID, frozenset({PID, OTHER}))}
    assert blocks == {
        0: Counter(steps(A, A)),
        # The last five looks: one in a turn, one while the program was held.
        1: Counter(steps(B, B) + other(B, B)),
        2: Counter(steps(C, C) + other(C, C)),
    }


def test_a_thread_that_has_gone_stands_in_the_first_turn_unless_it_was_always_there() -> None:
    main = steps(A, HELD, B, C)
    blocks = {
        block.turn: block.stacks
        for block in blocks_of([main, other(B, C), other(A, A, B, C, thread=GONE)], PID, frozenset({PID}))
    }
    assert blocks == {
        0: Counter(steps(A) + other(B, C) + other(A, thread=GONE)),
        1: Counter(steps(B, C) + other(B, C, thread=GONE)),
    }


def test_a_thread_that_was_seen_more_often_than_that_of_the_steps() -> None:
    # The thread with the steps began later: what came before its first stack is the start.
    blocks = {
        block.turn: block.stacks for block in blocks_of([steps(HELD, B), other(A, A, A, C)], PID, frozenset({OTHER}))
    }
    assert blocks == {0: Counter(other(A, A)), 1: Counter(steps(B) + other(C))}


def test_without_the_thread_of_the_steps_all_is_start() -> None:
    (block,) = blocks_of([other(A, HELD, B)], PID, frozenset({OTHER}), 2)
    assert block == drawn(2, 0, *other(A, HELD, B))


def test_threads_that_are_not_aligned_stand_beside_the_first_block() -> None:
    main, gone = steps(*[A] * 60), other(B, thread=GONE)
    blocks = list(blocks_of([main, gone], PID, frozenset()))
    assert blocks == [drawn(0, 0, *steps(*[A] * 50), *gone), drawn(0, 1, *steps(*[A] * 10))]


@given(st.lists(st.tuples(st.sampled_from([A, B, C, HELD]), st.integers(1, 130)), max_size=8), st.integers(0, 200))
def test_no_stack_is_lost_or_counted_twice(groups: list[tuple[str, int]], late: int) -> None:
    main = steps(A, *(stack for stack, count in groups for _ in range(count)))
    beside = other(*[A] * min(late, len(main)))
    blocks = list(blocks_of([main, beside] if beside else [main], PID, frozenset({OTHER})))
    total: Counter[str] = sum((block.stacks for block in blocks), Counter())
    kept = [stack for stack in main if not stack.endswith(HELD)]
    held = [stack.endswith(HELD) for stack in main[len(main) - len(beside) :]]
    assert total == Counter(kept) + Counter(stack for stack, out in zip(beside, held, strict=True) if not out)
    keys = [(block.turn, block.number) for block in blocks]
    assert keys == sorted(set(keys))
    own = [sum(count for stack, count in block.stacks.items() if f"({PID})" in stack) for block in blocks]
    turns = [len(list(group)) for out, group in groupby(main, key=lambda stack: stack.endswith(HELD)) if not out]
    assert own == [min(50, turn - at) for turn in turns for at in range(0, turn, 50)]


# ---------------------------------------------------------------- stored
def names(block: SampledBlock) -> list[tuple[str, list[tuple[str, int]]]]:
    return [
        (thread.name, [(stack.frames[-1].function, stack.count) for stack in thread.stacks]) for thread in block.threads
    ]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    blocks = [
        (drawn(0, 0, *steps(A, A, B), *other(C)), 5),
        (drawn(1, 0, *steps(B)), 1),
        (drawn(1, 1, *steps(C, C)), 1),
        (drawn(12, 3, *other(A)), 2),
    ]
    write_blocks(tmp_path / "stacks.txt.gz", blocks)
    with gzip.open(tmp_path / "stacks.txt.gz", "rt") as file:
        assert file.readline() == f"sampler 0.0 (py-spy:5);thread ({PID}): MainThread;a (a.py:1) 2\n"
    found = read_blocks(tmp_path / "stacks.txt.gz", PID)
    assert [(block.turn, block.weight, names(block)) for block in found] == [
        (0, 5, [("MainThread", [("a", 2), ("b", 1)]), ("reader", [("c", 1)])]),
        (1, 1, [("MainThread", [("b", 1)])]),
        (1, 1, [("MainThread", [("c", 2)])]),
        (12, 2, [("reader", [("a", 1)])]),
    ]


def stored(folder: Path, *lines: str) -> list[SampledBlock]:
    with gzip.open(folder / "stacks.txt.gz", "wt") as file:
        file.writelines(f"{line}\n" for line in lines)
    return read_blocks(folder / "stacks.txt.gz", PID)


def test_without_a_file_there_are_none(tmp_path: Path) -> None:
    assert read_blocks(tmp_path / "stacks.txt.gz", PID) == []


def test_earlier_runs_have_turns_of_the_steps_alone(tmp_path: Path) -> None:
    lines = [f"sampler {turn} (py-spy:1);{steps(stack)[0]} 3" for turn, stack in ((0, A), (1, B), (0, C))]
    assert [(block.turn, block.weight, names(block)) for block in stored(tmp_path, *lines)] == [
        (1, 1, [("MainThread", [("a", 3), ("c", 3)])]),
        (2, 1, [("MainThread", [("b", 3)])]),
    ]


def test_earlier_watches_have_no_head(tmp_path: Path) -> None:
    (block,) = stored(tmp_path, f"{steps(A)[0]} 3", f"{other(B)[0]} 2", f"{steps(C)[0]} 1")
    assert names(block) == [("MainThread", [("a", 3), ("c", 1)]), ("reader", [("b", 2)])]


@pytest.mark.parametrize("head", ["sampler x (py-spy:1)", "sampler 0.0", "sampler 0.0 (perf:1)", "sampler 1 (py-spy:)"])
def test_a_head_that_is_none_is_damage(tmp_path: Path, head: str) -> None:
    with pytest.raises(ValueError, match=r"^no sampler 'sampler "):
        stored(tmp_path, f"{head};{steps(A)[0]} 3")
