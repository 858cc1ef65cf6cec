"""Published figures (``published.csv``) and where they come from; published ratios stand beside their tables.

A row of the table is a figure that somebody printed: a scenario's ``variant``, eager or compiled, at the ``params`` named (others
at their defaults), as a ``rung`` of the ladder where it is one, in ``ns`` per call. It is of other hardware: never a pass mark.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FORUM = 'forum question "Batching Question", discuss.pytorch.org topic 102632'
NOTEBOOK = "ZOSIA 2026 talk notebook; machine not stated"


@dataclass(frozen=True, slots=True)
class Published:
    """A row of the table; ``params`` as on the command line."""

    scenario: str
    variant: str
    compile: bool
    params: Mapping[str, str]
    rung: str
    ns: int
    label: str
    source: str


@cache
def figures(scenario: str) -> tuple[Published, ...]:
    """All figures of a scenario."""
    with Path(__file__).with_name("published.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["scenario"] == scenario]
    return tuple(
        Published(
            scenario,
            row["variant"],
            row["mode"] == "compiled",
            dict(pair.split("=") for pair in row["params"].split()),
            row["rung"],
            int(row["ns"]),
            row["label"],
            row["source"],
        )
        for row in rows
    )


def published_of(scenario: str, *, compile: bool, params: Mapping[str, str] | None = None) -> list[Published]:
    """The figures of a call; those under inference mode belong to a scenario of their own."""
    return [
        figure
        for figure in figures(scenario)
        if figure.compile == compile and figure.params == (params or {}) and not figure.rung.endswith("_inference_mode")
    ]
