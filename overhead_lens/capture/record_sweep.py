"""The recorder of a size sweep: clocks alone, in fresh workers, each of which times every variant at every size in turns."""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from overhead_lens import __version__
from overhead_lens.capture import directory
from overhead_lens.capture.environment import describe_machine, git_commit
from overhead_lens.capture.process import Worker
from overhead_lens.capture.record import Effort, Listener
from overhead_lens.errors import MeasurementError, UsageError

BLOCK_NS = 5_000_000

STANDARD = Effort(processes=5, blocks=15, clock_budget_ns=8_000_000_000)
QUICK = Effort(processes=3, blocks=9, clock_budget_ns=4_000_000_000)


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """What to sweep.

    Attributes:
        path: Scenario file.
        variants: Variant names, None for the default one; None for all variants.
        params: Parameter name to text, of those that stay.
        swept: Parameter name to its values; every combination is measured.
        compile_options: Keyword arguments of torch.compile; None for eager.
        output: Directory the user named; None for a new one under ``parent``.
        parent: Where new sweeps go.
        timeout_s: Limit for one step of one worker.
    """

    path: Path
    variants: Sequence[str | None] | None
    params: Mapping[str, str]
    swept: Mapping[str, Sequence[int]]
    compile_options: Mapping[str, Any] | None
    output: Path | None
    parent: Path
    timeout_s: float
    effort: Effort
    command: Sequence[str]

    def points(self) -> list[dict[str, str]]:
        """The parameters of each combination, as text."""
        combinations = itertools.product(*self.swept.values())
        return [{**self.params, **dict(zip(self.swept, map(str, values), strict=True))} for values in combinations]


def record_sweep(request: SweepRequest, listener: Listener) -> Path:
    """Record a sweep; returns the new directory.

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: A variant could not be timed, or nothing can be written.
    """
    started = datetime.now(timezone.utc)
    with directory.recording_directory(request.output, request.parent, f"sweep-{request.path.stem}") as folder:
        try:
            _record(request, folder, started, listener)
        except OSError as error:
            raise MeasurementError(directory.cannot_write(folder, error)) from error
        return folder


def _record(request: SweepRequest, folder: Path, started: datetime, listener: Listener) -> None:
    """All steps, in order."""
    effort, together = request.effort, max(2, min(os.cpu_count() or 2, request.effort.processes))
    batches = [range(at, min(at + together, effort.processes)) for at in range(0, effort.processes, together)]
    listener.begin(2 * len(batches) + effort.processes + 1)
    rows: list[dict[str, Any]] = []
    unsettled = 0
    for batch in batches:
        with ExitStack() as stack:
            workers = [
                stack.enter_context(Worker(f"sweep-{at}", folder / f"sweep-{at}.log", request.timeout_s))
                for at in batch
            ]
            listener.step("loading")
            about = _together(workers, "load_sweep", **_what(request))[0]
            against = sizes_of(request.swept, about)
            listener.step("warming up every size")
            unsettled += sum(each["unsettled"] for each in _together(workers, "warm_up_sweep", block_ns=BLOCK_NS))
            for process, worker in zip(batch, workers, strict=True):
                listener.step(f"measuring: {worker.name}")
                timing = {"rounds": effort.blocks, "budget_ns": effort.clock_budget_ns, "seed": process}
                rows += [{"process": process, **row} for row in worker.ask("time_sweep", **timing)["rows"]]
            runtime = workers[0].ask("environment")
    listener.step("writing the sweep")
    directory.write_blocks(folder, rows)
    meta = {
        "version": __version__,
        **about,
        "swept": {name: list(values) for name, values in request.swept.items()},
        "against": against,
        "unsettled": unsettled,
        "compile": request.compile_options is not None,
        "compile_options": request.compile_options,
        "device": str(about["points"][0]["params"].get("device", "cpu")),
        "environment": {**describe_machine(), **runtime, "git_commit": git_commit(request.path.parent)},
        "command": shlex.join(request.command),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(timezone.utc) - started).total_seconds(), 1),
    }
    directory.write_meta(folder, meta, directory.SWEEP_SCHEMA)


def sizes_of(swept: Mapping[str, Sequence[int]], about: Mapping[str, Any]) -> dict[str, Any]:
    """The ``name`` and the ``sizes`` of what time is fitted against: the parameter, or the work that several of them make.

    Raises:
        UsageError: Several parameters are swept and the scenario does not say what work they make.
    """
    points = about["points"]
    if len(swept) == 1:
        (name,) = swept
        return {"name": name, "sizes": [point["params"][name] for point in points]}
    for name in ("bytes", "flops"):
        sizes = [point["work"][name] for point in points]
        if about["work_known"] and min(sizes) > 0 and len(set(sizes)) > 1:
            return {"name": name, "sizes": sizes}
    raise UsageError(
        f"scenario {about['scenario']} does not say what work {' and '.join(swept)} make: sweep one parameter alone"
    )


def _what(request: SweepRequest) -> dict[str, Any]:
    return {
        "path": str(request.path),
        "variants": None if request.variants is None else list(request.variants),
        "points": request.points(),
        "swept": list(request.swept),
        "compile_options": request.compile_options,
    }


def _together(workers: Sequence[Worker], step: str, **arguments: Any) -> list[dict[str, Any]]:
    for worker in workers:
        worker.send(step, **arguments)
    return [worker.receive(step) for worker in workers]
