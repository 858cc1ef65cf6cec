"""``overhead-lens/run/1``: the closed budget of a program's steps; durations in ns per step."""

from __future__ import annotations

from typing import Any, Literal

from overhead_lens.contract import TenthsInterval
from overhead_lens.documents.breakdown import CrossCheck, cross_check
from overhead_lens.documents.common import Category, Document, Row, fill
from overhead_lens.studies.run.analysis import RunBudget, Sampling, Steps
from overhead_lens.studies.run.phases import PhaseTime
from overhead_lens.studies.run.slowest import Slow


class Wall(Row, frozen=True):
    """Mean unprofiled wall time of a step, ns, with its interval over blocks of steps.

    ``interval`` says how ``ci95_ns`` was made: ``t over blocks``, or ``none`` for a single time, which ``ci95_ns`` repeats.
    """

    ns: float
    ci95_ns: TenthsInterval
    interval: Literal["t over blocks", "none"]


class Thread(Row, frozen=True):
    """Another thread, or the thread of a child process, over the same time."""

    name: str
    thread: int
    process: int
    wall_ns: int
    host: list[Category]


class Region(Row, frozen=True):
    """A region: ns each time it was entered; ``host`` is empty if no stack was taken inside."""

    name: str
    count: int
    wall: Wall
    host: list[Category]


class RunDocument(Document, frozen=True, kw_only=True):
    """Where the time of a program's steps goes. ``host`` is of the thread with the steps and sums to the wall."""

    schema: Literal["overhead-lens/run/1"] = "overhead-lens/run/1"
    command: list[str]
    exit_code: int
    per: Literal["step", "run"]
    steps: Steps
    wall: Wall
    host: list[Category]
    threads: list[Thread]
    device: None
    phases: list[PhaseTime]
    sampling: Sampling
    cross_checks: list[CrossCheck]
    regions: list[Region]
    slowest: list[Slow]
    warnings: list[str]
    environment: dict[str, Any]
    capture: str


def run_document(budget: RunBudget) -> RunDocument:
    """The document of a run."""
    return fill(RunDocument, budget, cross_checks=[cross_check(check) for check in budget.cross_checks])
