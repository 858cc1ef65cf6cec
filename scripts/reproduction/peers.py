"""What other profilers do to the time they measure, beside this one."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts.reproduction.measuring import PROCESSES, from_rows, last_line
from scripts.reproduction.outcomes import Measured, Outcomes, Part, Unit, outcome_of
from scripts.reproduction.wording import RATIO_HEADER, TIME_HEADER, ratio_row, table, time_row

# Compiled add1 under torch.profiler of torch 2.13 on a 2-core machine, and RL-Scope's (MLSys 2021) corrected totals.
DISTORTION_NS = {"bare": 13_400.0, "traced": 19_200.0, "stacks": 44_600.0}
RL_SCOPE = (-0.168, 0.109)


def measure_distortion(_options: argparse.Namespace) -> dict[str, Any]:
    """A unit: compiled add1 bare, traced and with stacks."""
    rows: dict[str, list[dict[str, int]]] = {}
    for process in range(PROCESSES):
        command = [sys.executable, str(Path(__file__).parents[1] / "profiler_distortion.py")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return dict.fromkeys(DISTORTION_NS, last_line(done.stderr))
        for side, blocks in json.loads(done.stdout.splitlines()[-1]).items():
            rows.setdefault(side, []).extend({"process": process, **block} for block in blocks)
    return {side: from_rows(blocks) for side, blocks in rows.items()}


def render_peers(outcomes: Outcomes) -> list[str]:
    """What torch.profiler does to the wall time, and how far a corrected trace is from it."""
    found = {side: outcome_of(outcomes, f"distortion/{side}") for side in DISTORTION_NS}
    source = "torch.profiler of torch 2.13, a 2-core VM"
    rows = [time_row(f"compiled add1, {side}", source, ns, found[side]) for side, ns in DISTORTION_NS.items()]
    ratios = [
        ratio_row(f"bare over {side}", source, DISTORTION_NS[side] / DISTORTION_NS["bare"], found[side], found["bare"])
        for side in ("traced", "stacks")
    ]
    return [
        *table(TIME_HEADER, rows),
        *table(RATIO_HEADER, ratios),
        "Figures of trace readers are in `docs/measurements.md`; GPU stacks need a GPU (`scripts/gpu_check.sh`).",
        "",
    ]


def render_residuals(profiled: Mapping[str, Measured]) -> list[str]:
    """The corrected trace's total against the unprofiled wall time of every profiled call, beside RL-Scope's range."""
    shares = {name: each.trace_bare_share for name, each in profiled.items()}
    known = dict(
        sorted(((name, share) for name, share in shares.items() if share is not None), key=lambda item: item[1])
    )
    if not known:
        return []
    rows = []
    for name, share in known.items():
        wall = profiled[name]
        of_others = f"{wall.trace_residual_share:+.1%}"
        interval = f"{wall.low_ns / wall.ns - 1:+.1%} .. {wall.high_ns / wall.ns - 1:+.1%}"
        rows.append([name, f"{share:+.1%}", of_others, interval])
    sentence = (
        f"RL-Scope (MLSys 2021) corrects totals to within {RL_SCOPE[0]:+.1%} .. {RL_SCOPE[1]:+.1%} of the uninstrumented run; "
        f"here {min(known.values()):+.1%} .. {max(known.values()):+.1%} of the bare call in the trace's process over "
        f"{len(known)} calls, half of them within {statistics.median(map(abs, known.values())):.1%}. Processes differ in their "
        "wall time, by whether they have page faults, say: beside it stands the total over the unprofiled wall of the others."
    )
    header = (
        "profiled call",
        "corrected trace total over the bare call in its process",
        "over the unprofiled wall of other processes",
        "95 % interval of the wall",
    )
    return [*table(header, rows), sentence, ""]


PARTS = (
    Part("peers", "torch.profiler's distortion, and ours", (Unit("distortion", measure_distortion),), render_peers),
)
