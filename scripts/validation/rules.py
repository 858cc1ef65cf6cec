"""How much of each scenario's wall time no rule claims: every variant, eager and compiled, without and with grad.

    python -m scripts.validation.rules FOLDER [--only TARGET ...]

Profiles with --quick into FOLDER; captures that are there already are only analyzed again.
The compiled loop of linear_loop runs 100 vectors: compiling the unrolled loop over 10,000 takes five minutes per process.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scripts.command import FailedError, captured
from scripts.results import Cell, Claim, Table, columns_of

CLAIM = Claim(
    claim="rules",
    question="How much of a call's wall time does no rule claim?",
    method=(
        "Every variant of every built-in scenario is profiled, eager and compiled. "
        "Time that no rule claims is unattributed in its budget. "
        "The table is in falling order of that share."
    ),
    command="python -m scripts.validation.rules FOLDER",
    columns=columns_of("call | wall [ns] | unattributed [share] | largest category | its share [share]"),
)

TORCH = ("add1", "linear_loop:loop", "linear_loop:batched", "gelu", "split_stack:split_stack", "split_stack:combined")
TORCH_NO_GRAD = ("sum_elements:torch", "row_col_sum:torch_rows", "row_col_sum:torch_cols")
FEWER = {"linear_loop:loop": ("-p", "vectors=100")}
OTHERS = (
    *("elementwise_sqrt:loop", "elementwise_sqrt:whole"),
    *(f"sum_elements:{variant}" for variant in ("numpy", "numpy_numba", "numba", "builtin", "python")),
    *("row_col_sum:numpy_rows", "row_col_sum:numpy_cols"),
)


def main() -> None:
    """Profile what is missing, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", metavar="TARGET", help="default: all")
    options = parser.parse_args()
    rows: list[list[Cell]] = []
    notes = []
    for run in runs():
        if options.only and run[0] not in options.only:
            continue
        try:
            rows.append(row_of(run, options.folder))
        except FailedError as error:
            notes.append(f"{' '.join(run)} {error}.")
    rows.sort(key=lambda row: -float(row[2] or 0))
    table = Table(CLAIM)
    table.add(*rows)
    table.write(options.result, notes)


def runs() -> list[list[str]]:
    """The command lines of all runs."""
    eager = [[target] for target in (*TORCH, *TORCH_NO_GRAD, *OTHERS)]
    compiled = [[target, "--compile", *FEWER.get(target, ())] for target in (*TORCH, *TORCH_NO_GRAD)]
    grad = [[*run, "-p", "requires_grad=true"] for run in (*eager, *compiled) if run[0] in TORCH]
    return [*eager, *compiled, *grad]


def row_of(run: Sequence[str], folder: Path) -> list[Cell]:
    """The budget of one run as a row.

    Raises:
        FailedError: It could not be profiled.
    """
    path = folder / "-".join(run).replace(":", "-").replace("--", "").replace("=", "")
    breakdown = captured(path, *run, "--quick")
    host = {each["category"]: each["share"] for each in breakdown["host"]}
    largest = max(host, key=lambda name: host[name])
    return [" ".join(run), breakdown["wall"]["ns"], host["unattributed"], largest, host[largest]]


if __name__ == "__main__":
    main()
