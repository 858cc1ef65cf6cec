"""Records an ablation ladder: fresh workers build all rungs and time them in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from overhead_lens.captures.files import ABLATION
from overhead_lens.captures.tables import write_table
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.ablation.record import PREPARE, TIME_RUNGS
from overhead_lens.machine.operations import LOAD, Workload
from overhead_lens.machine.process import Worker, ask_all
from overhead_lens.machine.request import Listener, Request
from overhead_lens.recorder.batch import record_many
from overhead_lens.recorder.side import subject_of
from overhead_lens.studies.ladder.stored import LADDER, LadderMeta

BLOCK_NS = 5_000_000


def record_ladder(request: Request, names: Sequence[str], listener: Listener) -> Path:
    """Record the rungs called ``names`` into a new directory.

    ``request.compile_options`` apply to every compiled rung; ``request.effort`` gives the processes, the rounds (its blocks) and
    the time for them (its clock budget).

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: No rung could be timed, or nothing can be written.
    """
    return record_many(LADDER, request, _Ladder(request, names), listener)


@dataclass(slots=True)
class _Ladder:
    """A ladder while it is recorded; ``reasons`` says why rungs were not timed."""

    request: Request
    names: Sequence[str]
    workload: Workload | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    reasons: dict[str, str | None] = field(default_factory=dict)

    def load(self, workers: Sequence[Worker]) -> None:
        self.workload = ask_all(workers, LOAD, **self.request.load_arguments())[0]

    def warm_up(self, workers: Sequence[Worker], listener: Listener) -> None:
        listener.step("compiling the rungs")
        ask_all(workers, PREPARE, names=list(self.names))

    def measure(self, worker: Worker, process: int) -> None:
        effort = self.request.effort
        timed = worker.ask(
            TIME_RUNGS, block_ns=BLOCK_NS, rounds=effort.blocks, budget_ns=effort.clock_budget_ns, seed=process
        )
        for name, reason in timed.reasons.items():
            self.reasons[name] = self.reasons.get(name) or reason
        self.rows += [{"process": process, **row} for row in timed.rows]

    def write(self, folder: Path, provenance: Mapping[str, Any]) -> LadderMeta:
        if not self.rows:
            reason = next(iter(self.reasons.values()), "none was asked for")
            raise MeasurementError(f"no rung could be timed: {reason}")
        assert self.workload is not None
        write_table(folder / ABLATION, self.rows)
        return LadderMeta(
            subject=replace(subject_of(self.workload), compile=True),
            names=list(self.names),
            reasons=self.reasons,
            summary=self.workload.summary,
            compile_options=self.request.compile_options,
            **provenance,
        )
