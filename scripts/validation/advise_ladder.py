"""Do the savings of remedies agree with the ladder's rungs that change the same? Both are measured on ``add1 --compile``.

python -m scripts.validation.advise_ladder
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from typing import Any

from scripts.command import document
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.advising import Advised, advice

CLAIM = Claim(
    claim="advise-ladder",
    question="Do remedies save what the ladder says?",
    method=(
        "`advise add1 --compile` and `ladder add1` measure the same changes of one call, each in fresh processes of its own. "
        "A remedy's saving is held against the difference of its rung to the compiled call. "
        "They agree if they differ by no more than both intervals allow together, as a root of the sum of squares."
    ),
    command="python -m scripts.validation.advise_ladder",
    columns=(
        Column("remedy"),
        Column("rung"),
        Column("remedy saves", "ns"),
        Column("±", "ns"),
        Column("rung saves", "ns"),
        Column("±", "ns"),
        Column("agree"),
    ),
)

# Remedy and the rung that is the same change.
PAIRS = {
    "eager": "eager",
    "guard_filter_all": "guards_filtered",
    "skip_guard_eval": "guard_eval_skipped",
    "cpp_wrapper": "cpp_wrapper",
    "inference_mode": "compiled_inference_mode",
    "malloc_keeps_pages": "compiled_warm_heap",
}
BASE = "compiled"


def main() -> None:
    """Measure both, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    options = parser.parse_args()
    print_heading(CLAIM.columns)
    advised = advice("add1", "--compile")
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        ladder = document("ladder", "add1", "--quiet", "--output", "ladder", folder=folder)
    rows = [row for remedy, rung in PAIRS.items() if (row := row_of(remedy, rung, advised, ladder)) is not None]
    for row in rows:
        print_row(row)
    notes = [
        f"{sum(bool(row[-1]) for row in rows)} of {len(rows)} agree.",
        f"`advise add1 --compile` took {advised.seconds:.0f} s.",
    ]
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


def row_of(remedy: str, rung: str, advised: Advised, ladder: Mapping[str, Any]) -> list[Cell] | None:
    """One change, measured both ways; None where one of them could not measure it."""
    wall, step = advised.remedy(remedy)["wall"], difference(ladder, rung)
    if wall is None or step is None:
        return None
    saved_ns, half_ns = -wall["delta_ns"], (wall["ci95_ns"][1] - wall["ci95_ns"][0]) / 2
    rung_ns, rung_half_ns = step
    agree = abs(saved_ns - rung_ns) <= math.hypot(half_ns, rung_half_ns)
    return [remedy, rung, round(saved_ns), round(half_ns), round(rung_ns), round(rung_half_ns), agree]


def difference(ladder: Mapping[str, Any], rung: str) -> tuple[float, float] | None:
    """What a rung takes less than the compiled call, and half the width of the interval, ns."""
    rungs = {each["name"]: each for each in ladder["rungs"] if each["reason"] is None}
    # The compiled call is a step up from the eager one, every other rung a step down from the compiled call.
    step, sign = (rungs.get(BASE), 1) if rung == "eager" else (rungs.get(rung), -1)
    if step is None or step["step_ns"] is None:
        return None
    low, high = step["step_ci95_ns"]
    return sign * step["step_ns"], (high - low) / 2


if __name__ == "__main__":
    main()
