"""The runs of a job's ranks, which each wrote a directory of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from overhead_lens.captures.directory import study_of
from overhead_lens.captures.files import RANK
from overhead_lens.errors import require
from overhead_lens.result import Result
from overhead_lens.studies.run.analysis import RunBudget, run_budget_of
from overhead_lens.studies.run.stored import RUN
from overhead_lens.taxonomy.classifier import Classifier


@dataclass(frozen=True, slots=True)
class RunJob(Result):
    """Budgets of the ranks of one job, in order of rank."""

    ranks: tuple[RunBudget, ...]
    capture: str

    def __post_init__(self) -> None:
        require(len(self.ranks) > 0, "a job without ranks")

    @property
    def own_ns(self) -> tuple[int, ...]:
        """Each rank's time per step without its wait for others in collectives, which stacks show: the whole step without."""
        if not all(run.samples for run in self.ranks):
            return tuple(run.wall.ns for run in self.ranks)
        return tuple(run.wall.ns - run.category("wait").part_ns("collective") for run in self.ranks)

    @property
    def slowest(self) -> RunBudget:
        """The rank with the most time of its own, for which the others wait."""
        return max(zip(self.own_ns, self.ranks, strict=True), key=lambda each: each[0])[1]


def job_of(path: Path, classifier: Classifier) -> RunJob:
    """The job whose ranks lie in ``path``; a rank that did not complete is left out.

    Raises:
        UsageError: A rank's directory is damaged.
    """
    complete = [rank for rank in path.glob(f"{RANK}*") if study_of(rank) == RUN.noun]
    runs = [run_budget_of(rank, classifier) for rank in complete]
    return RunJob(tuple(sorted(runs, key=lambda run: run.rank or 0)), str(path))
