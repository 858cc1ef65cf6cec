"""Units: how calls are measured, by this program's own commands or by its clock alone."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd

from overhead_lens.budget.wall import estimate_per_call, undisturbed
from overhead_lens.errors import OverheadLensError
from overhead_lens.machine.process import Worker
from overhead_lens.scenario import parse_target
from scripts.reproduction.outcomes import Call, Unit

# Wall time only: processes, and in each of them blocks of about so long until this much time is spent.
PROCESSES = 4
BLOCKS = 15
BLOCK_NS = 20_000_000
BUDGET_NS = 400_000_000
TIMEOUT_S = 200.0


def profiled(*calls: Call) -> tuple[Unit, ...]:
    """A unit of its own for each call, with its budget."""
    return tuple(Unit(call.name, profile(call)) for call in calls)


def profile(call: Call) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """A unit that measures one call with ``overhead-lens profile``."""

    def measure(options: argparse.Namespace) -> dict[str, Any]:
        command = ["profile", call.target, "--json", "--quiet", *(["--compile"] if call.compile else [])]
        command += [text for name, value in call.params.items() for text in ("-p", f"{name}={value}")]
        with tempfile.TemporaryDirectory() as folder:
            done = run_tool(
                [*command, "--output", str(Path(folder, "capture")), *(["--quick"] if options.quick else [])]
            )
        return {call.name: done if isinstance(done, str) else from_budget(done)}

    return measure


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


def clock(calls: Sequence[Call], needed_bytes: int = 0) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """A unit that times calls without profiling them: fresh processes, the calls in turn.

    Args:
        calls: What to time.
        needed_bytes: Free memory that it takes.
    """

    def measure(_options: argparse.Namespace) -> dict[str, Any]:
        available = available_bytes()
        if available is not None and available < needed_bytes:
            reason = f"it takes {needed_bytes / 1e9:.1f} GB of memory, {available / 1e9:.1f} GB are free"
            return {call.name: reason for call in calls}
        rows: dict[str, list[dict[str, int]]] = {call.name: [] for call in calls}
        failed: dict[str, str] = {}
        jobs = [(process, call) for process in range(PROCESSES) for call in calls]
        side_by_side = max(1, os.cpu_count() or 1)
        with tempfile.TemporaryDirectory() as folder:
            for at in range(0, len(jobs), side_by_side):
                batch = [job for job in jobs[at : at + side_by_side] if job[1].name not in failed]
                _time_batch(batch, Path(folder), rows, failed)
        return {call.name: failed.get(call.name) or from_rows(rows[call.name]) for call in calls}

    return measure


def _time_batch(
    batch: Sequence[tuple[int, Call]], folder: Path, rows: dict[str, list[dict[str, int]]], failed: dict[str, str]
) -> None:
    """Warm workers up side by side, then let one at a time measure."""
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(call.name, folder / f"{call.name}.log", TIMEOUT_S)) for _, call in batch]
        for worker, (_, call) in zip(workers, batch, strict=True):
            target = parse_target(call.target)
            compile_options: dict[str, Any] | None = {} if call.compile else None
            worker.send(
                "load",
                path=str(target.path),
                variant=target.variant,
                params=dict(call.params),
                compile_options=compile_options,
            )
            worker.send("warm_up")
        ready = [_is_warm(worker, call, failed) for worker, (_, call) in zip(workers, batch, strict=True)]
        for worker, (process, call), warm in zip(workers, batch, ready, strict=True):
            if warm:
                done = worker.ask("clock", block_ns=BLOCK_NS, blocks=BLOCKS, budget_ns=BUDGET_NS)
                rows[call.name] += [{"process": process, **row} for row in done["rows"]]


def _is_warm(worker: Worker, call: Call, failed: dict[str, str]) -> bool:
    """Wait for a worker to be warm; why it will not be goes to ``failed``."""
    try:
        worker.receive("load")
        worker.receive("warm_up")
    except OverheadLensError as error:
        failed[call.name] = str(error)
        return False
    return True


def from_rows(rows: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    """The stored form of blocks: rows with ``process``, ``calls``, ``wall_ns`` and ``reference_ns``."""
    estimate = estimate_per_call(undisturbed(pd.DataFrame(rows)), "wall_ns")
    low_ns, high_ns = estimate.interval()
    processes = len({row["process"] for row in rows})
    return {"ns": estimate.value, "low_ns": low_ns, "high_ns": high_ns, "processes": processes}


def available_bytes() -> int | None:
    """Memory that can be had without swapping (proc(5), MemAvailable); None where that is not known."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="utf-8")
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("MemAvailable:")), None)


def run_tool(arguments: Sequence[str]) -> dict[str, Any] | str:
    """The JSON of an ``overhead-lens`` command, or the last line of what it complained about."""
    command = [sys.executable, "-m", "overhead_lens", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return last_line(done.stderr)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def last_line(text: str) -> str:
    """The last line that says something, without the frames that are drawn around errors."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip(" ╰─╯│╭╮")), "no reason was given")
