"""Cells as rows of the result, and stored in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from overhead_lens import user_cache
from scripts.results import Cell as TableCell
from scripts.results import columns_of
from scripts.validation.known_costs.cell import Cell
from scripts.validation.known_costs.sites import SITES

COLUMNS = columns_of(
    "site | cost [ns] | bare difference [ns] | low [ns] | high [ns] | right category | moved most | "
    "right one moved [ns] | ± [ns] | other that moved most | other moved [ns] | other ± [ns] | stacks without | "
    "stacks with | verdict | comparison blames | blamed by [ns] | comparison's verdict"
)


def row_of(cell: Cell) -> tuple[TableCell, ...]:
    """The cell as a row of the table."""
    return (
        cell.site,
        cell.cost_ns,
        round(cell.bare_ns),
        *map(round, cell.bare_ci95_ns),
        cell.category,
        cell.first,
        cell.moved_ns,
        round(cell.sampling_ns),
        cell.other,
        cell.other_ns,
        round(cell.other_sampling_ns),
        *cell.samples,
        cell.verdict,
        cell.blamed,
        cell.blamed_ns if cell.blamed else None,
        "pass" if cell.blame_passed else "FAIL",
    )


def summary(cells: Sequence[Cell]) -> tuple[str, str]:
    """How many cells pass, by the budget and by the comparison."""
    from_200 = [cell for cell in cells if cell.cost_ns >= 200]
    verdicts = Counter(cell.verdict for cell in cells)
    blamed = sum(cell.blamed == cell.category for cell in from_200)
    wrongly = sum(cell.blamed not in (cell.category, None) for cell in from_200)
    right = sum(cell.right for cell in from_200)
    return (
        (
            f"The right category moved most in {right} of {len(from_200)} cells from 200 ns up; of all {len(cells)} cells "
            f"{verdicts['pass']} pass, {verdicts['FAIL']} fail and {verdicts['unresolved']} are unresolved."
        ),
        (
            f"The comparison blames the right one first in {blamed} of {len(from_200)}, another one in {wrongly}; "
            f"{sum(cell.blame_passed for cell in cells)} of all {len(cells)} cells pass."
        ),
    )


def in_order(cells: Sequence[Cell]) -> list[Cell]:
    """By site as in ``SITES``, then by cost."""
    names = [site.name for site in SITES]
    return sorted(cells, key=lambda cell: (names.index(cell.site), cell.cost_ns))


def read_cells(path: Path | None) -> list[Cell]:
    """The cells that an earlier run has left; none of a file that is not there."""
    if path is None or not path.exists():
        return []
    return msgspec.json.decode(path.read_bytes(), type=list[Cell])


def write_cells(path: Path | None, cells: Sequence[Cell]) -> None:
    """Replace the file as a whole: an interrupted run leaves what was there."""
    if path is None:
        return
    user_cache.replace(path, msgspec.json.format(msgspec.json.encode(cells), indent=1) + b"\n")
