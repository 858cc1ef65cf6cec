"""The recorder of instruction counts alone, without a clock: for gates on machines whose times mean nothing.

A plain worker says what was loaded and by which torch; another under callgrind is counted as for ``profile --instructions``.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

from overhead_lens import __version__
from overhead_lens.capture import directory
from overhead_lens.capture.environment import describe_machine, git_commit
from overhead_lens.capture.instructions import count_instructions
from overhead_lens.capture.process import Worker
from overhead_lens.capture.record import Listener, Request, load_arguments
from overhead_lens.errors import MeasurementError


def record_counts(request: Request, calls: int, listener: Listener) -> Path:
    """Count the instructions of ``calls`` calls; returns the new directory, which has no clock and no samples.

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: Nothing could be counted; the message says why.
    """
    started = datetime.now(timezone.utc)
    listener.begin(2)
    with directory.recording_directory(request.output, request.parent, f"counts-{request.path.stem}") as folder:
        try:
            listener.step("loading")
            with Worker("the worker", folder / "worker.log", request.timeout_s, request.python) as worker:
                about = worker.ask("load", **load_arguments(request))
                runtime = worker.ask("environment")
            device = str(about["params"].get("device", "cpu"))
            if device != "cpu":
                raise MeasurementError("a call that gives work to a device is not counted")
            listener.step("counting instructions")
            counted = count_instructions(load_arguments(request), calls, folder, request.timeout_s)
            if counted["reason"] is not None:
                raise MeasurementError(f"no instruction counts: {counted['reason']}")
            meta = {
                "version": __version__,
                **about,
                "compile": request.compile_options is not None,
                "compile_options": request.compile_options,
                "target": request.target,
                "assigned": dict(request.params),
                "device": device,
                "effort": asdict(request.effort),
                "instructions": counted,
                "environment": {**describe_machine(), **runtime, "git_commit": git_commit(request.path.parent)},
                "command": shlex.join(request.command),
                "started": started.isoformat(timespec="seconds"),
                "seconds": round((datetime.now(timezone.utc) - started).total_seconds(), 1),
            }
            directory.write_meta(folder, meta, directory.COUNTS_SCHEMA)
        except OSError as error:
            raise MeasurementError(directory.cannot_write(folder, error)) from error
        return folder
