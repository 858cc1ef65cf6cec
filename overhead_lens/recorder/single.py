"""Records one capture: fresh workers, one of which measures at a time while all others are blocked.

Workers warm up side by side, as many as there are cores, and end before the next ones start: few copies of the inputs are in
memory at once, and the timed processes are spread over the recording::

    core 1   clock 0: warm up | timed | sampled |        | clock 1: warm up | timed | sampled |       | ...
    core 2   tracer:  warm up |       |         | traced | clock 2: warm up |       |         | timed | ...

A timed process is sampled after its blocks and then ended: so the sampler disturbs no timing, and shares and wall time come from
the same processes, which differ in both by their address layout.

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

from overhead_lens.captures.directory import cannot_write, recording_directory
from overhead_lens.errors import EndedEarly, MeasurementError
from overhead_lens.instruments.clock.record import Clock
from overhead_lens.instruments.instrument import Instrument, When
from overhead_lens.instruments.registry import INSTRUMENTS
from overhead_lens.machine.operations import WARM_UP
from overhead_lens.machine.process import Worker, in_batches
from overhead_lens.machine.request import Listener, Request
from overhead_lens.recorder.side import Side

_SO_FAR = ".so-far"


class Watch(Protocol):
    """Looks at a recording while it grows.

    Attributes:
        most: Timed processes at most.
    """

    most: int

    def so_far(self, capture: Callable[[], Path], processes: int) -> str:
        """Called when so many timed processes have measured; returns why that is enough, empty if it is not.

        Args:
            capture: Writes what there is as a capture, which is gone at the next call.
            processes: Timed processes so far.
        """


def record(
    request: Request,
    listener: Listener,
    watch: Watch | None = None,
    instruments: Sequence[Callable[[], Instrument]] = INSTRUMENTS,
) -> Path:
    """Record one capture; returns its directory.

    Args:
        request: What to record.
        listener: Is told the progress.
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
        try:
            side = Side.of(request, folder, listener, [make() for make in instruments])
            try:
                _measure(side, listener, watch, started)
            except EndedEarly:
                if watch is None or not _is_worth_keeping(side):
                    raise
            finally:
                shutil.rmtree(folder / _SO_FAR, ignore_errors=True)
            listener.step("writing the capture")
            return side.write(started)
        except OSError as error:
            raise MeasurementError(cannot_write(folder, error)) from error


def _is_worth_keeping(side: Side) -> bool:
    """Whether an interrupted recording has a timed process; if so, its report will say that more were meant to be."""
    processes = len({row["process"] for row in side.recording.of(Clock).rows})
    if processes:
        side.recording.warnings.append(f"interrupted after {processes} timed process{'es' * (processes > 1)}")
    return processes > 0


def _measure(side: Side, listener: Listener, watch: Watch | None, started: datetime) -> None:
    """Measure in all processes, batch by batch, until there is enough; number -1 is the traced one, if anything is traced."""
    most = side.request.effort.processes if watch is None else watch.most
    traced = any(instrument.when is When.TRACED for instrument in side.recording.instruments)
    batches = in_batches((0, *((-1,) if traced else ()), *range(1, most)))
    listener.begin(1 + most + len(batches) + 1 + side.request.instructions)

    def ends(processes: int) -> bool:
        return _ends(side, watch, processes, most, started)

    for batch in batches:
        if _measure_batch(side, batch, listener, ends):
            break
    side.give_turns(When.AFTERWARDS)


def _measure_batch(side: Side, batch: Sequence[int], listener: Listener, ends: Callable[[int], bool]) -> bool:
    """Measure in the processes of a batch; whether the recording ends with it."""
    with _warmed_up(side, [_name(number) for number in batch], listener) as workers:
        for number, worker in zip(batch, workers, strict=True):
            listener.step(f"measuring: {worker.name}")
            side.give_turns(When.TIMED if number >= 0 else When.TRACED, max(0, number), worker)
            if number >= 0 and ends(number + 1):
                side.give_turns(When.LAST, number, worker)
                return True
    return False


def _ends(side: Side, watch: Watch | None, processes: int, most: int, started: datetime) -> bool:
    """Whether no more processes are to be timed."""
    reason = "" if watch is None else watch.so_far(lambda: _capture_so_far(side, started), processes)
    if reason:
        side.recording.warnings.append(reason)
    return bool(reason) or processes == most


def _capture_so_far(side: Side, started: datetime) -> Path:
    """What has been measured, as a capture inside the one that is recorded."""
    folder = side.recording.folder
    path = folder / _SO_FAR
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for file in folder.iterdir():
        if file.is_file() and file.suffix != ".log" and not file.name.startswith("."):
            (path / file.name).symlink_to(file.resolve())
    return side.write(started, folder=path)


def _name(number: int) -> str:
    return "tracer" if number < 0 else f"clock-{number}"


@contextmanager
def _warmed_up(side: Side, names: Sequence[str], listener: Listener) -> Iterator[list[Worker]]:
    """Workers that are loaded, compiled and settled, blocked on their next request."""
    listener.step(f"warming up: {', '.join(names)}")
    with ExitStack() as stack:
        workers = [stack.enter_context(side.start(name)) for name in names]
        for worker in workers:
            side.send_load(worker)
        for worker in workers:
            side.note_load(worker)
        for worker in workers:
            worker.send(WARM_UP)
        for worker in workers:
            side.note_warm_up(worker)
        yield workers
