"""Cells as a table, and kept in a file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from scripts.known_costs.cell import Cell
from scripts.known_costs.sites import SITES

HEADER = """\
| site | cost, ns | bare difference, ns | moved most | right one moved, ns | error, ns | other that moved most, ns | samples | |\
 compared: blamed | by, ns | |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


def row_of(cell: Cell) -> str:
    """The cell as a row of the Markdown table."""
    low, high = cell.bare_ci95_ns
    first = cell.first if cell.right else f"**{cell.first}**, not {cell.category}"
    blamed = cell.blamed or "none"
    if cell.blamed not in (cell.category, None):
        blamed = f"**{cell.blamed}**"
    fields = [
        cell.site,
        f"{cell.cost_ns:,}",
        f"{cell.bare_ns:,.0f} [{low:,.0f}, {high:,.0f}]",
        first,
        f"{cell.moved_ns:,} ± {cell.sampling_ns:,.0f}",
        f"{cell.moved_ns - cell.bare_ns:+,.0f}",
        f"{cell.other} {cell.other_ns:+,} ± {cell.other_sampling_ns:,.0f}",
        f"{cell.samples[0]:,} / {cell.samples[1]:,}",
        cell.verdict,
        blamed,
        f"{cell.blamed_ns:+,}" if cell.blamed else "",
        "pass" if cell.found else "FAIL",
    ]
    return f"| {' | '.join(fields)} |"


def summary(cells: Sequence[Cell]) -> str:
    """The last line."""
    from_200 = [cell for cell in cells if cell.cost_ns >= 200]
    verdicts = Counter(cell.verdict for cell in cells)
    blamed = sum(cell.blamed == cell.category for cell in from_200)
    wrongly = sum(cell.blamed not in (cell.category, None) for cell in from_200)
    right = sum(cell.right for cell in from_200)
    return (
        f"The right category moved most in {right} of {len(from_200)} cells from 200 ns up; of all "
        f"{len(cells)} cells {verdicts['pass']} pass, {verdicts['FAIL']} fail and {verdicts['unresolved']} are unresolved.\n"
        f"The comparison blames the right one first in {blamed} of {len(from_200)}, another one in {wrongly}; "
        f"{sum(cell.found for cell in cells)} of all {len(cells)} cells pass."
    )


def in_order(cells: Sequence[Cell]) -> list[Cell]:
    """By site as in ``SITES``, then by cost."""
    names = [site.name for site in SITES]
    return sorted(cells, key=lambda cell: (names.index(cell.site), cell.cost_ns))


def read_cells(path: Path | None) -> list[Cell]:
    """The cells that an earlier run has left; none of a file that is not there."""
    if path is None or not path.exists():
        return []
    names = {each.name for each in fields(Cell)}
    rows = json.loads(path.read_text(encoding="utf-8"))
    kept = ({name: value for name, value in row.items() if name in names} for row in rows)
    return [
        Cell(**row | {"bare_ci95_ns": tuple(row["bare_ci95_ns"]), "samples": tuple(row["samples"])}) for row in kept
    ]


def write_cells(path: Path | None, cells: Sequence[Cell]) -> None:
    """Replace the file as a whole: a run that is broken off leaves what was there."""
    if path is None:
        return
    rows = [{**asdict(cell), "right": cell.right, "passed": cell.passed, "verdict": cell.verdict} for cell in cells]
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    fresh.replace(path)
