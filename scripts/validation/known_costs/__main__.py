"""How right is a budget? Known costs are put into known places, and the difference of two budgets is compared with them.

    python -m scripts.validation.known_costs [--sites NAME ...] [--costs NS ...] [--seconds S] [--cells FILE]

A site is a place of ``scripts/validation/laboratory`` in an eager or a compiled call. Its fresh worker processes switch the cost
while they run. In each, blocks of the bare loop are timed, without the cost and with every cost in turn, over and over; half-way
the loop is sampled at every cost in turn, too, so that what drifts in a process drifts alike in both. Two processes are sampled
at the same time where two cores are idle::

    process   | 0  50  200 .. | ... | samples at 0 | at 50 | ... | samples at 0 | ... | 0  50  200 .. | ...
               round 1                ------- turn 1 of py-spy ----  turn 2              round 11

The truth is the difference of the bare wall times, paired by round; rounds during which the reference loop shows the machine
disturbed are left out. What is judged is the product's own budget with the cost less that without it. A cell passes if the
right category moved most, by the bare difference give or take 10 % or 60 ns, and no other category moved by more than that.
One that does not, but by no more than its sampling error and the interval of the truth explain, is ``unresolved``: more seconds
would tell. Beside it stands what the product's comparison of the same two captures says: the category that it blames first, and
by how much; it passes by the same rule.

``--cells FILE`` keeps each site as soon as it is judged, and cells that it holds are not measured again: an interrupted run goes
on, and single cells can be measured for longer before the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scripts.results import Claim, Table, write_result
from scripts.validation.known_costs.judging import judge_site
from scripts.validation.known_costs.sites import COSTS_NS, SITES
from scripts.validation.known_costs.table import COLUMNS, in_order, read_cells, row_of, summary, write_cells

CLAIM = Claim(
    claim="known-costs",
    question="Does a budget give a known cost to the right category, at its right size?",
    method=(
        "A cost is burnt in a place whose category is beyond doubt: an allocator, a kernel, a guard, a line of Python. "
        "Twelve fresh processes switch it on and off while their loop is timed and sampled. "
        "The budget with the cost less the one without is compared with the difference of the bare wall times."
    ),
    command="python -m scripts.validation.known_costs",
    columns=COLUMNS,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, a site as soon as it is judged, and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--sites", nargs="+", help="sites whose name begins with one of these; default: all")
    parser.add_argument("--costs", nargs="+", type=int, default=list(COSTS_NS), help="costs in ns")
    parser.add_argument("--seconds", type=float, default=20.0, help="most seconds of sampling per cell")
    parser.add_argument(
        "--cells", type=Path, help="keep the cells in this file and do not measure those again that it holds"
    )
    options = parser.parse_args(arguments)
    chosen = [site for site in SITES if not options.sites or site.name.startswith(tuple(options.sites))]
    cells = read_cells(options.cells)
    table = Table(CLAIM)
    for site in chosen:
        stored = [cell for cell in cells if cell.site == site.name and cell.cost_ns in options.costs]
        missing = sorted(set(options.costs) - {cell.cost_ns for cell in stored})
        judged = judge_site(site, missing, options.seconds)
        cells = in_order([*cells, *judged])
        write_cells(options.cells, cells)
        table.add(*map(row_of, in_order([*stored, *judged])))
    names = {site.name for site in chosen}
    chosen_cells = [cell for cell in cells if cell.cost_ns in options.costs and cell.site in names]
    notes = summary(chosen_cells)
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered([row_of(cell) for cell in chosen_cells], notes))


if __name__ == "__main__":
    main()
