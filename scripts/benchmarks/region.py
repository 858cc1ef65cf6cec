"""What does a region cost where nothing watches? In fresh processes, beside the standard library's empty context, in turns.

    python -m scripts.benchmarks.region [--rounds N]

A side is the median of 50 blocks of 20,000 uses, less the same loop without one.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

from scripts.results import ROOT, Cell, Claim, Column, print_heading, print_row, write_result

CLAIM = Claim(
    claim="region",
    question="What does a region cost where nothing watches?",
    method=(
        'In fresh processes `with ol.region("x")`, `ol.step()` and an empty `contextlib.nullcontext` take turns. '
        "A side is the median of 50 blocks of 20,000 uses, less that of the empty loop; the row is the median over processes."
    ),
    command="python -m scripts.benchmarks.region",
    columns=(
        Column("processes"),
        Column("region", "ns"),
        Column("step", "ns"),
        Column("nullcontext", "ns"),
    ),
)

MEASURED = """
import contextlib, statistics, time
import overhead_lens as ol
ol.region, ol.step
COUNT = 20_000
def region():
    for _ in range(COUNT):
        with ol.region("x"):
            pass
def step():
    for _ in range(COUNT):
        ol.step()
def null():
    for _ in range(COUNT):
        with contextlib.nullcontext():
            pass
def nothing():
    for _ in range(COUNT):
        pass
sides = (region, step, null, nothing)
times = {side: [] for side in sides}
for _ in range(50):
    for side in sides:
        start = time.perf_counter_ns()
        side()
        times[side].append((time.perf_counter_ns() - start) / COUNT)
empty = statistics.median(times[nothing])
print(*(statistics.median(times[side]) - empty for side in sides[:3]))
"""


def main() -> None:
    """Measure, print the row and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    measured = [measure() for _ in range(options.rounds)]
    row: list[Cell] = [options.rounds, *(round(statistics.median(side), 1) for side in zip(*measured, strict=True))]
    print_heading(CLAIM.columns)
    print_row(row)
    write_result(options.result, CLAIM.answered([row]))


def measure() -> list[float]:
    """Time of a region, a step and an empty context in a fresh process, ns."""
    done = subprocess.run([sys.executable, "-c", MEASURED], cwd=ROOT, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


if __name__ == "__main__":
    main()
