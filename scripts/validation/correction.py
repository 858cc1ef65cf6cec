"""Is the profiler's cost taken out of a trace? Every scenario, none of which the calibration has seen.

    python scripts/bench_correction.py [--processes N] [TARGET ...]

A TARGET is as for ``profile``; ``+`` before it compiles it, ``-p`` parameters follow after commas:
``+linear_loop:loop,vectors=100``. As many processes calibrate as for ``overhead-lens calibrate``. Then every scenario runs in N
fresh processes, each of which times it bare and recorded in turns, and the corrected total of the trace is held against the bare
time of the same process. The best published correction, RL-Scope (MLSys 2021), is within -16.8 % .. +10.9 % of the
uninstrumented run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overhead_lens.budget.trace import trace_budget
from overhead_lens.correction.event_cost import Costs
from overhead_lens.correction.fit import event_costs
from overhead_lens.correction.store import PROCESSES, joined
from overhead_lens.machine.process import Worker
from overhead_lens.readers.kineto.read import read_events
from overhead_lens.scenario import parse_target
from overhead_lens.taxonomy.categories import default_classifier

TARGETS = (
    "add1",
    "add1,requires_grad=true",
    "gelu,n=1000",
    "gelu,n=1000000",
    "linear_loop:loop,vectors=100",
    "linear_loop:batched,vectors=100",
    "split_stack:split_stack",
    "split_stack:combined",
    "sum_elements:torch",
    "row_col_sum:torch_rows",
    "row_col_sum:torch_cols",
    "+add1",
    "+add1,requires_grad=true",
    "+gelu,n=1000",
    "+gelu,n=1000000",
    "+linear_loop:loop,vectors=10",
    "+linear_loop:batched,vectors=100",
    "+split_stack:split_stack",
    "+split_stack:combined",
    "+sum_elements:torch",
    "scripts/held_out/training.py:forward",
    "scripts/held_out/training.py:autocast",
    "scripts/held_out/training.py:gradients",
    "scripts/held_out/training.py:step",
    "+scripts/held_out/training.py:forward",
    "+scripts/held_out/training.py:gradients",
)

_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Held:
    """One recording: bare, recorded and corrected time of a call in ns, and its events."""

    bare_ns: float
    traced_ns: float
    corrected_ns: float
    events: float


def main() -> None:
    """Calibrate, record, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=TARGETS)
    parser.add_argument("--processes", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        costs = calibrated(Path(folder))
        for name, cost in costs.items():
            after = ", ".join(f"{more:.0f} more after {time / 1e3:.1f} µs" for time, more in cost.displaced_ns)
            print(
                f"{name}: {cost.total_ns:.0f} ns, {cost.inside_ns:.0f} ns of it inside, spread {cost.spread_ns:.0f} ns",
                f"; {after} of kernels" if after else "",
                sep="",
            )
        print(
            "| scenario | bare | recorded | corrected | corrected less bare | of all processes |\n|---|---|---|---|---|---|"
        )
        inside = []
        for target in options.targets:
            held = [recorded(target, costs, Path(folder)) for _ in range(options.processes)]
            away = sorted(each.corrected_ns / each.bare_ns - 1 for each in held)
            middle = statistics.median(away)
            inside.append(abs(middle) <= 0.05)
            bare, traced, corrected = (
                statistics.median(getattr(each, name) for each in held) / 1e3
                for name in ("bare_ns", "traced_ns", "corrected_ns")
            )
            print(
                f"| `{shown(target)}` | {bare:,.2f} µs | {traced:,.2f} µs ({traced / bare - 1:+.1%}) | {corrected:,.2f} µs "
                f"| {middle:+.1%} | {away[0]:+.1%} .. {away[-1]:+.1%} |",
                flush=True,
            )
    print(f"\nwithin 5 %: {sum(inside)} of {len(inside)}")


def shown(target: str) -> str:
    """A target as the command line takes it."""
    name, *params = target.lstrip("+").split(",")
    return " ".join([name, *(f"-p {each}" for each in params), *(["--compile"] if target.startswith("+") else [])])


def calibrated(folder: Path) -> Costs:
    """Cost per class of event, from calls that are no scenario's."""
    calibration = None
    for _ in range(PROCESSES):
        with Worker("calibrator", folder / "log", _TIMEOUT_S) as worker:
            calibration = joined(calibration, worker.ask("calibrate", flags=["plain"], compiled=True))
    return event_costs((calibration or {})["rows"], "plain")


def recorded(target: str, costs: Costs, folder: Path) -> Held:
    """One fresh process."""
    name, *params = target.lstrip("+").split(",")
    found = parse_target(name)
    assigned: Mapping[str, str] = dict(each.split("=", 1) for each in params)
    with Worker("tracer", folder / "log", _TIMEOUT_S) as worker:
        options = {} if target.startswith("+") else None
        worker.ask("load", path=str(found.path), variant=found.variant, params=assigned, compile_options=options)
        worker.ask("warm_up")
        timing: dict[str, Any] = worker.ask("trace", folder=str(folder))
    budget = trace_budget(read_events(folder / "kineto.json.gz"), timing, default_classifier(), costs)
    calls = timing["calls"]
    return Held(budget.bare_ns, timing["traced_wall_ns"] / calls, budget.sum_ns, timing["events"] / calls)


if __name__ == "__main__":
    main()
