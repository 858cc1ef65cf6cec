"""Records a callable in this process: times, samples and traces it, one after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from overhead_lens.captures.directory import recording_directory
from overhead_lens.instruments.calibration.record import Calibrate
from overhead_lens.instruments.clock.record import Clock
from overhead_lens.instruments.guards.record import ListGuards
from overhead_lens.instruments.instrument import Turn, When
from overhead_lens.instruments.page_faults.record import MeasurePageFaults
from overhead_lens.instruments.samples.record import SampleStacks
from overhead_lens.instruments.trace.record import RecordTrace
from overhead_lens.machine.here import Here
from overhead_lens.machine.operations import DESCRIBE, DESCRIBE_RUNTIME, WARM_UP
from overhead_lens.machine.request import Listener, Request
from overhead_lens.recorder.side import Side
from overhead_lens.scenario import Arguments
from overhead_lens.torch_profiler import stderr_into

# Without ablation, which recompiles, and peaks, which use the whole machine.
_INSTRUMENTS = (Clock, MeasurePageFaults, SampleStacks, RecordTrace, ListGuards)


def record_here(request: Request, function: Callable[..., Any], arguments: Arguments, listener: Listener) -> Path:
    """Record one capture in this process; returns its directory.

    Raises:
        UsageError: The call fails.
        MeasurementError: Nothing can be written.
    """
    from overhead_lens.worker.workload import of_callable

    started = datetime.now(timezone.utc)
    with recording_directory(request.output, request.parent, request.target.label) as folder, Here() as here:
        here.session.workload = of_callable(function, arguments, request.compile_options)
        side = Side(request, folder, listener, [make() for make in _INSTRUMENTS])
        with ThreadPoolExecutor(1, "recorder") as recorder:
            path = recorder.submit(_record, side, here, started)
            here.serve()
            return path.result()


def _record(side: Side, here: Here, started: datetime) -> Path:
    """Ask the measured thread for all measurements, and let it go at the end."""
    folder, listener = side.folder, side.listener
    try:
        listener.begin(4)
        side.workload = here.ask(DESCRIBE)
        side.runtime = here.ask(DESCRIBE_RUNTIME)
        listener.step("warming up")
        here.send(WARM_UP)
        side.note_warm_up(here)
        listener.step("measuring")
        side.give_turns(When.TIMED, 0, here)
        side.give_turns(When.SAMPLED, 0, here)
        listener.step("tracing")
        sys.stderr.flush()
        with stderr_into(folder / "profiler.log"):
            side.give_turns(When.RECORDED, 0, here)
            side.give_turns(When.TRACED, 0, here)
        _calibrate(side)
        listener.step("writing the capture")
        return side.write(started)
    finally:
        here.dismiss()


def _calibrate(side: Side) -> None:
    """Measure the profiler's cost, if this machine lacks it, in another process: it compiles and records."""
    calibrate = Calibrate()
    side.instruments = [*side.instruments, calibrate]
    if calibrate.is_due(side):
        with side.start("calibrator") as worker:
            calibrate.measure(Turn(side, 0, worker))
