"""Is a known cost in the step of a script given to the right category? The same script is run without it and with it, in turns.

    python -m scripts.validation.known_steps [--pairs N] [--steps N] [--sites NAME ...]

The script is ``scripts/validation/laboratory/stepped.py``. The cost is a share of its bare step, which is timed first.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.known_costs.sites import RULES
from scripts.validation.running import STEPPED, document_of, step_times_ns

CLAIM = Claim(
    claim="known-steps",
    question="Is a known cost in a script's step given to the right category?",
    method=(
        "A cost of 5 or 20 % of a training step is burnt in Python, a kernel, the allocator or the dispatcher. "
        "`overhead-lens run` measures the script without it and with it, in turns. "
        "The category that grew most must be that of the place."
    ),
    command="python -m scripts.validation.known_steps",
    columns=(
        Column("place"),
        Column("cost of a step", "share"),
        Column("cost", "ns"),
        Column("step grew by", "ns"),
        Column("grew most"),
        Column("by", "ns"),
        Column("grew second"),
        Column("by how much", "ns"),
        Column("right"),
    ),
)

SITES = ("python", "kernel", "allocation", "dispatcher")
SHARES = (0.05, 0.2)

# Enough for the median of a step that takes some 300 us.
_STEPS_TO_TIME = 3000


@dataclass(frozen=True, slots=True)
class Growth:
    """What the step and each of its categories grew by, ns, mean over pairs of runs."""

    wall_ns: float
    categories_ns: Mapping[str, float]

    @property
    def first(self) -> str:
        """The category that grew most."""
        return self._in_order[0]

    @property
    def second(self) -> str:
        """The category that grew second most."""
        return self._in_order[1]

    @property
    def _in_order(self) -> list[str]:
        return sorted(self.categories_ns, key=lambda name: -self.categories_ns[name])


def main() -> None:
    """Measure every place and cost, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--pairs", type=int, default=3, help="runs without and with each cost")
    parser.add_argument("--steps", type=int, default=40_000, help="steps of a run")
    parser.add_argument("--sites", nargs="+", choices=SITES, default=SITES)
    options = parser.parse_args()
    print_heading(CLAIM.columns)
    rows: list[list[Cell]] = []
    for site in options.sites:
        for row in rows_of(site, options.pairs, options.steps):
            rows.append(row)
            print_row(row)
    notes = [
        f"{sum(bool(row[-1]) for row in rows)} of {len(rows)} are right; each is the mean of {options.pairs} pairs."
    ]
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


def rows_of(site: str, pairs: int, steps: int) -> Iterator[list[Cell]]:
    """A row for each cost at one place."""
    step_ns = statistics.median(step_times_ns("--site", site, "--steps", _STEPS_TO_TIME))
    for share in SHARES:
        cost_ns = round(share * step_ns)
        found = growth(
            [tuple(_run(site, cost, steps) for cost in (0, cost_ns)) for _ in range(pairs)]  # type: ignore[misc]
        )
        yield row_of(site, share, cost_ns, found)


def _run(site: str, cost_ns: int, steps: int) -> dict[str, Any]:
    return document_of(STEPPED, "--site", site, "--cost", cost_ns, "--steps", steps, options=("--rules", RULES))


def growth(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Growth:
    """How much longer a step takes by the second document of each pair."""
    return Growth(
        statistics.fmean(new["wall"]["ns"] - base["wall"]["ns"] for base, new in pairs),
        {
            name: statistics.fmean(category_ns(new, name) - category_ns(base, name) for base, new in pairs)
            for name in HOST_CATEGORIES
        },
    )


def category_ns(document: Mapping[str, Any], category: str) -> float:
    """A category's time in a step of the main thread."""
    return float(sum(row["ns"] for row in document["host"] if row["category"] == category))


def row_of(site: str, share: float, cost_ns: int, found: Growth) -> list[Cell]:
    """One place and cost as a row."""
    first, second = found.first, found.second
    by = {name: round(ns) for name, ns in found.categories_ns.items()}
    return [site, share, cost_ns, round(found.wall_ns), first, by[first], second, by[second], first == site]


if __name__ == "__main__":
    main()
