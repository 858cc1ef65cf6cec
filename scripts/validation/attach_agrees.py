"""Do `attach` and `profile` agree? The same call in a loop of a program, watched, and measured.

python -m scripts.validation.attach_agrees [--seconds 60] [--rounds 5]
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from scripts.command import document
from scripts.results import ROOT, Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.attached import started

CLAIM = Claim(
    claim="attach-agrees",
    question="Does `attach` to a steady loop agree with `profile` of the same call?",
    method=(
        "A program that was started without the tool calls a function for ever and is watched; the function is also profiled. "
        "Both say which share of the time each category takes, with its 95 % interval. "
        "They agree where the intervals meet."
    ),
    command="python -m scripts.validation.attach_agrees",
    columns=(
        Column("round"),
        Column("category"),
        Column("attach", "share"),
        Column("attach low", "share"),
        Column("attach high", "share"),
        Column("profile", "share"),
        Column("profile low", "share"),
        Column("profile high", "share"),
        Column("agree"),
    ),
)

TARGET = f"{Path(__file__).with_name('attached.py').relative_to(ROOT)}:step"


def main() -> None:
    """Watch and profile in turns, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows: list[list[Cell]] = []
    print_heading(CLAIM.columns)
    for number in range(options.rounds):
        for row in compared(options.seconds):
            rows.append([number, *row])
            print_row(rows[-1])
    asked = f"{CLAIM.command} --seconds {options.seconds:g} --rounds {options.rounds}"
    write_result(options.result, replace(CLAIM, command=asked).answered(rows))


def compared(seconds: float) -> list[list[Cell]]:
    """Every category that either of the two has seen."""
    with tempfile.TemporaryDirectory() as folder:
        with started("steady") as loop:
            asked = ["attach", str(loop.pid), "--duration", f"{seconds:g}"]
            watched = asked_of(*asked, "-o", f"{folder}/attach")["threads"][0]
        profiled = asked_of("profile", TARGET, "-o", f"{folder}/profile")
    rows: list[list[Cell]] = []
    for mine, other in zip(watched["host"], profiled["host"], strict=True):
        if mine["ns"] or other["ns"]:
            left, right = shares(mine, watched["wall_ns"]), shares(other, profiled["wall"]["ns"])
            rows.append([mine["category"], *left, *right, left[1] <= right[2] and right[1] <= left[2]])
    return rows


def shares(row: dict[str, Any], wall_ns: float) -> tuple[float, float, float]:
    """A category's share with its interval."""
    low, high = (round(end / wall_ns, 5) for end in row["ci95_ns"])
    return row["share"], low, high


def asked_of(*words: str) -> dict[str, Any]:
    """What a command prints with ``--json``, of one thread, as in the watched loop."""
    found: dict[str, Any] = document(*words, "--quiet", folder=ROOT, variables={"OMP_NUM_THREADS": "1"})
    return found


if __name__ == "__main__":
    main()
