"""How often does a gate fail an unchanged call, and which slow-down does it find? Captures of one call, each held against each.

    python -m scripts.validation.alarms FOLDER --record CONDITION [--turns N]
    python -m scripts.validation.alarms FOLDER

The first form profiles each call ``N`` times; run it beside other programs, and again hours later. A gate is a base, a new
capture and, where that one breaks the limit, a second one. The base is any other capture of the same call and condition, so that
hours may lie between them; ``any`` takes it from every condition. A slow-down is a constant added to the new captures' times.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from overhead_lens.budget.make import Budget
from overhead_lens.comparison.budgets import aligned_budgets
from overhead_lens.comparison.difference import MARGIN_SHARE, wall_verdict
from overhead_lens.stats.shift import Shift
from overhead_lens.stored import budget_of
from overhead_lens.taxonomy.classifier import default_classifier
from scripts.command import lens
from scripts.results import Cell, Claim, Table, columns_of

SLOW_DOWNS = (0.03, 0.05, 0.10)

CLAIM = Claim(
    claim="alarms",
    question="How often does `check` fail an unchanged call, and which slow-down does it find?",
    method=(
        "A call is profiled again and again. Each capture is a baseline for all others, by `check` (five processes) and by the "
        "pytest fixture (three). A slow-down is a constant added to the new capture's times."
    ),
    command="python -m scripts.validation.alarms FOLDER",
    columns=columns_of(
        "call | processes | machine | captures | limit | false alarms [share] | with one look [share] | "
        + " | ".join(f"{share:.0%} slower found [share]" for share in SLOW_DOWNS)
    ),
)

CALLS = ("add1", "add1 --compile", "split_stack")
EFFORTS = {"": 5, " --quick": 3}
LIMITS: Mapping[str, float | None] = {"none": None, "total=3%": 0.03}
ANY = "any"
FEWEST = 3


@dataclass(frozen=True, slots=True)
class Look:
    """A new capture beside a base: the shift of the wall time and the base's wall time, ns."""

    wall: Shift
    base_ns: int

    def fails(self, limit: float | None, slow_down: float) -> bool:
        """Whether the gate fails with a limit, a share of the base; None for the verdict."""
        wall = replace(self.wall, ns=self.wall.ns + slow_down * self.base_ns)
        if limit is None:
            return wall_verdict(wall, MARGIN_SHARE * self.base_ns) == "slower"
        return wall.interval()[0] > limit * self.base_ns


def main() -> None:
    """Record, or hold the captures against each other, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--record", metavar="CONDITION", help="what else the machine does, in a word: quiet")
    parser.add_argument("--turns", type=int, default=5, help="captures of each call")
    options = parser.parse_args()
    if options.record:
        record(options.folder / options.record, options.turns)
        return
    table = Table(CLAIM)
    for call in CALLS:
        for effort, processes in EFFORTS.items():
            captures = read_captures(options.folder, call + effort)
            enough = [condition for condition, budgets in captures.items() if len(budgets) >= FEWEST]
            for condition in (*enough, ANY):
                table.add(*([call, processes, condition, *row] for row in rows_of(captures, condition)))
    notes = ["Rates are of pairs of captures, which are not independent: of few captures they are rough."]
    table.write(options.result, notes)


def record(folder: Path, turns: int) -> None:
    """Profile every call with every effort, ``turns`` times."""
    for _ in range(turns):
        for call in CALLS:
            for effort in EFFORTS:
                words = (call + effort).split()
                lens("profile", *words, "--quiet", "--output", folder / "".join(words) / str(time.time_ns()))


def read_captures(folder: Path, call: str) -> dict[str, list[Budget]]:
    """The captures of a call by condition, each in the order in which they were recorded."""
    classifier = default_classifier()
    name = "".join(call.split())
    return {
        condition.name: [budget_of(path.parent, classifier) for path in sorted((condition / name).glob("*/meta.json"))]
        for condition in sorted(folder.iterdir())
        if (condition / name).is_dir()
    }


def rows_of(captures: Mapping[str, Sequence[Budget]], condition: str) -> Iterator[list[Cell]]:
    """Captures, limit and rates, for each limit."""
    groups = list(captures.values()) if condition == ANY else [captures[condition]]
    gates = [gate for base in groups for new in groups for gate in gates_of(base, new)]
    for name, limit in LIMITS.items():
        first = rate(gates, limit, 0.0, looks=1)
        rates = [rate(gates, limit, slow_down) for slow_down in SLOW_DOWNS]
        yield [sum(map(len, groups)), name, rate(gates, limit, 0.0), first, *rates]


def gates_of(bases: Sequence[Budget], news: Sequence[Budget]) -> Iterator[tuple[Look, Look]]:
    """Every base beside every other capture and the one after that, aligned as a check does."""
    for base in bases:
        aligned = [aligned_budgets(base, new) for new in news if new is not base]
        looks = [Look(each.wall, each.base.wall.ns) for each in aligned]
        yield from zip(looks, looks[1:] + looks[:1], strict=True)


def rate(gates: Sequence[tuple[Look, Look]], limit: float | None, slow_down: float, looks: int = 2) -> float:
    """The share of gates that fail, each of their first ``looks`` looks."""
    return float(np.mean([all(look.fails(limit, slow_down) for look in gate[:looks]) for gate in gates]))


if __name__ == "__main__":
    main()
