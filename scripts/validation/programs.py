"""Does one command name the bottleneck of a real program? Runs those of ``tests/programs`` by ``overhead-lens run``.

    python -m scripts.validation.programs [--only NAME ...]

Each program has one bottleneck built in; ``tests/programs/expected.py`` lists what the report must say of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scripts.command import FailedError, run_document
from scripts.results import ROOT, Cell, Claim, Table, columns_of
from tests.programs.expected import PROGRAMS, Expected, because_of, complaints, largest_of, shares_of

CLAIM = Claim(
    claim="programs",
    question="Does it name the bottleneck of a real program?",
    method=(
        "Each program is a plain training, decoding or simulation script with one bottleneck built in. "
        "`overhead-lens run` is given the script and nothing else. "
        "What it says of the largest category, its parts and functions and the slowest step is compared with what was built in."
    ),
    command="python -m scripts.validation.programs",
    columns=columns_of(
        "program | what is wrong with it | steps found by | step [ns] | largest category | its share [share] | "
        "largest part | share of the part [share] | unattributed [share] | slowest step because | verdict"
    ),
)

FOLDER = ROOT / "tests" / "programs"


def main() -> None:
    """Run the programs, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="default: all")
    options = parser.parse_args()
    table = Table(CLAIM)
    notes = []
    for expected in PROGRAMS:
        if options.only and expected.program not in options.only:
            continue
        try:
            document = run_document(FOLDER / f"{expected.program}.py", *expected.arguments)
        except FailedError as error:
            notes.append(f"{expected.name} {error}.")
            continue
        table.add(row_of(expected, document))
    notes.append(f"{sum(row[-1] == 'right' for row in table.rows)} of {len(table.rows)} are right.")
    table.write(options.result, notes)


def row_of(expected: Expected, document: Mapping[str, Any]) -> list[Cell]:
    """The report on a program as a row."""
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


if __name__ == "__main__":
    main()
