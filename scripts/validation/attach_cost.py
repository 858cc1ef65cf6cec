"""How much slower is a process of five threads while it is watched at the default rate, and after?

python -m scripts.validation.attach_cost [--seconds 20] [--rounds 5]
"""

from __future__ import annotations

import bisect
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.attach_agrees import document
from scripts.validation.attached import started

CLAIM = Claim(
    claim="attach-cost",
    question="How much slower is a process of five threads while it is watched, and after?",
    method=(
        "A training loop beside four other threads writes down how many steps it has made, five times a second. "
        "It is watched at the default rate, from the start of the command to its end. "
        "Its own steps a second are compared with what `attach` says that watching cost."
    ),
    command="python -m scripts.validation.attach_cost",
    columns=(
        Column("round"),
        Column("before", "steps/s"),
        Column("while watched", "steps/s"),
        Column("after", "steps/s"),
        Column("slower while watched", "share"),
        Column("as attach says", "share"),
        Column("slower after", "share"),
    ),
)

ALONE_S = 10.0

# What the command needs before it starts py-spy: its imports, and two seconds of looking at the CPU clock.
START_S = 4.0

# Time on the monotonic clock, and steps until then.
Progress = list[tuple[float, int]]


def main() -> None:
    """Watch, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows: list[list[Cell]] = []
    print_heading(CLAIM.columns)
    for number in range(options.rounds):
        rows.append([number, *watched(options.seconds)])
        print_row(rows[-1])
    largest = max(float(row[4] or 0) for row in rows)
    notes = [
        f"the largest slow-down is {largest:.1%}, the median {statistics.median(float(row[4] or 0) for row in rows):.1%}"
    ]
    asked = f"{CLAIM.command} --seconds {options.seconds:g} --rounds {options.rounds}"
    write_result(options.result, replace(CLAIM, command=asked).answered(rows, notes))


def watched(seconds: float) -> list[Cell]:
    """Steps a second of a loop before, while and after it is watched."""
    progress: Progress = []
    with started("threads") as loop, tempfile.TemporaryDirectory() as folder:
        reader = threading.Thread(target=_read, args=(loop.stdout, progress), daemon=True)
        reader.start()
        time.sleep(ALONE_S)
        begun_s = time.monotonic()
        asked = ["attach", str(loop.pid), "--duration", f"{seconds:g}", "-o", f"{folder}/attach"]
        found = document(asked)
        ended_s = time.monotonic()
        time.sleep(ALONE_S)
    reader.join()
    # py-spy has ended when the budget is made: the last second is the analysis.
    until_s = begun_s + START_S + found["duration_ns"] / 1e9
    before = rate(progress, begun_s - ALONE_S + 1, begun_s)
    during = rate(progress, begun_s + START_S, min(until_s, ended_s))
    after = rate(progress, ended_s + 1, ended_s + ALONE_S - 1)
    rates = [round(value, 1) for value in (before, during, after)]
    return [*rates, round(1 - during / before, 4), found["slowdown_share"], round(1 - after / before, 4)]


def rate(progress: Progress, start_s: float, end_s: float) -> float:
    """Steps a second between two moments."""
    times = [at for at, _ in progress]
    first = progress[bisect.bisect_left(times, start_s)]
    last = progress[min(len(progress), bisect.bisect_right(times, end_s)) - 1]
    return (last[1] - first[1]) / (last[0] - first[0])


def _read(lines: Sequence[str], progress: Progress) -> None:
    for line in lines:
        at_s, steps = line.split()
        progress.append((float(at_s), int(steps)))


if __name__ == "__main__":
    main()
