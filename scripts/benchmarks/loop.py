"""Does the measured loop cost more than the loop that a user would write? Interleaved, fresh processes, medians.

    python scripts/bench_loop.py [ROUNDS]

Each round starts a fresh process for either side, in alternating order; a side is the median of 30 blocks of 20,000 calls of
add1. Prints the ratio of the medians with a bootstrap interval over the rounds.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys

COMMON = """
import statistics, sys, time
import torch
sys.path.insert(0, {root!r})
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


def measure(side: str) -> float:
    """Median ns per call in a fresh process."""
    from pathlib import Path

    source = COMMON.format(root=str(Path(__file__).resolve().parent.parent)) + side + END
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main(rounds: int) -> None:
    """Print the ratio."""
    ratios = []
    for number in range(rounds):
        sides = [BARE, MEASURED] if number % 2 else [MEASURED, BARE]
        taken = {side: measure(side) for side in sides}
        ratios.append(taken[MEASURED] / taken[BARE])
        print(
            f"round {number}: bare {taken[BARE]:.1f} ns, measured {taken[MEASURED]:.1f} ns, ratio {ratios[-1]:.4f}",
            flush=True,
        )
    draws = random.Random(1)
    medians = sorted(statistics.median(draws.choices(ratios, k=rounds)) for _ in range(4_000))
    print(
        f"median ratio {statistics.median(ratios):.4f} [{medians[100]:.4f}, {medians[3_900]:.4f}] over {rounds} rounds"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
