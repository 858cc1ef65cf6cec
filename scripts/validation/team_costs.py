"""Is a known cost in the step of two threads given to the right category? Within one run, steps without it and with it, in turns.

    python -m scripts.validation.team_costs [--repetitions N] [--steps N] [--sites NAME ...]

The program is ``scripts/validation/laboratory/teamed.py``: its steps without the cost and with it are two regions, which have a
budget each. Two runs of a program differ by more than a twentieth of a step; two regions of one run do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.known_costs.sites import RULES
from scripts.validation.running import document_of

CLAIM = Claim(
    claim="team-costs",
    question="Is a known cost in a step of two threads given to the right category?",
    method=(
        "A step of 1 ms, a third of it divided among two threads, is made without a cost and with one, ten steps each, in turns. "
        "The cost of 5 or 20 % lies in Python, in the dispatcher, in the allocator, in a kernel of both threads, or in the "
        "second thread alone, for which the first one waits. "
        "By the budgets that `overhead-lens run` gives the two, the category that grew most must be that of the place, and by "
        "the cost, within the interval."
    ),
    command="python -m scripts.validation.team_costs",
    columns=(
        Column("place"),
        Column("its category"),
        Column("cost of a step", "share"),
        Column("cost", "ns"),
        Column("step grew by", "ns"),
        Column("grew most"),
        Column("by", "ns"),
        Column("give or take", "ns"),
        Column("grew second"),
        Column("by how much", "ns"),
        Column("stacks"),
        Column("right"),
        Column("within"),
    ),
)

TEAMED = Path(__file__).with_name("laboratory") / "teamed.py"
CATEGORIES = {
    "python": "python",
    "dispatcher": "dispatcher",
    "allocation": "allocation",
    "kernel": "kernel",
    "late": "wait",
}
STEP_NS = 1_000_000
SHARES = (0.05, 0.2)


@dataclass(frozen=True, slots=True)
class Growth:
    """What one region takes longer than another.

    Attributes:
        wall_ns: Difference of the walls.
        categories_ns, errors_ns: That of each category, and its 95 % half-width.
    """

    wall_ns: float
    categories_ns: Mapping[str, float]
    errors_ns: Mapping[str, float]

    @property
    def in_order(self) -> list[str]:
        """Categories, that which grew most first."""
        return sorted(self.categories_ns, key=lambda name: -self.categories_ns[name])

    def within(self, category: str, cost_ns: int) -> bool:
        """Whether the category grew by the cost, within its interval."""
        return abs(self.categories_ns[category] - cost_ns) <= self.errors_ns[category]


def main() -> None:
    """Measure every place and cost, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=2, help="runs of each cost")
    parser.add_argument("--steps", type=int, default=40_000, help="steps of a run")
    parser.add_argument("--sites", nargs="+", choices=tuple(CATEGORIES), default=tuple(CATEGORIES))
    options = parser.parse_args()
    print_heading(CLAIM.columns)
    rows: list[list[Cell]] = []
    for _ in range(options.repetitions):
        for site in options.sites:
            for share in SHARES:
                rows.append(row_of(site, share, *measured(site, share, options.steps)))
                print_row(rows[-1])
    notes = list(notes_of(rows))
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


def measured(site: str, share: float, steps: int) -> tuple[Growth, int | None]:
    """What a step with the cost takes longer by one run, and the number of its stacks."""
    asked = ("--site", site, "--cost", round(share * STEP_NS), "--steps", steps)
    document = document_of(TEAMED, *asked, options=("--rules", RULES))
    regions = {region["name"]: region for region in document["regions"]}
    return growth(regions["without"], regions["with"]), (document.get("sampling") or {}).get("stacks")


def growth(base: Mapping[str, Any], new: Mapping[str, Any]) -> Growth:
    """What one region takes longer than another."""
    rows = {name: [_row(region, name) for region in (base, new)] for name in HOST_CATEGORIES}
    return Growth(
        new["wall"]["ns"] - base["wall"]["ns"],
        {name: after["ns"] - before["ns"] for name, (before, after) in rows.items()},
        {name: _error_ns(pair) for name, pair in rows.items()},
    )


def _row(region: Mapping[str, Any], category: str) -> Mapping[str, Any]:
    row: Mapping[str, Any]
    (row,) = (each for each in region["host"] if each["category"] == category)
    return row


def _error_ns(estimates: Sequence[Mapping[str, Any]]) -> float:
    return math.hypot(*((high - low) / 2 for low, high in (each["ci95_ns"] for each in estimates)))


def row_of(site: str, share: float, found: Growth, stacks: int | None) -> list[Cell]:
    """One place and cost as a row."""
    first, second, *_ = found.in_order
    by = {name: round(ns) for name, ns in found.categories_ns.items()}
    category, cost_ns = CATEGORIES[site], round(share * STEP_NS)
    return [
        *(site, category, share, cost_ns, round(found.wall_ns)),
        *(first, by[first], round(found.errors_ns[first]), second, by[second], stacks),
        *(first == category, found.within(category, cost_ns)),
    ]


def notes_of(rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """How many are right, and of the right size."""
    right = sum(bool(row[-2]) and bool(row[-1]) for row in rows)
    first = sum(bool(row[-2]) for row in rows)
    yield f"The right category grew most in {first} of {len(rows)}; in {right} of these by the cost, within the interval."


if __name__ == "__main__":
    main()
