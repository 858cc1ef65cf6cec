"""Do `run` and `profile` agree on one step, at the default number of threads? The step in a program's loop, and as a function.

python -m scripts.validation.run_agrees [--repetitions N] [--steps N]
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.command import document
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.attach_agrees import shares
from scripts.validation.running import document_of

CLAIM = Claim(
    claim="run-agrees",
    question="Do `run` and `profile` agree on one step, at the default number of threads?",
    method=(
        "A program calls one function in a loop under `overhead-lens run`; the function is also profiled. "
        "Both say which share of the step each category takes, with its 95 % interval. "
        "A repetition agrees where the intervals of all categories meet."
    ),
    command="python -m scripts.validation.run_agrees",
    columns=(
        Column("repetition"),
        Column("category"),
        Column("run", "share"),
        Column("run low", "share"),
        Column("run high", "share"),
        Column("profile", "share"),
        Column("profile low", "share"),
        Column("profile high", "share"),
        Column("agree"),
    ),
)

PROGRAM = Path(__file__).with_name("laboratory") / "agreeing.py"


def main() -> None:
    """Run and profile in turns, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100_000, help="steps of a run")
    options = parser.parse_args()
    rows: list[list[Cell]] = []
    print_heading(CLAIM.columns)
    for number in range(options.repetitions):
        for row in compared(document_of(PROGRAM, "--steps", options.steps), profiled()):
            rows.append([number, *row])
            print_row(rows[-1])
    notes = notes_of(rows)
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


def compared(run: Mapping[str, Any], profile: Mapping[str, Any]) -> list[list[Cell]]:
    """Every category that either of the two has seen."""
    rows: list[list[Cell]] = []
    for mine, other in zip(run["host"], profile["host"], strict=True):
        if mine["ns"] or other["ns"]:
            left, right = shares(mine, run["wall"]["ns"]), shares(other, profile["wall"]["ns"])
            rows.append([mine["category"], *left, *right, left[1] <= right[2] and right[1] <= left[2]])
    return rows


def profiled() -> dict[str, Any]:
    """What ``profile`` says of the step."""
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        options = ["--inputs", f"{PROGRAM}:prepared", "--output", f"{folder}/profile", "--quiet"]
        found: dict[str, Any] = document("profile", f"{PROGRAM}:step", *options, folder=folder)
    return found


def notes_of(rows: Sequence[Sequence[Cell]]) -> list[str]:
    """In how many repetitions all categories agree."""
    repetitions = {row[0] for row in rows}
    apart = {row[0] for row in rows if not row[-1]}
    return [f"All categories agree in {len(repetitions - apart)} of {len(repetitions)} repetitions."]


if __name__ == "__main__":
    main()
