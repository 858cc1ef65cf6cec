"""How often is a remedy that does nothing called faster? Many of them are tried on one call.

python -m scripts.validation.advise_nothing [--remedies N]
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.advising import ADVISED, Advised, advice

CLAIM = Claim(
    claim="advise-nothing",
    question="How often is a remedy that does nothing called faster?",
    method=(
        "`advise --quick` is given a file of remedies that return the call unchanged, beside its own. "
        "All are timed with the call as it is in the same processes. "
        "Of those that do nothing at most one in twenty may be called faster."
    ),
    command="python -m scripts.validation.advise_nothing",
    columns=(
        Column("call"),
        Column("remedies that do nothing"),
        Column("same"),
        Column("inconclusive"),
        Column("faster"),
        Column("slower"),
        Column("largest saving called faster", "share"),
        Column("took", "s"),
    ),
)

_FILE = """
from overhead_lens.remedies.remedy import Remedy

REMEDIES = tuple(
    Remedy(
        name=f"nothing_{{number}}",
        summary="nothing",
        how="pass",
        shrinks=("python", "dispatcher", "allocation", "kernel", "guard", "wait", "launch"),
        source="none",
        apply=lambda call: call,
    )
    for number in range({count})
)
"""

TARGETS = (
    ("add1", "add1"),
    ("sum_elements", "sum_elements", "-p", "n=100000"),
    ("read_values", str(ADVISED / "read_values.py")),
)
_VERDICTS = ("same", "inconclusive", "faster", "slower")
_MOST_SHARE = 0.05


def main() -> None:
    """Advise on every call, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--remedies", type=int, default=70, help="that do nothing, for each call")
    options = parser.parse_args()
    print_heading(CLAIM.columns)
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        file = Path(folder) / "nothing.py"
        file.write_text(_FILE.format(count=options.remedies), encoding="utf-8")
        for name, target, *more in TARGETS:
            rows.append(row_of(name, advice(target, *more, "--quick", "--remedies", file)))
            print_row(rows[-1])
    tried, faster = (sum(int(row[at] or 0) for row in rows) for at in (1, 4))
    allowed = "within" if faster <= _MOST_SHARE * tried else "not within"
    notes = [f"{faster} of {tried} are called faster, {allowed} the goal of {_MOST_SHARE:.0%}."]
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


def row_of(name: str, advised: Advised) -> list[Cell]:
    """The verdicts on remedies that do nothing."""
    idle = [remedy for remedy in advised.measured if remedy["remedy"].startswith("nothing_")]
    counts = [sum(remedy["verdict"] == verdict for remedy in idle) for verdict in _VERDICTS]
    largest = max((1 - remedy["wall"]["ratio"] for remedy in idle if remedy["verdict"] == "faster"), default=None)
    return [name, len(idle), *counts, largest and round(largest, 4), advised.seconds]


if __name__ == "__main__":
    main()
