"""Records instruction counts without a clock, for gates on machines with unreliable times.

A plain worker describes the call and its torch; another one is counted under callgrind, as for ``profile --instructions``.
"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from overhead_lens.captures.directory import recording_directory, write_meta
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instructions.record import ON_A_DEVICE, calls_of, count_instructions
from overhead_lens.machine.operations import DESCRIBE_RUNTIME, LOAD, WARM_UP
from overhead_lens.machine.process import Worker
from overhead_lens.machine.request import Listener, Request
from overhead_lens.recorder.side import provenance, requested, subject_of
from overhead_lens.studies.check.stored import COUNTS, CountsMeta


def record_counts(request: Request, calls: int | None, listener: Listener) -> Path:
    """Record the instruction counts of ``calls`` calls, None for as many as their time allows, into a new directory.

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: Nothing could be counted.
    """
    started = datetime.now(timezone.utc)
    listener.begin(2)
    with recording_directory(request.output, request.parent, f"counts-{request.target.label}") as folder:
        listener.step("loading")
        log, python, variables = folder / "worker.log", request.python, request.variables
        with Worker("the worker", log, request.timeout_s, python, variables) as worker:
            workload = worker.ask(LOAD, **request.load_arguments())
            runtime = worker.ask(DESCRIBE_RUNTIME)
            calls = calls or calls_of(worker.ask(WARM_UP).call_ns)
        if workload.device != "cpu":
            raise MeasurementError(ON_A_DEVICE)
        listener.step("counting instructions")
        load = request.load_arguments()
        counted = count_instructions(load, calls, folder, request.timeout_s, variables)
        if counted.reason is not None:
            raise MeasurementError(f"no instruction counts: {counted.reason}")
        about = {**requested(request), **provenance(request, runtime, started)}
        write_meta(folder, COUNTS, CountsMeta(subject=subject_of(workload), instructions=counted, **about))
        return folder
