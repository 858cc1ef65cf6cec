"""Does one command name the bottleneck of a real program? Runs those of ``tests/programs`` by ``overhead-lens run``.

    python -m scripts.validation.programs [--only NAME ...]

Each program has one bottleneck built in; ``tests/programs/expected.py`` says what must be said of it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scripts.results import ROOT, Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.running import document_of
from tests.programs.expected import PROGRAMS, Expected

CLAIM = Claim(
    claim="programs",
    question="Does it name the bottleneck of a real program?",
    method=(
        "Each program is a plain training, decoding or simulation script with one bottleneck built in. "
        "`overhead-lens run` is given the script and nothing else. "
        "What it says of the largest category, its parts and functions and the slowest step is held against what was built in."
    ),
    command="python -m scripts.validation.programs",
    columns=(
        Column("program"),
        Column("what is wrong with it"),
        Column("steps found by"),
        Column("step", "ns"),
        Column("largest category"),
        Column("its share", "share"),
        Column("largest part"),
        Column("share of the part", "share"),
        Column("unattributed", "share"),
        Column("slowest step because"),
        Column("verdict"),
    ),
)

FOLDER = ROOT / "tests" / "programs"

# Of the main thread's time.
_MOST_UNATTRIBUTED = 0.02


def main() -> None:
    """Run the programs, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="default: all")
    options = parser.parse_args()
    print_heading(CLAIM.columns)
    rows: list[list[Cell]] = []
    notes = []
    for expected in PROGRAMS:
        if options.only and expected.program not in options.only:
            continue
        try:
            document = document_of(FOLDER / f"{expected.program}.py", *expected.arguments)
        except subprocess.CalledProcessError as error:
            notes.append(f"{expected.name} ended with {error.returncode}.")
            continue
        rows.append(row_of(expected, document))
        print_row(rows[-1])
    notes.append(f"{sum(row[-1] == 'right' for row in rows)} of {len(rows)} are right.")
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


def row_of(expected: Expected, document: Mapping[str, Any]) -> list[Cell]:
    """What was said of a program as a row."""
    shares = shares_of(document)
    largest = largest_of(shares)
    parts = [name for name in shares if "/" in name]
    part = max(parts, key=lambda name: shares[name], default=None)
    return [
        expected.name,
        expected.flaw,
        document["steps"]["found_by"],
        document["wall"]["ns"],
        largest,
        round(shares[largest], 4),
        part,
        round(shares[part], 4) if part else None,
        round(shares["unattributed"], 4),
        because_of(document),
        "; ".join(complaints(expected, document)) or "right",
    ]


def complaints(expected: Expected, document: Mapping[str, Any]) -> list[str]:
    """What a run's budget says otherwise than what was built into the program; none where it is right."""
    return list(_complaints(expected, document))


def _complaints(expected: Expected, document: Mapping[str, Any]) -> Iterator[str]:
    shares = shares_of(document)
    largest = largest_of(shares)
    found_by, because = document["steps"]["found_by"], because_of(document)
    if found_by not in expected.found_by:
        yield f"steps found by {found_by}, not {' or '.join(expected.found_by)}"
    if largest not in expected.largest:
        yield f"largest is {largest}, not {' or '.join(expected.largest)}"
    for name, least in expected.at_least.items():
        if shares.get(name, 0.0) < least:
            yield f"{name} is {shares.get(name, 0.0):.0%}, less than {least:.0%}"
    for name, most in expected.at_most.items():
        if shares.get(name, 0.0) > most:
            yield f"{name} is {shares[name]:.0%}, more than {most:.0%}"
    if expected.frame and not any(re.search(expected.frame, frame) for frame in frames_of(document)):
        yield f"no function like {expected.frame} is listed"
    if expected.slowest and not re.search(expected.slowest, because or ""):
        yield f"the slowest step is slow because of {because or 'nothing'}, not {expected.slowest}"
    if shares["unattributed"] > _MOST_UNATTRIBUTED:
        yield f"{shares['unattributed']:.1%} unattributed, more than {_MOST_UNATTRIBUTED:.0%}"


def shares_of(document: Mapping[str, Any]) -> dict[str, float]:
    """Shares of the main thread's time, by category and by ``category/part``."""
    wall_ns = sum(row["ns"] for row in document["host"])
    shares = {}
    for row in document["host"]:
        shares[row["category"]] = row["ns"] / wall_ns
        for part in row["parts"]:
            shares[f"{row['category']}/{part['name']}"] = part["ns"] / wall_ns
    return shares


def largest_of(shares: Mapping[str, float]) -> str:
    """The largest category."""
    return max((name for name in shares if "/" not in name), key=lambda name: shares[name])


def frames_of(document: Mapping[str, Any]) -> list[str]:
    """The costliest functions of all categories."""
    return [each["frame"] for row in document["host"] for each in row["top"]]


def because_of(document: Mapping[str, Any]) -> str | None:
    """Why the slowest step was slow; None where no step is listed."""
    slowest: Sequence[Mapping[str, Any]] = document["slowest"]
    return max(slowest, key=lambda each: each["wall_ns"])["because"] if slowest else None


if __name__ == "__main__":
    main()
