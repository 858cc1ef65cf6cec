"""Do captures of the same thing agree? Profile one target many times and count overlapping intervals.

    python -m scripts.benchmarks.repeat FOLDER [--captures N] [TARGET and options of profile; add1 if there are none]

Captures go to FOLDER/0, FOLDER/1, ... and are kept; those already there are not made again. The pooled value is the mean of the
estimates of all captures.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scripts.command import captured
from scripts.results import Cell, Claim, Table, columns_of

CLAIM = Claim(
    claim="repeat",
    question="Do captures of the same call agree?",
    method=(
        "One call is captured many times, one capture after the other. "
        "Pairs of captures whose 95 % intervals meet are counted, of all pairs and of consecutive ones. "
        "So are captures whose interval contains the mean of all."
    ),
    command="python -m scripts.benchmarks.repeat FOLDER",
    columns=columns_of(
        "of a budget | captures | median [ns] | lowest [ns] | highest [ns] | pairs that overlap [share] | "
        "consecutive pairs [share] | contain the pooled value [share]"
    ),
)

_WALL = "wall"

# An estimate and its interval, ns.
Estimated = tuple[float, Sequence[float]]


def main() -> None:
    """Make or read the captures, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--captures", type=int, default=20)
    options, target = parser.parse_known_args()
    target = target or ["add1"]
    documents = [captured(options.folder / str(number), *target) for number in range(options.captures)]
    table = Table(replace(CLAIM, command=f"{CLAIM.command} --captures {options.captures} {' '.join(target)}"))
    for name, estimates in by_category(documents).items():
        if any(ns for ns, _ in estimates):
            table.add(row_of(name, estimates))
    table.write(options.result)


def by_category(documents: Sequence[dict[str, Any]]) -> dict[str, list[Estimated]]:
    """Estimates of all captures, of the wall and of each category."""
    estimates = {_WALL: [(each["wall"]["ns"], each["wall"]["ci95_ns"]) for each in documents]}
    for rows in zip(*(each["host"] for each in documents), strict=True):
        estimates[rows[0]["category"]] = [(row["ns"], row["ci95_ns"]) for row in rows]
    return estimates


def row_of(name: str, estimates: Sequence[Estimated]) -> list[Cell]:
    """Spread of the estimates, and how often their intervals meet and contain the pooled value."""
    values = [value for value, _ in estimates]
    intervals = [interval for _, interval in estimates]
    pooled = statistics.fmean(values)
    return [
        name,
        len(estimates),
        *(round(value) for value in (statistics.median(values), min(values), max(values))),
        _share(overlap(*pair) for pair in itertools.combinations(intervals, 2)),
        _share(overlap(*pair) for pair in itertools.pairwise(intervals)),
        _share(low <= pooled <= high for low, high in intervals),
    ]


def overlap(left: Sequence[float], right: Sequence[float]) -> bool:
    """Whether two intervals meet."""
    return left[0] <= right[1] and right[0] <= left[1]


def _share(answers: Iterable[bool]) -> float | None:
    known = list(answers)
    return round(statistics.fmean(known), 4) if known else None


if __name__ == "__main__":
    main()
