"""A sampler's stacks in blocks of consecutive ones, and in the turns in which a program under ``run`` was sampled.

The program waits in ``hold_until_sampled`` before each turn, and is sampled there. These stacks part the turns of the thread
with the steps; whatever comes before the first ones is turn 0, the program's start. What was due while the sampler rested comes
between ``hold_until_resumed`` and ``hold_until_sampled``, and is left out, as is what a sampler that replaces another takes
before its first hold::

    import import loop loop | hold | loop loop loop loop | resumed | loop loop loop | hold hold | loop loop ...
    --------- turn 0 -------          ----- turn 1 -----             -- left out --               -- turn 2 --

All threads are looked at together, so another thread's stacks lie beside those of the thread with the steps: the last ones
together if it was there at the end, all of them if it has as many. When a thread came and went is not known: turn 0.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from overhead_lens.program.hold import CATCH_UP, HOLD, HOLD_FILE
from overhead_lens.readers.py_spy.threads import SampledThread, read_threads, thread_head
from overhead_lens.samplers.holders import Aligned, with_holders
from overhead_lens.taxonomy.classifier import default_classifier

_HEAD = re.compile(r"sampler (?P<turn>\d+)(?P<block>\.\d+)? \(py-spy:(?P<weight>\d+)\)")

_ONLY = "sampler 0 (py-spy:1)"

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


@dataclass(frozen=True, slots=True)
class SampledBlock:
    """Threads with their consecutive stacks.

    Attributes:
        turn: Of the sampler; 0 for the program's start, before steps were measured.
        weight: What a stack counts: more where fewer were taken a second.
    """

    turn: int
    weight: int
    threads: Sequence[SampledThread]


def blocks_of(
    sequences: Sequence[Sequence[str]], thread: int, alive: frozenset[int], first_turn: int = 0
) -> Iterator[Block]:
    """The blocks of one sampler's stacks, in order.

    Args:
        sequences: Folded stacks by thread.
        alive: Threads that were there when the sampler ended.
        first_turn: Number of the turn before the first hold; 0 for the first sampler.
    """
    steps = next((sequence for sequence in sequences if thread_head(sequence[0]).thread == thread), ())
    places = _blocks(_turns(steps, first_turn))
    blocks: dict[tuple[int, int], Counter[str]] = {}
    aligned = [_aligned(sequence, len(steps), alive) for sequence in sequences]
    for each in with_holders(aligned, default_classifier()):
        for at, stack in enumerate(each.stacks):
            known = each.first is not None and each.first + at >= 0
            place = places[each.first + at] if known and each.first is not None else (first_turn, 0)
            if place is not None:
                blocks.setdefault(place, Counter())[stack] += 1
    for turn, number in sorted(blocks):
        yield Block(turn, number, blocks[turn, number])


def _aligned(sequence: Sequence[str], looks: int, alive: frozenset[int]) -> Aligned:
    """A thread's stacks, aligned with the ``looks`` (samples) of the thread with the steps."""
    from_end = len(sequence) == looks or thread_head(sequence[0]).thread in alive
    return Aligned(sequence, looks - len(sequence) if from_end else None)


def _turns(steps: Sequence[str], first_turn: int) -> list[int | None]:
    """The turn of each stack; None in a hold, and from where the sampler goes on, or replaces another, to the next turn."""
    turns: list[int | None] = []
    # A sampler that replaces another begins in the middle of a step: its first stacks are of no whole turn.
    turn, catches_up = first_turn, first_turn > 0
    for hold, group in groupby(steps, key=_hold):
        turn += hold == HOLD
        catches_up = hold == CATCH_UP or (catches_up and hold != HOLD)
        turns += [None if hold or catches_up else turn for _ in group]
    return turns


def _hold(stack: str) -> str:
    """The function in which the program is held; empty outside of one."""
    return next((name for name in (HOLD, CATCH_UP) if name in stack and HOLD_FILE in stack), "")


def _blocks(turns: Sequence[int | None]) -> list[tuple[int, int] | None]:
    """Turn and block of each stack."""
    places: list[tuple[int, int] | None] = []
    for turn, group in groupby(turns):
        places += [None if turn is None else (turn, at // _BLOCK) for at, _ in enumerate(group)]
    return places


def write_blocks(path: Path, blocks: Iterable[tuple[Block, int]]) -> None:
    """Write the blocks of stacks, each with the weight of a stack."""
    with gzip.open(path, "wt", encoding="utf-8") as target:
        for block, weight in blocks:
            head = f"sampler {block.turn}.{block.number} (py-spy:{weight})"
            target.writelines(f"{head};{stack} {count}\n" for stack, count in block.stacks.items())


def read_blocks(path: Path, pid: int) -> list[SampledBlock]:
    """The blocks in a file of stacks of process ``pid`` and its children, in order; none without the file.

    Raises:
        OSError, EOFError, ValueError, zlib.error: It is damaged, or cannot be read.
    """
    if not path.exists():
        return []
    lines: dict[str, list[str]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as source:
        for line in source:
            head, _, stack = line.partition(";")
            # Earlier captures of processes have no sampler's head.
            has_head = head.startswith("sampler ")
            lines.setdefault(head if has_head else _ONLY, []).append(stack if has_head else line)
    return [_block(head, stacks, pid) for head, stacks in lines.items()]


def _block(head: str, stacks: list[str], pid: int) -> SampledBlock:
    """A block; the head of earlier captures of runs has the turn alone, from 0 on."""
    match = _HEAD.fullmatch(head)
    if match is None:
        raise ValueError(f"no sampler {head[:40]!r}")
    turn = int(match["turn"]) + (match["block"] is None)
    return SampledBlock(turn, int(match["weight"]), read_threads(stacks, pid))
