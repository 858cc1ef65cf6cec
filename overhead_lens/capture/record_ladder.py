"""The recorder of an ablation ladder: fresh workers that build their rungs side by side and time them one at a time."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from overhead_lens import __version__
from overhead_lens.capture import directory
from overhead_lens.capture.environment import describe_machine, git_commit
from overhead_lens.capture.process import Worker
from overhead_lens.capture.record import Listener, Request, load_arguments
from overhead_lens.errors import MeasurementError

BLOCK_NS = 5_000_000
STEP_BLOCK_NS = 2_000_000

RUNG, STEP = "rung", "step"


def record_ladder(request: Request, names: Sequence[str], listener: Listener) -> Path:
    """Record the rungs called ``names`` and the single steps; returns the new directory.

    ``request.compile_options`` are those of every compiled rung; ``request.effort`` gives the processes, the rounds (its
    blocks) and the time for them (its clock budget).

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: No rung could be timed, or nothing can be written.
    """
    started = datetime.now(timezone.utc)
    with directory.recording_directory(request.output, request.parent, f"ladder-{request.path.stem}") as folder:
        try:
            _record(request, names, folder, started, listener)
        except OSError as error:
            raise MeasurementError(directory.cannot_write(folder, error)) from error
        return folder


def _record(request: Request, names: Sequence[str], folder: Path, started: datetime, listener: Listener) -> None:
    """All steps, in order."""
    effort, together = request.effort, max(2, min(os.cpu_count() or 2, request.effort.processes))
    batches = [range(at, min(at + together, effort.processes)) for at in range(0, effort.processes, together)]
    listener.begin(2 * len(batches) + effort.processes + 1)
    rows: list[dict[str, Any]] = []
    found: dict[str, Any] = {"reasons": {}, "pairs": {}}
    for batch in batches:
        with ExitStack() as stack:
            workers = [
                stack.enter_context(Worker(f"ladder-{at}", folder / f"ladder-{at}.log", request.timeout_s))
                for at in batch
            ]
            listener.step("loading")
            about = _together(workers, "load", **load_arguments(request))[0]
            listener.step("compiling the rungs")
            _together(workers, "build_rungs", names=list(names))
            for process, worker in zip(batch, workers, strict=True):
                listener.step(f"measuring: {worker.name}")
                rows += _measure(worker, process, request, found)
            runtime = workers[0].ask("environment")
    if not any(row["kind"] == RUNG for row in rows):
        raise MeasurementError(f"no rung could be timed: {next(iter(found['reasons'].values()), 'none was asked for')}")
    listener.step("writing the ladder")
    directory.write_ablation(folder, rows)
    meta = {
        "version": __version__,
        **about,
        "device": str(about["params"].get("device", "cpu")),
        "compile_options": request.compile_options,
        "names": list(names),
        **found,
        "environment": {**describe_machine(), **runtime, "git_commit": git_commit(request.path.parent)},
        "command": shlex.join(request.command),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(timezone.utc) - started).total_seconds(), 1),
    }
    directory.write_meta(folder, meta, directory.LADDER_SCHEMA)


def _together(workers: Sequence[Worker], step: str, **arguments: Any) -> list[dict[str, Any]]:
    for worker in workers:
        worker.send(step, **arguments)
    return [worker.receive(step) for worker in workers]


def _measure(worker: Worker, process: int, request: Request, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of one process; adds the reasons of what could not be done to ``found``."""
    effort = request.effort
    rungs = worker.ask(
        "time_rungs", block_ns=BLOCK_NS, rounds=effort.blocks, budget_ns=effort.clock_budget_ns, seed=process
    )
    steps = worker.ask("steps", block_ns=STEP_BLOCK_NS, rounds=effort.blocks, seed=process)
    for key, result in (("reasons", rungs), ("pairs", steps)):
        for name, reason in result["reasons"].items():
            found[key][name] = found[key].get(name) or reason
    return [
        {"process": process, "kind": kind, **row} for kind, of in ((RUNG, rungs), (STEP, steps)) for row in of["rows"]
    ]
