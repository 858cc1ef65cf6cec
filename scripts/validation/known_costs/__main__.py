"""How right is a budget? Known costs are put into known places, and the difference of two budgets is held against them.

    python scripts/accuracy.py [--sites NAME ...] [--costs NS ...] [--seconds S] [--json FILE]

A site is a place of ``scripts/laboratory`` in an eager or a compiled call. Its fresh worker processes switch the cost while
they run. In each, blocks of the bare loop are timed, without the cost and with every cost in turn, over and over; half-way
the loop is sampled at every cost in turn, too, so that what drifts in a process drifts alike in both. Two processes are sampled
at the same time where two cores are idle::

    process   | 0  50  200 .. | ... | samples at 0 | at 50 | ... | samples at 0 | ... | 0  50  200 .. | ...
               round 1                ------- turn 1 of py-spy ----  turn 2              round 11

The truth is the difference of the bare wall times, paired by round, but for rounds in which the reference loop shows the machine
disturbed. What is judged is the product's own budget
(``overhead_lens.budget.make.make_budget``) with the cost less that without it. A cell passes if the right category
moved most, by the bare difference give or take 10 % or 60 ns, and no other category moved by more than that. One that does not,
but by no more than its sampling error and the interval of the truth explain, is ``unresolved``: more seconds would tell. Beside
it stands what the product says of the same two captures when it compares them (``overhead_lens.compare.difference``): the
category that it blames first, and by how much; it passes by the same rule.

The file that ``--json`` names keeps each site as soon as it is judged. Cells that it holds already are not measured again, so
that a run that was broken off goes on, and single cells can be measured for longer before the rest.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from scripts.known_costs.judging import judge_site
from scripts.known_costs.sites import COSTS_NS, SITES
from scripts.known_costs.table import HEADER, in_order, read_cells, row_of, summary, write_cells


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description="Hold budgets against known costs in known places.")
    parser.add_argument("--sites", nargs="+", help="sites whose name begins with one of these; default: all")
    parser.add_argument("--costs", nargs="+", type=int, default=list(COSTS_NS), help="costs in ns")
    parser.add_argument("--seconds", type=float, default=20.0, help="most seconds of sampling per cell")
    parser.add_argument(
        "--json", type=Path, help="keep the cells in this file and do not measure those again that it holds"
    )
    options = parser.parse_args(arguments)
    chosen = [site for site in SITES if not options.sites or site.name.startswith(tuple(options.sites))]
    cells = read_cells(options.json)
    print(HEADER)
    for site in chosen:
        known = [cell for cell in cells if cell.site == site.name and cell.cost_ns in options.costs]
        left = sorted(set(options.costs) - {cell.cost_ns for cell in known})
        found = judge_site(site, left, options.seconds)
        cells = in_order([*cells, *found])
        write_cells(options.json, cells)
        print("\n".join(map(row_of, in_order([*known, *found]))), flush=True)
    shown = [cell for cell in cells if cell.cost_ns in options.costs and cell.site in {site.name for site in chosen}]
    print(f"\n{summary(shown)}")


if __name__ == "__main__":
    main()
