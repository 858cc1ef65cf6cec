"""Records one capture: fresh workers, one of which measures at a time while all others are blocked.

Workers warm up side by side, as many as there are cores, and end before the next ones start: few copies of the inputs are in
memory at once, and the timed processes are spread over the recording::

    core 1   tracer:  warm up | traced |       |         | clock 1: warm up | timed | sampled |       | ...
    core 2   clock 0: warm up |        | timed | sampled | clock 2: warm up |       |         | timed | ...

A timed process is sampled after its blocks and then ended: so the sampler disturbs no timing, and shares and wall time come from
the same processes, which differ in both by their address layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from pathlib import Path

from overhead_lens.captures.directory import cannot_write, recording_directory
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instrument import When
from overhead_lens.instruments.registry import INSTRUMENTS
from overhead_lens.machine.operations import WARM_UP
from overhead_lens.machine.process import Worker, in_batches
from overhead_lens.machine.request import Listener, Request
from overhead_lens.recorder.side import Side


def record(request: Request, listener: Listener) -> Path:
    """Record one capture; returns its directory.

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: The clock could not be read, or nothing can be written.
    """
    started = datetime.now(timezone.utc)
    label = f"{request.target.label}-compile" if request.compiles else request.target.label
    with recording_directory(request.output, request.parent, label) as folder:
        try:
            side = Side.of(request, folder, listener, [make() for make in INSTRUMENTS])
            _measure(side, listener)
            listener.step("writing the capture")
            return side.write(started)
        except OSError as error:
            raise MeasurementError(cannot_write(folder, error)) from error


def _measure(side: Side, listener: Listener) -> None:
    """Measure in all processes, batch by batch; number -1 is the traced one."""
    processes = side.request.effort.processes
    batches = in_batches(range(-1, processes))
    listener.begin(1 + processes + len(batches) + 1 + side.request.instructions)
    for batch in batches:
        with _warmed_up(side, [_name(number) for number in batch], listener) as workers:
            for number, worker in zip(batch, workers, strict=True):
                listener.step(f"measuring: {worker.name}")
                if number < 0:
                    side.give_turns(When.TRACED, 0, worker)
                else:
                    side.give_turns(When.TIMED, number, worker)
                if number == processes - 1:
                    side.give_turns(When.LAST, number, worker)
    side.give_turns(When.AFTERWARDS)


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
