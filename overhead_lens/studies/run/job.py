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
    def slowest(self) -> RunBudget:
        """The rank whose steps take longest."""
        return max(self.ranks, key=lambda run: run.wall.ns)


def job_of(path: Path, classifier: Classifier) -> RunJob:
    """The job whose ranks lie in ``path``; a rank that did not complete is left out.

    Raises:
        UsageError: A rank's directory is damaged.
    """
    complete = [rank for rank in path.glob(f"{RANK}*") if study_of(rank) == RUN.noun]
    runs = [run_budget_of(rank, classifier) for rank in complete]
    return RunJob(tuple(sorted(runs, key=lambda run: run.rank or 0)), str(path))
