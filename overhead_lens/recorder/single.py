"""Records one capture: fresh workers, one of which is timed while all others are blocked.

Workers warm up side by side, in batches, and end before the next ones start. As many as there are cores are timed, one by one,
and then sampled at once, each on a core of its own. A core that is left over traces the first process meanwhile::

    core 1   warm up 0, 1, 2 | time 0 |        | sample 0 | time 2 | sample 2 |         |         |         | warm up 3, 4 | ...
    core 2   warm up 0, 1, 2 |        | time 1 | sample 1 |        | trace 0  | rungs 0 | rungs 1 | rungs 2 | warm up 3, 4 | ...

A process is sampled after its blocks: so the sampler disturbs no timing, and shares and wall time come from the same processes,
which differ in both by their address layout. Rungs and guards are timed in one process at a time.

Whoever watches a recording sees it grow: between two measurements, while every worker is blocked, it may ask for a capture of
what there is so far, and may end the recording there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from overhead_lens.captures.directory import recording_directory
from overhead_lens.errors import EndedEarly
from overhead_lens.instruments.clock.record import Clock
from overhead_lens.instruments.instrument import Instrument, Turn, When
from overhead_lens.instruments.registry import INSTRUMENTS
from overhead_lens.machine.cores import idle_cores
from overhead_lens.machine.process import Worker, in_batches
from overhead_lens.machine.request import Listener, Request
from overhead_lens.recorder.side import Side, get_ready

_SO_FAR = ".so-far"

# What a machine does for a moment must not have processes sampled in turns.
_LOOKS_FOR_CORES = 5


class Watch(Protocol):
    """Looks at a recording while it grows."""

    most: int

    def prepare(self) -> None:
        """Called while processes get ready: for what takes time and must disturb none of them later, as imports."""

    def so_far(self, capture: Callable[[], Path], processes: int) -> str:
        """Called with the number of timed processes that have finished; returns why that is enough, empty if it is not.

        Args:
            capture: Writes what there is as a capture, which is gone at the next call.
        """


def record(
    request: Request,
    listener: Listener,
    watch: Watch | None = None,
    instruments: Sequence[Callable[[], Instrument]] = INSTRUMENTS,
) -> Path:
    """Record one capture; returns its directory.

    Args:
        watch: Sees it grow. ``EndedEarly`` then ends the recording with the processes that have measured, if there is one.
        instruments: What makes those that measure; the clock is always one.

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: The clock could not be read, or nothing can be written.
        Interrupted: Ended otherwise, before there was anything, or without a watch.
    """
    started = datetime.now(timezone.utc)
    label = f"{request.target.label}-compile" if request.compiles else request.target.label
    with recording_directory(request.output, request.parent, label) as folder:
        side = Side(request, folder, listener, [make() for make in instruments])
        try:
            _measure(side, listener, watch, started)
        except EndedEarly:
            processes = len({row["process"] for row in side.of(Clock).rows})
            if watch is None or not processes:
                raise
            side.warnings.append(f"interrupted after {processes} timed process{'es' * (processes > 1)}")
        finally:
            shutil.rmtree(folder / _SO_FAR, ignore_errors=True)
        listener.step("writing the capture")
        return side.write(started)


def _measure(side: Side, listener: Listener, watch: Watch | None, started: datetime) -> None:
    """Measure in all processes, batch by batch, until there is enough."""
    most = side.request.effort.processes if watch is None else watch.most
    batches = in_batches(range(most))
    listener.begin(2 * len(batches) + most + 1 + side.request.instructions)

    def ends(processes: int) -> bool:
        """Whether no more processes are to be timed."""
        reason = "" if watch is None else watch.so_far(lambda: _capture_so_far(side, started), processes)
        if reason:
            side.warnings.append(reason)
        return bool(reason) or processes == most

    for batch in batches:
        names = [f"clock-{number}" for number in batch]
        with _warmed_up(side, names, listener, lambda: None if watch is None else watch.prepare()) as workers:
            turns = [Turn(side, number, worker) for number, worker in zip(batch, workers, strict=True)]
            if _measure_turns(side, turns, listener, ends):
                break
    side.give_turns(When.AFTERWARDS)


def _measure_turns(side: Side, turns: Sequence[Turn], listener: Listener, ends: Callable[[int], bool]) -> bool:
    """Time and sample processes in groups of as many as cores are idle, and trace the very first; whether the recording ends."""
    cores = _idle_cores()
    traced = [(When.RECORDED, turn) for turn in turns if turn.process == 0]
    measured: list[Turn] = []
    ended = False
    while not ended and len(measured) < len(turns):
        group = turns[len(measured) : len(measured) + len(cores)]
        for turn in group:
            listener.step(f"timing: {turn.present_worker.name}")
            side.give_turns(When.TIMED, turn.process, turn.worker)
        listener.step(f"sampling: {', '.join(turn.present_worker.name for turn in group)}")
        # A core that is left over traces; a process is not traced while it is sampled itself.
        beside = traced if measured and len(group) < len(cores) else []
        _look_into(side, [*((When.SAMPLED, turn) for turn in group), *beside], cores)
        traced = [] if beside else traced
        measured += group
        ended = ends(len(measured) + turns[0].process)
    # What follows needs the machine for itself.
    _look_into(side, traced, [None])
    for turn in measured:
        if turn.process == 0:
            side.give_turns(When.TRACED, 0, turn.worker)
    for turn in measured:
        side.give_turns(When.CHANGED, turn.process, turn.worker)
    if ended:
        side.give_turns(When.LAST, measured[-1].process, measured[-1].worker)
    return ended


def _look_into(side: Side, jobs: Sequence[tuple[When, Turn]], cores: Sequence[int | None]) -> None:
    """Sample and trace processes at once, on a core each.

    Calls that use other threads are by themselves: each would wait for threads whose core another one holds. So are calls on a
    device, which does the work of one process at a time.
    """
    use_threads = side.of(Clock).use_threads
    if side.device != "cpu" or any(use_threads.get(turn.process) for _, turn in jobs):
        for job in jobs:
            side.measure_at_once([job], [None])
    else:
        side.measure_at_once(jobs, cores)


def _idle_cores() -> Sequence[int | None]:
    """Cores of processes that are looked into at once; a single None for one after the other, on the sampler's choice."""
    for _ in range(_LOOKS_FOR_CORES):
        if len(cores := idle_cores()) > 1:
            return cores
    return [None]


def _capture_so_far(side: Side, started: datetime) -> Path:
    """The measurements so far, as a capture inside the final one."""
    folder = side.folder
    path = folder / _SO_FAR
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for file in folder.iterdir():
        if file.is_file() and file.suffix != ".log" and not file.name.startswith("."):
            (path / file.name).symlink_to(file.resolve())
    return side.write(started, folder=path)


@contextmanager
def _warmed_up(
    side: Side, names: Sequence[str], listener: Listener, meanwhile: Callable[[], None]
) -> Iterator[list[Worker]]:
    """Workers that are loaded, compiled and settled, blocked on their next request; ``meanwhile`` is done while they load."""
    listener.step(f"warming up: {', '.join(names)}")
    with ExitStack() as stack:
        workers = [stack.enter_context(side.start(name)) for name in names]
        get_ready([(side, worker) for worker in workers], meanwhile)
        yield workers
