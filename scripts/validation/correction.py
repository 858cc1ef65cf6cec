"""Is the profiler's cost taken out of a trace? Every scenario, none of which the calibration has seen.

    python -m scripts.validation.correction [--processes N] [TARGET ...]

A TARGET is as for ``profile``; ``+`` before it compiles it, ``-p`` parameters follow after commas:
``+linear_loop:loop,vectors=100``. As many processes calibrate as for ``overhead-lens calibrate``. Then every scenario runs in N
fresh processes, each of which times it bare and recorded in turns, and the corrected total of the trace is compared with the bare
time of the same process. The best published correction, RL-Scope (MLSys 2021), is within -16.8 % .. +10.9 % of the
uninstrumented run.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from overhead_lens.budget.trace import trace_budget
from overhead_lens.captures.files import KINETO
from overhead_lens.correction.event_cost import Costs
from overhead_lens.correction.fit import event_costs
from overhead_lens.correction.store import MEASURE_COSTS, PLAIN, PROCESSES, joined
from overhead_lens.instruments.trace.record import RECORD
from overhead_lens.machine.operations import LOAD, WARM_UP
from overhead_lens.machine.process import Worker
from overhead_lens.machine.request import Request
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.target import parse_target
from overhead_lens.taxonomy.classifier import default_classifier
from scripts.results import Cell, Claim, Table, columns_of

CLAIM = Claim(
    claim="correction",
    question="Is the profiler's own cost taken out of a trace?",
    method=(
        "Calibration calls, which are not scenarios, say what recording an event costs. "
        "Every scenario is timed bare and recorded in turns in fresh processes. "
        "The corrected total of the trace is compared with the bare time of the same process."
    ),
    command="python -m scripts.validation.correction",
    columns=columns_of(
        "call | bare [ns] | recorded [ns] | corrected [ns] | corrected less bare, median [share] | "
        "lowest of the processes [share] | highest [share]"
    ),
)

TRAINING = "scripts/validation/held_out/training.py"
TARGETS = (
    *("add1", "add1,requires_grad=true", "gelu,n=1000", "gelu,n=1000000"),
    *("linear_loop:loop,vectors=100", "linear_loop:batched,vectors=100"),
    *("split_stack:split_stack", "split_stack:combined"),
    *("sum_elements:torch", "row_col_sum:torch_rows", "row_col_sum:torch_cols"),
    *("+add1", "+add1,requires_grad=true", "+gelu,n=1000", "+gelu,n=1000000"),
    *("+linear_loop:loop,vectors=10", "+linear_loop:batched,vectors=100"),
    *("+split_stack:split_stack", "+split_stack:combined", "+sum_elements:torch"),
    *(f"{TRAINING}:{variant}" for variant in ("forward", "autocast", "gradients", "step")),
    *(f"+{TRAINING}:{variant}" for variant in ("forward", "gradients")),
)

_GOAL = 0.05
_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recording: bare, recorded and corrected time of a call in ns."""

    bare_ns: float
    traced_ns: float
    corrected_ns: float

    @property
    def miss(self) -> float:
        """The corrected time over the bare one, less 1."""
        return self.corrected_ns / self.bare_ns - 1


def main() -> None:
    """Calibrate, record, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("targets", nargs="*", default=TARGETS)
    parser.add_argument("--processes", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        costs = calibrated(folder)
        table = Table(CLAIM)
        for target in options.targets:
            table.add(row_of(target, [record(target, costs, folder) for _ in range(options.processes)]))
    notes = [
        within_goal(table.rows),
        *(
            f"{kind}: {cost.total_ns:.0f} ns an event, {cost.inside_ns:.0f} of it inside its span"
            for kind, cost in costs.items()
        ),
    ]
    table.write(options.result, notes)


def row_of(target: str, recorded: Sequence[Recorded]) -> list[Cell]:
    """Medians over the processes of one target, and how far the processes lie apart."""
    misses = sorted(each.miss for each in recorded)
    return [
        as_typed(target),
        round(statistics.median(each.bare_ns for each in recorded)),
        round(statistics.median(each.traced_ns for each in recorded)),
        round(statistics.median(each.corrected_ns for each in recorded)),
        *(round(miss, 4) for miss in (statistics.median(misses), misses[0], misses[-1])),
    ]


def within_goal(rows: Sequence[Sequence[Cell]]) -> str:
    """How many of the calls are within the goal."""
    medians = [row[4] for row in rows]
    inside = sum(isinstance(median, float) and abs(median) <= _GOAL for median in medians)
    return f"{inside} of {len(rows)} within {_GOAL:.0%}."


def as_typed(target: str) -> str:
    """A target as the command line takes it."""
    name, *params = target.lstrip("+").split(",")
    return " ".join([name, *(f"-p {param}" for param in params), *(["--compile"] if target.startswith("+") else [])])


def calibrated(folder: Path) -> Costs:
    """Cost per class of event, from calls that are no scenario's."""
    calibration = None
    for _ in range(PROCESSES):
        with Worker("calibrator", folder / "log", _TIMEOUT_S) as worker:
            calibration = joined(calibration, worker.ask(MEASURE_COSTS, flags=[PLAIN], compiled=True))
    return event_costs((calibration or {})["rows"], PLAIN)


def record(target: str, costs: Costs, folder: Path) -> Recorded:
    """Record a target in one fresh process."""
    request = request_of(target, folder)
    with Worker("tracer", folder / "log", request.timeout_s) as worker:
        worker.ask(LOAD, **request.load_arguments())
        worker.ask(WARM_UP)
        timing = worker.ask(RECORD, folder=str(folder), budget_ns=request.effort.clock_budget_ns)
    budget = trace_budget(read_trace(folder / KINETO).events, timing, default_classifier(), costs)
    return Recorded(budget.bare_ns, timing.traced_wall_ns / timing.calls, budget.sum_ns)


def request_of(target: str, folder: Path) -> Request:
    """The request by which a worker loads a target."""
    name, *params = target.lstrip("+").split(",")
    return Request(
        target=parse_target(name),
        params=dict(param.split("=", 1) for param in params),
        compile_options={} if target.startswith("+") else None,
        output=folder,
        timeout_s=_TIMEOUT_S,
    )


if __name__ == "__main__":
    main()
