"""Records two captures in turns, so that whatever the machine does happens to both sides.

A round is one fresh process of each side. Both are warmed up, then timed block by block in turns. The side that starts first
changes from round to round; which goes first in a pair of blocks is random, since strict turns can meet a periodic
neighbour on one side only. A block is timed in pieces of 0.25 ms, the median of which counts: disturbances, and the slow start
after each turn, hit few of them. Where calls use other threads, a block waits until those of the block before stop spinning::

    round 0   warm up base, new | A B | B A | B A | A B ... | sample A and B |
    round 1   warm up new, base | B A | A B | B A | B A ... |
    round 2   warm up base, new | ...

Not every round is sampled, since the sampler's start takes as long as a third of a round. Both sides are sampled at the same time
on a core each, or one after the other where no two cores are idle or a call uses other threads or a device. The last round's
processes are traced at their end. Nothing warms up while something is measured: logical processors may share execution units.

Two processes of the same call differ by where their code and data lie, more than blocks of one process do. So both processes of a
round get the same layout: addresses are not randomized; the size of the environment, which moves the stack, and the seed of
hashes change from round to round but not between the sides.

What torch.compile makes differs even so, by where its objects lie. Starting a process takes far longer than compiling once more,
so each process compiles and is timed as often as that pays. The first blocks after each compilation run slow, more so on the side
that compiled first. They are discarded (docs/methodology/verdicts.md).
"""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from overhead_lens.captures import directory
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.clock.record import TIME_BLOCKS, Clock
from overhead_lens.instruments.instrument import Instrument, Turn, When, measure_at_once
from overhead_lens.instruments.page_faults.record import MeasurePageFaults
from overhead_lens.instruments.peaks.record import MeasurePeaks
from overhead_lens.instruments.registry import INSTRUMENTS
from overhead_lens.instruments.samples.record import SampleStacks
from overhead_lens.machine.cores import idle_cores, put_back, share_one_core, wait_until_idle
from overhead_lens.machine.process import Worker
from overhead_lens.machine.request import Effort, Listener, Request
from overhead_lens.recorder.side import Side, get_ready

BLOCK_NS = 5_000_000
_PIECE_NS = 250_000

# Not a multiple of a cache line.
_PADDING_BYTES = 112
# Linux takes no variable of 128 KiB or more (execve(2)).
_PADDINGS = 1_000

# Folders of the two captures.
SIDES = ("base", "new")


def paired_effort(*, compiles: bool) -> Effort:
    """The usual effort, with or without a side that is compiled."""
    processes, blocks, clock_ns, samples = (8, 48, 1_500_000_000, 1_400) if compiles else (12, 100, 800_000_000, 1_700)
    # Many stacks of few processes: the sampler takes 1.9 s before the first stack.
    return Effort(processes, blocks, clock_budget_ns=clock_ns, samples_per_process=samples, sampled_every=2)


# Compilations of a process at most, and their time in a round; after a long start nothing is compiled again.
_COMPILATIONS = 6
_COMPILING_S = 4.0
_LONG_START_S = 20.0

# Blocks of each side that are discarded after a compilation; at most one of a call that is longer than a block.
_SETTLING = 4


def record_pair(base: Request, new: Request, folder: Path, listener: Listener) -> tuple[Path, Path]:
    """Record two captures in turns into ``folder/base`` and ``folder/new``.

    Both requests have the same effort; their own outputs are ignored.

    Raises:
        UsageError: A scenario or a parameter is wrong.
        MeasurementError: The clock could not be read, or nothing can be written.
    """
    started = datetime.now(timezone.utc)
    rounds = base.effort.processes
    listener.begin(2 * rounds + 4)
    try:
        sides = [
            Side(request, directory.claim_directory(folder / name), listener, _instruments())
            for name, request in zip(SIDES, (base, new), strict=True)
        ]
        for number in range(rounds):
            _round(number, sides, listener, last=number == rounds - 1)
        listener.step("writing the captures")
        together = uuid.uuid4().hex
        paths = [side.write(started, recorded_with=together) for side in sides]
    except OSError as error:
        raise MeasurementError(directory.cannot_write(folder, error)) from error
    return paths[0], paths[1]


def _instruments() -> list[Instrument]:
    """All instruments, with a clock that times blocks in pieces."""
    return [Clock(BLOCK_NS, _PIECE_NS), *(make() for make in INSTRUMENTS if make is not Clock)]


def _start(stack: ExitStack, sides: Sequence[Side], number: int) -> list[Worker]:
    """One warmed-up worker of each side, in the order of ``sides``; they end with ``stack``."""
    workers = [stack.enter_context(side.start(f"clock-{number}", layout(number))) for side in sides]
    get_ready(list(zip(sides, workers, strict=True)))
    return workers


def layout(number: int) -> dict[str, str]:
    """Variables that give both processes of a round one layout, and each round another."""
    return {
        "PYTHONHASHSEED": str(number),
        "OVERHEAD_LENS_LAYOUT": "fixed",
        "OVERHEAD_LENS_PADDING": "x" * (_PADDING_BYTES * (number % _PADDINGS)),
    }


