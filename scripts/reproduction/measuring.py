"""Units: how calls are measured, by this program's own commands or by its clock alone."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from overhead_lens.budget.wall import estimate_per_call, undisturbed
from overhead_lens.errors import OverheadLensError
from overhead_lens.instruments.clock.record import Clock
from overhead_lens.instruments.instrument import When
from overhead_lens.machine.operations import WARM_UP
from overhead_lens.machine.process import in_batches
from overhead_lens.machine.request import Effort, Request
from overhead_lens.recorder.side import Side
from overhead_lens.target import parse_target
from overhead_lens.terminal.progress import progress
from scripts.command import FailedError, document
from scripts.reproduction.outcomes import Call, Unit

# Of calls that are timed only.
EFFORT = Effort(processes=4, blocks=15, clock_budget_ns=400_000_000)
TIMEOUT_S = 200.0


def profiled(*calls: Call) -> tuple[Unit, ...]:
    """A unit of its own for each call, with its budget."""
    return tuple(Unit(call.name, partial(profile, call)) for call in calls)


def profile(call: Call, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one call with ``overhead-lens profile``."""
    command = ["profile", call.target, "--quiet", *(["--compile"] if call.compile else [])]
    command += [text for name, value in call.params.items() for text in ("-p", f"{name}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        done = run_tool([*command, "--output", f"{folder}/capture", *(["--quick"] if options.quick else [])])
    return {call.name: done if isinstance(done, str) else from_budget(done)}


def from_budget(budget: Mapping[str, Any]) -> dict[str, Any]:
    """The stored form of a breakdown."""
    wall, closure = budget["wall"], budget["closure"]
    traced = closure["trace_sum_ns"] is not None and closure["trace_bare_ns"]
    host = {each["category"]: each["ns"] for each in budget["host"]}
    parts = {f"{each['category']}/{part['name']}": part["ns"] for each in budget["host"] for part in each["parts"]}
    return {
        "ns": wall["ns"],
        "low_ns": wall["ci95_ns"][0],
        "high_ns": wall["ci95_ns"][1],
        "processes": wall["processes"],
        "host_ns": {**host, **parts},
        "trace_residual_share": closure["trace_residual_share"],
        "trace_bare_share": round(closure["trace_sum_ns"] / closure["trace_bare_ns"] - 1, 4) if traced else None,
    }


def clock(calls: Sequence[Call], needed_bytes: int, _options: argparse.Namespace) -> dict[str, Any]:
    """Time calls without profiling them if there is memory for it: fresh processes, the calls in turn."""
    available = available_bytes()
    if available is not None and available < needed_bytes:
        reason = f"it takes {needed_bytes / 1e9:.1f} GB of memory, {available / 1e9:.1f} GB are free"
        return {call.name: reason for call in calls}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        sides = {call.name: _side(call, Path(folder)) for call in calls}
        for batch in in_batches([(process, call.name) for process in range(EFFORT.processes) for call in calls]):
            _time_batch([job for job in batch if job[1] not in failed], sides, failed)
    return {name: failed.get(name) or from_blocks(side) for name, side in sides.items()}


def _side(call: Call, folder: Path) -> Side:
    """A recording of which nothing but the clock is kept."""
    request = Request(
        target=parse_target(call.target),
        params=call.params,
        compile_options={} if call.compile else None,
        output=folder,
        timeout_s=TIMEOUT_S,
        effort=EFFORT,
    )
    with progress(quiet=True) as listener:
        return Side(request, folder, listener, [Clock()])


def _time_batch(batch: Sequence[tuple[int, str]], sides: Mapping[str, Side], failed: dict[str, str]) -> None:
    """Warm workers up side by side, then let one at a time measure; why a call could not be timed goes to ``failed``."""

    def attempt(name: str, step: Callable[..., None], *arguments: Any) -> None:
        if name in failed:
            return
        try:
            step(*arguments)
        except OverheadLensError as error:
            failed[name] = str(error)

    with ExitStack() as stack:
        jobs = [(process, name, stack.enter_context(sides[name].start(f"{name}-{process}"))) for process, name in batch]
        for _, name, worker in jobs:
            attempt(name, sides[name].send_load, worker)
        for _, name, worker in jobs:
            attempt(name, sides[name].note_load, worker)
        for _, name, worker in jobs:
            attempt(name, worker.send, WARM_UP)
        for _, name, worker in jobs:
            attempt(name, sides[name].note_warm_up, worker)
        for process, name, worker in jobs:
            attempt(name, sides[name].give_turns, When.TIMED, process, worker)


def from_blocks(side: Side) -> dict[str, Any]:
    """The stored form of a call's timed blocks."""
    blocks = pd.DataFrame(side.of(Clock).rows)
    estimate = estimate_per_call(undisturbed(blocks), "wall_ns")
    low_ns, high_ns = estimate.interval()
    processes = int(blocks["process"].nunique())
    return {"ns": estimate.value, "low_ns": low_ns, "high_ns": high_ns, "processes": processes}


def available_bytes() -> int | None:
    """Memory that can be had without swapping (proc(5), MemAvailable); None where that is not known."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="utf-8")
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("MemAvailable:")), None)


def run_tool(arguments: Sequence[str]) -> dict[str, Any] | str:
    """The JSON of an ``overhead-lens`` command, or why there is none."""
    try:
        return dict(document(*arguments))
    except FailedError as error:
        return str(error)
