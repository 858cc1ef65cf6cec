"""Records an ablation ladder: fresh workers build all rungs and time them in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from overhead_lens.captures.files import ABLATION
from overhead_lens.captures.tables import write_table
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.ablation.record import PREPARE, TIME_RUNGS, TIME_STEPS
from overhead_lens.machine.operations import LOAD, Workload
from overhead_lens.machine.process import Worker, ask_all
from overhead_lens.machine.request import Listener, Request
from overhead_lens.recorder.batch import record_many
from overhead_lens.recorder.side import subject_of
from overhead_lens.studies.ladder.stored import LADDER, LadderMeta

BLOCK_NS = 5_000_000
STEP_BLOCK_NS = 2_000_000

RUNG, STEP = "rung", "step"


def record_ladder(request: Request, names: Sequence[str], listener: Listener) -> Path:
    """Record the rungs called ``names`` and the single steps into a new directory.

    ``request.compile_options`` apply to every compiled rung; ``request.effort`` gives the processes, the rounds (its blocks) and
    the time for them (its clock budget).

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: No rung could be timed, or nothing can be written.
    """
    return record_many(LADDER, request, _Ladder(request, names), listener)


@dataclass(slots=True)
class _Ladder:
    """A ladder while it is recorded; ``reasons`` and ``pairs`` say why rungs and single steps were not timed."""

    request: Request
    names: Sequence[str]
    workload: Workload | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    reasons: dict[str, str | None] = field(default_factory=dict)
    pairs: dict[str, str | None] = field(default_factory=dict)

    def load(self, workers: Sequence[Worker]) -> None:
        self.workload = ask_all(workers, LOAD, **self.request.load_arguments())[0]

    def warm_up(self, workers: Sequence[Worker], listener: Listener) -> None:
        listener.step("compiling the rungs")
        ask_all(workers, PREPARE, names=list(self.names))

    def measure(self, worker: Worker, process: int) -> None:
        effort = self.request.effort
        rungs = worker.ask(
            TIME_RUNGS, block_ns=BLOCK_NS, rounds=effort.blocks, budget_ns=effort.clock_budget_ns, seed=process
        )
        steps = worker.ask(TIME_STEPS, block_ns=STEP_BLOCK_NS, rounds=effort.blocks, seed=process)
        for reasons, kind, timed in ((self.reasons, RUNG, rungs), (self.pairs, STEP, steps)):
            for name, reason in timed.reasons.items():
                reasons[name] = reasons.get(name) or reason
            self.rows += [{"process": process, "kind": kind, **row} for row in timed.rows]

    def write(self, folder: Path, provenance: Mapping[str, Any]) -> LadderMeta:
        if not any(row["kind"] == RUNG for row in self.rows):
            reason = next(iter(self.reasons.values()), "none was asked for")
            raise MeasurementError(f"no rung could be timed: {reason}")
        assert self.workload is not None
        write_table(folder / ABLATION, self.rows)
        options = self.request.compile_options
        return LadderMeta(
            subject=replace(subject_of(self.workload), compile=True),
            names=list(self.names),
            reasons=self.reasons,
            pairs=self.pairs,
            summary=self.workload.summary,
            default_params=self.workload.default_params,
            published=self.workload.published,
            compile_options=None if options is None else dict(options),
            **provenance,
        )
