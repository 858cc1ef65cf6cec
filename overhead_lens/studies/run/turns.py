"""Divides a sampler's stacks into the turns in which they were taken (pure).

The program waits in ``hold_until_sampled`` before each turn, and is sampled there. These stacks part the turns of the thread with the
steps; whatever comes before the first ones is turn 0, the program's start::

    import import loop loop | hold | loop loop loop loop | hold hold hold | loop loop ...
    --------- turn 0 -------          ----- turn 1 -----                    -- turn 2 --

All threads are looked at together, so another thread's stacks lie beside those of the thread with the steps: the last ones together
if it was there at the end, all of them if it has as many. Of a thread that came and went nobody knows when that was: turn 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from overhead_lens.program.hold import HOLD, HOLD_FILE
from overhead_lens.readers.py_spy.threads import thread_number

# Stacks of one block, which are treated as one observation of how the time divides.
_BLOCK = 50


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive stacks of all threads.

    Attributes:
        turn: 0 for the program's start.
        number: Of the block within all turns.
        stacks: Folded, with their counts.
    """

    turn: int
    number: int
    stacks: Counter[str]


def blocks_of(
    sequences: Sequence[Sequence[str]], thread: int, alive: frozenset[int], first_turn: int = 0
) -> Iterator[Block]:
    """The blocks of one sampler's stacks, in order.

    Args:
        sequences: Folded stacks by thread.
        thread: The thread with the steps.
        alive: Threads that were there when the sampler ended.
        first_turn: Number of the turn before the first hold.
    """
    steps = next((sequence for sequence in sequences if thread_number(sequence[0]) == thread), ())
    turns = _turns(steps, first_turn)
    places = _blocks(turns)
    blocks: dict[tuple[int, int], Counter[str]] = {}
    for sequence in sequences:
        from_end = len(sequence) == len(steps) or thread_number(sequence[0]) in alive
        offset = len(steps) - len(sequence)
        for at, stack in enumerate(sequence):
            known = from_end and at + offset >= 0
            place = places[at + offset] if known else (first_turn, 0)
            if place is not None:
                blocks.setdefault(place, Counter())[stack] += 1
    for turn, number in sorted(blocks):
        yield Block(turn, number, blocks[turn, number])


def _turns(steps: Sequence[str], first_turn: int) -> list[int | None]:
    """The turn of each stack; None in a hold."""
    turns: list[int | None] = []
    turn = first_turn
    for held, group in groupby(steps, key=lambda stack: HOLD in stack and HOLD_FILE in stack):
        turn += held
        turns += [None if held else turn for _ in group]
    return turns


def _blocks(turns: Sequence[int | None]) -> list[tuple[int, int] | None]:
    """Turn and block of each stack."""
    places: list[tuple[int, int] | None] = []
    for turn, group in groupby(turns):
        places += [None if turn is None else (turn, at // _BLOCK) for at, _ in enumerate(group)]
    return places