def _round(number: int, sides: Sequence[Side], listener: Listener, *, last: bool) -> None:
    """Time one process of each side in turns, then sample, in the last round trace them."""
    ordered = list(sides) if number % 2 == 0 else list(reversed(sides))
    listener.step(f"warming up: round {number}")
    with ExitStack() as stack:
        started_s = time.monotonic()
        workers = _start(stack, ordered, number)
        long_start = time.monotonic() - started_s >= _LONG_START_S
        listener.step(f"measuring: round {number}")
        affinities = share_one_core(worker.pid for worker in workers)
        turns = list(zip(ordered, workers, strict=True))
        compilations = 1 if long_start else _compilations(turns)
        lot = random.Random(number)  # noqa: S311
        one_thread = True
        for compilation in range(compilations):
            if compilation:
                # The first compilation stays a little slower even after the discarded blocks.
                _recompile(turns[::-1] if compilation % 2 else turns)
            one_thread &= _time((number, compilation), turns, lot, compilations)
        if number % turns[0][0].request.effort.sampled_every == 0:
            _sample(number, turns, threads=not one_thread)
            for side, worker in turns:
                side.of(MeasurePageFaults).measure(Turn(side, number, worker))
        if last:
            # The following may start a process's first other threads.
            for pid, before in affinities.items():
                put_back(pid, before)
            for side, worker in turns:
                listener.step(f"tracing: {worker.name}")
                side.give_turns(When.RECORDED, number, worker)
                side.give_turns(When.TRACED, number, worker)
            (one, worker), (other, _) = turns
            one.give_turns(When.LAST, number, worker)
            other.of(MeasurePeaks).note = one.of(MeasurePeaks).note


def _compilations(turns: Sequence[tuple[Side, Worker]]) -> int:
    """Number of compilations of a process that there is time for, by the time of one more."""
    if not any(side.compiles for side, _ in turns):
        return 1
    started_s = time.monotonic()
    _recompile(turns)
    one_s = time.monotonic() - started_s
    return max(1, min(_COMPILATIONS, int(_COMPILING_S / max(one_s, 1e-9))))


def _recompile(turns: Sequence[tuple[Side, Worker]]) -> None:
    for side, worker in turns:
        side.recompile(worker)


def _sample(number: int, turns: Sequence[tuple[Side, Worker]], *, threads: bool) -> None:
    """Sample both sides at once on a core each, else in turns with half as many stacks.

    Cores, or the order, are exchanged from one sampled round to the next. Calls that use other threads or a device are never
    sampled at the same time: each would wait for threads whose core the other holds, or for the other's work on the device.
    """
    effort = turns[0][0].request.effort
    if number % 2 != number // effort.sampled_every % 2:
        turns = turns[::-1]
    count, groups = effort.samples_per_process, [turns]
    by_itself = threads or any(side.device != "cpu" for side, _ in turns)
    cores: Sequence[int | None] = [] if by_itself else idle_cores()
    if len(cores) < len(turns):
        count, groups, cores = count // 2, [[turn] for turn in turns], [None]
    for group in groups:
        measure_at_once(
            side.of(SampleStacks).sample(side.folder, worker, count, core, threads=threads)
            for (side, worker), core in zip(group, cores, strict=False)
        )


def _time(place: tuple[int, int], turns: Sequence[tuple[Side, Worker]], lot: random.Random, parts: int) -> bool:
    """Time one of ``parts`` equal parts of a round's blocks; returns whether calls run on one thread.

    ``place`` is the round and the compilation, both from 0.
    """
    effort = turns[0][0].request.effort
    number, compilation = place
    first = len(turns[0][0].of(Clock).rows_of(number))
    pairs = _pairs_of_blocks(turns, lot)
    for _ in range(_SETTLING):
        if any(block.row["wall_ns"] > 2 * BLOCK_NS for block in next(pairs)):
            break
    spent_ns, count = 0, 0
    with_others: Counter[int] = Counter()
    while count < effort.blocks // parts and (count < 3 or spent_ns < 2 * effort.clock_budget_ns // parts):
        for block in next(pairs):
            place_of_row = {"process": number, "compilation": compilation, "block": first + count}
            block.side.of(Clock).rows.append({**block.row, **place_of_row})
            spent_ns += block.row["wall_ns"] + block.row["reference_ns"] + block.waited_ns
            with_others[id(block.side)] += block.threads
        count += 1
    return max(with_others.values()) <= count / 2


@dataclass(frozen=True, slots=True)
class _Block:
    """A timed block.

    Attributes:
        threads: Whether other threads ran.
        waited_ns: Time until the threads of the block before stopped.
    """

    side: Side
    row: dict[str, int]
    threads: bool
    waited_ns: int


def _pairs_of_blocks(turns: Sequence[tuple[Side, Worker]], lot: random.Random) -> Iterator[list[_Block]]:
    """Blocks of both sides without end; the side that goes first is random."""
    workers = [worker for _, worker in turns]
    threads = False
    while True:
        pair = []
        for side, worker in lot.sample(turns, len(turns)):
            started_ns = time.monotonic_ns()
            if threads:
                wait_until_idle(workers)
            waited_ns = time.monotonic_ns() - started_ns
            timed = worker.ask(TIME_BLOCKS, block_ns=BLOCK_NS, blocks=1, budget_ns=0, piece_ns=_PIECE_NS)
            threads = timed.use_threads
            pair.append(_Block(side, timed.rows[0], threads, waited_ns))
        yield pair
