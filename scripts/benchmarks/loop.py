"""Does the measured loop cost more than the loop that a user would write? Interleaved, fresh processes, medians.

    python -m scripts.benchmarks.loop [--rounds N]

Each round starts a fresh process for either side, in alternating order; a side is the median of 30 blocks of 20,000 calls of
add1. The interval of the median ratio is of a bootstrap over the rounds.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys

from scripts.results import ROOT, Cell, Claim, Column, print_heading, print_row, write_result

CLAIM = Claim(
    claim="loop",
    question="Does the measured loop cost more than a plain for loop?",
    method=(
        "Eager add1 is called by the measured loop and by a for loop in a bare script, each in fresh processes, in turns. "
        "A side is the median of 30 blocks of 20,000 calls. "
        "The interval is of a bootstrap over the rounds."
    ),
    command="python -m scripts.benchmarks.loop",
    about=("overhead_lens/worker/loop.py",),
    columns=(
        Column("rounds"),
        Column("measured over bare", "share"),
        Column("low", "share"),
        Column("high", "share"),
    ),
)

COMMON = """
import statistics, time
import torch
x = torch.ones(10)
def add1(x):
    return x + 1
"""

BARE = """
def block(count):
    start = time.perf_counter_ns()
    for _ in range(count):
        add1(x)
    return time.perf_counter_ns() - start
"""

MEASURED = """
from overhead_lens.worker.loop import make_measured_loop
loop = make_measured_loop(1)
def block(count):
    start = time.perf_counter_ns()
    loop(add1, (x,), count)
    return time.perf_counter_ns() - start
"""

END = """
block(50_000)
print(statistics.median(block(20_000) for _ in range(30)) / 20_000)
"""

_DRAWS = 4_000


def main() -> None:
    """Measure, print the ratio and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    ratios = []
    for number in range(options.rounds):
        sides = [BARE, MEASURED] if number % 2 else [MEASURED, BARE]
        call_ns = {side: measure(side) for side in sides}
        ratios.append(call_ns[MEASURED] / call_ns[BARE])
        print(f"round {number}: bare {call_ns[BARE]:.1f} ns, measured {call_ns[MEASURED]:.1f} ns", flush=True)
    random.seed(1)
    medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(_DRAWS))
    low, high = (medians[round(_DRAWS * quantile)] for quantile in (0.025, 0.975))
    row: list[Cell] = [len(ratios), *(round(ratio, 4) for ratio in (statistics.median(ratios), low, high))]
    print_heading(CLAIM.columns)
    print_row(row)
    write_result(options.result, CLAIM.answered([row]))


def measure(side: str) -> float:
    """Median ns per call in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", COMMON + side + END], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return float(done.stdout)


if __name__ == "__main__":
    main()
