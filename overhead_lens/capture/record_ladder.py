"""The recorder of an ablation ladder: fresh workers that build their rungs side by side and time them one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overhead_lens.capture import directory
from overhead_lens.capture.process import Worker, ask_all
from overhead_lens.capture.record import Listener, Request, load_arguments
from overhead_lens.capture.record_many import record_many
from overhead_lens.errors import MeasurementError

BLOCK_NS = 5_000_000
STEP_BLOCK_NS = 2_000_000

RUNG, STEP = "rung", "step"


def record_ladder(request: Request, names: Sequence[str], listener: Listener) -> Path:
    """Record the rungs called ``names`` and the single steps; returns the new directory.

    ``request.compile_options`` are those of every compiled rung; ``request.effort`` gives the processes, the rounds (its
    blocks) and the time for them (its clock budget).

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: No rung could be timed, or nothing can be written.
    """
    return record_many("ladder", directory.LADDER_SCHEMA, request, _Ladder(request, names), listener)


@dataclass(slots=True)
class _Ladder:
    """A ladder while it is recorded; ``reasons`` and ``pairs`` say why a rung and a single step could not be done."""

    request: Request
    names: Sequence[str]
    about: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    reasons: dict[str, str | None] = field(default_factory=dict)
    pairs: dict[str, str | None] = field(default_factory=dict)

    def load(self, workers: Sequence[Worker]) -> None:
        self.about = ask_all(workers, "load", **load_arguments(self.request))[0]

    def warm_up(self, workers: Sequence[Worker], listener: Listener) -> None:
        listener.step("compiling the rungs")
        ask_all(workers, "build_rungs", names=list(self.names))

    def measure(self, worker: Worker, process: int) -> None:
        effort = self.request.effort
        rungs = worker.ask(
            "time_rungs", block_ns=BLOCK_NS, rounds=effort.blocks, budget_ns=effort.clock_budget_ns, seed=process
        )
        steps = worker.ask("steps", block_ns=STEP_BLOCK_NS, rounds=effort.blocks, seed=process)
        for known, kind, found in ((self.reasons, RUNG, rungs), (self.pairs, STEP, steps)):
            for name, reason in found["reasons"].items():
                known[name] = known.get(name) or reason
            self.rows += [{"process": process, "kind": kind, **row} for row in found["rows"]]

    def write(self, folder: Path) -> dict[str, Any]:
        if not any(row["kind"] == RUNG for row in self.rows):
            reason = next(iter(self.reasons.values()), "none was asked for")
            raise MeasurementError(f"no rung could be timed: {reason}")
        directory.write_ablation(folder, self.rows)
        return {
            **self.about,
            "device": str(self.about["params"].get("device", "cpu")),
            "compile_options": self.request.compile_options,
            "names": list(self.names),
            "reasons": self.reasons,
            "pairs": self.pairs,
        }
