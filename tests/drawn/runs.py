"""Drawing runs of a user's program: stretches of steps, stacks of its threads."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from overhead_lens.captures.directory import write_meta
from overhead_lens.program.area import Phase
from overhead_lens.readers.py_spy.threads import read_threads
from overhead_lens.studies.run.stored import RUN, STEPS, Place, RunMeta, StoredRun

PID = 10
HOME = Place("/home/ada/train.py", "train", 3, 9)
COUNTERS = ("user_ns", "system_ns", "faults", "switches", "gc_ns", "compile_ns", "data_ns")

WORK = "<module> (train.py:20);train (train.py:5)"
WAIT = f"{WORK};clock_nanosleep (libc.so.6)"
KERNEL = f"{WORK};at::native::add_kernel (libtorch_cpu.so)"
COMPILING = f"{WORK};compile_inner (torch/_dynamo/convert_frame.py:7)"
OUTSIDE = "<module> (train.py:20);train (train.py:10)"

Drawn = int | Mapping[str, int]


def stretch(phase: Phase, *steps: Drawn) -> list[dict[str, int]]:
    """Steps of one phase: their ns, or ``ns`` and what they add to counters."""
    drawn = ({"ns": step} if isinstance(step, int) else step for step in steps)
    return [{**dict.fromkeys(COUNTERS, 0), **step, "phase": phase} for step in drawn]


def bare(*steps: Drawn) -> list[dict[str, int]]:
    """A stretch of bare steps behind the one that is left out."""
    return stretch(Phase.BARE, 7_777, *steps)


def table(rows: Sequence[Mapping[str, int]]) -> pd.DataFrame:
    """``steps.parquet``, with counters that go on counting."""
    now_ns, totals, drawn = 1_000, dict.fromkeys(COUNTERS, 0), []
    for row in rows:
        totals = {name: totals[name] + row[name] for name in COUNTERS}
        drawn.append({"begin_ns": now_ns, "end_ns": now_ns + row["ns"], "phase": int(row["phase"]), **totals})
        now_ns += row["ns"]
    return pd.DataFrame(drawn)


def main(stack: str, count: int) -> str:
    """A folded stack of the main thread."""
    return f"thread ({PID}): MainThread;{stack} {count}"


def run_of(*rows: Mapping[str, int], turns: Sequence[Sequence[str]] = (), **meta: Any) -> StoredRun:
    """A run with these steps; ``turns`` are folded stacks by turn of the sampler."""
    fields: dict[str, Any] = {
        **{"program": ["train.py", "--epochs", "3"], "exit_code": 0, "pid": PID, "wall_ns": 5_000_000},
        **{"found_by": "optimizer", "where": "train.py:7", "home": HOME, "before": 3},
    }
    return StoredRun(
        Path("traces/drawn"),
        RunMeta(**{**fields, **meta}),
        table(rows) if rows else None,
        [read_threads(turn, PID) for turn in turns],
    )


def store(folder: Path, run: StoredRun, turns: Sequence[Sequence[str]] = ()) -> Path:
    """Write a run as the recorder does."""
    folder.mkdir(parents=True)
    if run.steps is not None:
        run.steps.to_parquet(folder / STEPS, index=False)
    if turns:
        with gzip.open(folder / "stacks.txt.gz", "wt") as target:
            target.writelines(f"sampler {number};{line}\n" for number, turn in enumerate(turns) for line in turn)
    write_meta(folder, RUN, run.meta)
    return folder
