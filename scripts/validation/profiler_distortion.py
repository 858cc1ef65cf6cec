"""What torch.profiler does to the wall time of compiled ``add1``: blocks bare, traced and traced with stacks, interleaved.

python -m scripts.validation.profiler_distortion [--processes N]
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import Any

import pandas as pd

from overhead_lens.budget.wall import estimate_per_call, undisturbed
from overhead_lens.instruments.clock.worker import calls_per_block
from overhead_lens.stats.bootstrap import Estimate
from overhead_lens.target import parse_target
from overhead_lens.worker.loop import reference_ns
from scripts.results import ROOT, Cell, Claim, Column, print_heading, print_row, write_result

CLAIM = Claim(
    claim="profiler-distortion",
    question="How much slower does torch.profiler make a small compiled call?",
    method=(
        "Blocks of compiled add1 are timed bare, traced and traced with stacks, in turns, in each of several fresh processes. "
        "A side is the median over processes of their median block. "
        "The intervals are of a bootstrap over processes."
    ),
    command="python -m scripts.validation.profiler_distortion",
    columns=(
        Column("side"),
        Column("time", "ns"),
        Column("low", "ns"),
        Column("high", "ns"),
        Column("of the bare time", "share"),
    ),
)

SIDES = ("bare", "traced", "stacks")
PROCESSES = 4
_BLOCK_NS = 5_000_000
_BLOCKS = 12


def main() -> None:
    """Measure, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--in-this-process", action="store_true", help="time one process and print its blocks as JSON")
    options = parser.parse_args()
    if options.in_this_process:
        print(json.dumps(time_sides()))
        return
    sides = measure(options.processes)
    rows: list[list[Cell]] = [
        [side, *(round(ns) for ns in (found.value, *found.interval())), round(found.value / sides["bare"].value, 3)]
        for side, found in sides.items()
    ]
    print_heading(CLAIM.columns)
    for row in rows:
        print_row(row)
    write_result(options.result, CLAIM.answered(rows))


def measure(processes: int = PROCESSES) -> dict[str, Estimate]:
    """Time per call by side, ns.

    Raises:
        subprocess.CalledProcessError: A process failed.
    """
    rows: dict[str, list[dict[str, int]]] = {side: [] for side in SIDES}
    for process in range(processes):
        command = [sys.executable, "-m", "scripts.validation.profiler_distortion", "--in-this-process"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
        for side, blocks in json.loads(done.stdout.splitlines()[-1]).items():
            rows[side] += [{"process": process, **block} for block in blocks]
    return {side: estimate_per_call(undisturbed(pd.DataFrame(blocks)), "wall_ns") for side, blocks in rows.items()}


def time_sides() -> dict[str, list[dict[str, int]]]:
    """Blocks of each side: ``calls``, ``wall_ns``, ``reference_ns``; the profiler sets itself up in a round left out."""
    from overhead_lens.worker import workload

    add1 = workload.load(parse_target("add1"), {}, {})
    count = calls_per_block(workload.warm_up(add1)["call_ns"], _BLOCK_NS)
    rows: dict[str, list[dict[str, int]]] = {side: [] for side in SIDES}
    for _ in range(_BLOCKS + 1):
        for side in SIDES:
            yardstick_ns = reference_ns()
            with _profiler(side):
                wall_ns = add1.run(count)
            rows[side].append({"calls": count, "wall_ns": wall_ns, "reference_ns": yardstick_ns})
    return {side: blocks[1:] for side, blocks in rows.items()}


def _profiler(side: str) -> contextlib.AbstractContextManager[Any]:
    if side == "bare":
        return contextlib.nullcontext()
    from torch.profiler import ProfilerActivity, profile

    profiler: contextlib.AbstractContextManager[Any] = profile(
        activities=[ProfilerActivity.CPU], with_stack=side == "stacks"
    )
    return profiler


if __name__ == "__main__":
    main()
