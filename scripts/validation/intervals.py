"""How often does a 95 % interval contain the truth? Captures drawn from a recorded pool of processes.

    python -m scripts.validation.intervals FOLDER ... [--processes N ...] [--draws N]

A FOLDER holds captures of one call, as ``scripts.benchmarks.repeat`` leaves them. Their processes are pooled; a capture of N of
them is drawn without repetition, again and again, and its budget made by the product. The truth is the budget of all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd

from overhead_lens.budget.make import Evidence, make_budget
from overhead_lens.budget.model import Breakdown
from overhead_lens.captures.directory import read_capture
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.instruments.samples.record import Samples
from overhead_lens.stack import Stack
from overhead_lens.stored import evidence_of
from overhead_lens.taxonomy.classifier import default_classifier
from scripts.results import Cell, Claim, Table, columns_of

CLAIM = Claim(
    claim="intervals",
    question="How often does a capture's 95 % interval contain the truth?",
    method=(
        "One call is captured many times, and the processes of all captures are pooled. "
        "Captures of few processes are drawn from the pool, and their budgets made by the product. "
        "The truth is the budget of the whole pool."
    ),
    command="python -m scripts.validation.intervals FOLDER ...",
    columns=columns_of(
        "call | of a budget | of the whole pool [ns] | processes in a capture | intervals that contain it [share]"
    ),
)

_SEED = 7
_WALL = "wall"


@dataclass(frozen=True, slots=True)
class Pool:
    """The processes of several captures of one call: their blocks and their stacks."""

    meta: CaptureMeta
    clocks: Sequence[pd.DataFrame]
    stacks: Sequence[Sequence[Stack]]

    @property
    def call(self) -> str:
        """What was captured, in words."""
        return f"{self.meta.subject.title}{' --compile' if self.meta.subject.compile else ''}"

    def budget(self, chosen: Sequence[int]) -> Breakdown:
        """The budget of some of the processes."""
        clock = pd.concat(
            [self.clocks[at].assign(process=number) for number, at in enumerate(chosen)], ignore_index=True
        )
        evidence = Evidence("drawn", self.meta, clock, Samples([self.stacks[at] for at in chosen]))
        return make_budget(evidence, default_classifier().fitted(evidence.samples.stacks)).breakdown


def main() -> None:
    """Pool, draw, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--processes", type=int, nargs="+", default=[5, 3])
    parser.add_argument("--draws", type=int, default=1_000)
    options = parser.parse_args()
    notes = []
    table = Table(CLAIM)
    for folder in options.folders:
        pool = read_pool(folder)
        notes.append(f"{pool.call}: {len(pool.clocks)} processes, {options.draws} draws.")
        for processes in options.processes:
            table.add(*rows_of(pool, processes, options.draws))
    table.write(options.result, notes)


def read_pool(folder: Path) -> Pool:
    """The processes of every capture in a folder."""
    clocks: list[pd.DataFrame] = []
    stacks: list[Sequence[Stack]] = []
    for path in sorted(folder.iterdir()):
        evidence = evidence_of(read_capture(path))
        clocks += [rows for _, rows in evidence.clock.groupby("process", sort=True)]
        stacks += evidence.samples.processes
    return Pool(msgspec.structs.replace(evidence.meta, warnings=[]), clocks, stacks)


def rows_of(pool: Pool, processes: int, draws: int) -> list[list[Cell]]:
    """How many intervals contain the truth, of the wall and of each category that the call has."""
    truth = pool.budget(range(len(pool.clocks)))
    true_ns = {_WALL: truth.wall.ns} | {each.category: each.ns for each in truth.host if each.ns}
    random = np.random.default_rng(_SEED)
    contains_truth: defaultdict[str, list[bool]] = defaultdict(list)
    for _ in range(draws):
        drawn = pool.budget(random.choice(len(pool.clocks), processes, replace=False).tolist())
        intervals = {_WALL: drawn.wall.ci95_ns} | {each.category: each.ci95_ns for each in drawn.host}
        for name, ns in true_ns.items():
            contains_truth[name].append(intervals[name][0] <= ns <= intervals[name][1])
    return [[pool.call, name, ns, processes, float(np.mean(contains_truth[name]))] for name, ns in true_ns.items()]


if __name__ == "__main__":
    main()
