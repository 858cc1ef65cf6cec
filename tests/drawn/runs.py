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
from overhead_lens.samplers.blocks import SampledBlock
from overhead_lens.studies.run.stored import RUN, STEPS, Compilation, Place, RunMeta, StoredRegion, StoredRun

PID = 10
HOME = Place("/home/ada/train.py", "train", 3, 9)
COUNTERS = ("user_ns", "system_ns", "faults", "switches", "gc_ns", "compile_ns", "data_ns")

WORK = "<module> (train.py:20);train (train.py:5)"
WAIT = f"{WORK};clock_nanosleep (libc.so.6)"
KERNEL = f"{WORK};at::native::add_kernel (libtorch_cpu.so)"
COMPILING = f"{WORK};compile_inner (torch/_dynamo/convert_frame.py:7)"
STEP_NS = 1_000_000
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


def block(turn: int, *lines: str, weight: int = 1) -> SampledBlock:
    """Consecutive folded stacks of a turn."""
    return SampledBlock(turn, weight, read_threads(lines, PID))


def run_of(
    *rows: Mapping[str, int], turns: Sequence[Sequence[str]] = (), start: Sequence[str] = (), **meta: Any
) -> StoredRun:
    """A run with these steps; ``turns`` are folded stacks by turn of the sampler, ``start`` those of the start before."""
    fields: dict[str, Any] = {
        **{"program": ["train.py", "--epochs", "3"], "exit_code": 0, "pid": PID, "wall_ns": 5_000_000},
        **{"found_by": "optimizer", "where": "train.py:7", "home": HOME, "before": 3},
    }
    return StoredRun(
        Path("traces/drawn"),
        RunMeta(**{**fields, **meta}),
        table(rows) if rows else None,
        [block(number, *lines) for number, lines in enumerate((start, *turns)) if lines],
    )


def store(folder: Path, run: StoredRun, turns: Sequence[Sequence[str]] = ()) -> Path:
    """Write a run as the recorder does."""
    folder.mkdir(parents=True)
    if run.steps is not None:
        run.steps.to_parquet(folder / STEPS, index=False)
    if turns:
        with gzip.open(folder / "stacks.txt.gz", "wt") as target:
            target.writelines(
                f"sampler {number}.0 (py-spy:1);{line}\n" for number, turn in enumerate(turns, 1) for line in turn
            )
    write_meta(folder, RUN, run.meta)
    return folder


def slow_run(folder: Path) -> Path:
    """20 steps of warm-up, 40 bare ones with a slow one, 3 traced; a region, a compilation, another thread."""
    steps = [
        *stretch(Phase.WARM_UP, *[5 * STEP_NS] * 20),
        *bare(*[STEP_NS] * 19, {"ns": 9 * STEP_NS, "gc_ns": 8 * STEP_NS}, *[STEP_NS] * 20),
        *stretch(Phase.TRACED, *[2 * STEP_NS] * 3),
    ]
    turn = [main(WORK, 60), main(KERNEL, 40), "thread (11): loader;wait (data.py:1);clock_nanosleep (libc.so.6) 100"]
    regions = [StoredRegion("decode", [HOME], 40, 40 * 100_000.0, 40 * 100_000.0**2)]
    run = run_of(*steps, regions=regions, compilations=[Compilation(0, 1, "a < b")])
    return store(folder, run, [turn])
