"""How often does the interval of a wall time contain the truth, with the factor that stretches it and without?

    python -m scripts.validation.wall_interval [--captures N] [--processes P ...]

A capture is drawn as P processes of B blocks each. Processes have levels of their own, as address layout and physical pages give
them, and blocks scatter about their process's level. The product makes its estimate: the median over processes of their median
block, with a bootstrap over processes, whose ratios to the estimate are raised to a power, so that no time is negative. A
percentile interval of so few medians is too narrow: it ends at the outermost process at most, and all five lie on one side of
the truth in one capture of sixteen::

    truth              |
    processes       x  |  x   x x    x
    percentiles     [-----------------]        five: 94 %, seven: 88 %, three: 75 %, two: 50 %
    stretched   [------------o------------]    95 %

Of fewer than four processes a report gives the range, which is the interval without the factor, and says so.

The factor that would be needed is that of the drawn captures too: the power to which the ratio of the bound on the truth's side
to the estimate must be raised to reach the truth, in 95 % of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from overhead_lens.stats.bootstrap import Estimate, interval_scale, median_over_processes
from overhead_lens.stats.estimate import FEWEST_PROCESSES
from overhead_lens.stats.values import Floats
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result

CLAIM = Claim(
    claim="wall-interval",
    question="How often does the interval of a wall time contain the truth, with its factor and without?",
    method=(
        "Captures are drawn as processes with levels of their own, log-normally distributed, and blocks that scatter about them. "
        "The product makes its interval of each: a bootstrap over processes, whose ratios to the estimate are raised to a factor "
        "that their number decides. The factor that is needed is the one with which 95 % of the intervals contain the truth."
    ),
    command="python -m scripts.validation.wall_interval",
    columns=(
        Column("processes"),
        Column("they differ by", "share"),
        Column("captures"),
        Column("coverage without the factor", "share"),
        Column("factor"),
        Column("coverage with it", "share"),
        Column("factor needed"),
        Column("a report gives"),
    ),
    about=("overhead_lens/stats",),
)

TRUTH_NS = 10_000.0
PROCESS_SHARE = 0.01
FAR_APART_SHARE = 0.2
BLOCK_SHARE = 0.01
BLOCKS = 25
WANTED = 0.95
_SEED = 20_261_123


@dataclass(frozen=True, slots=True)
class Coverage:
    """Drawn captures of one size.

    Attributes:
        captures: How many.
        factor: The product's.
        bare: Share of intervals that contain the truth, without the factor.
        stretched: The same with it.
        needed: The factor with which 95 % of them would.
    """

    captures: int
    factor: float
    bare: float
    stretched: float
    needed: float


def main() -> None:
    """Simulate, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--captures", type=int, default=6_000, help="drawn for each number of processes")
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 20, 30])
    options = parser.parse_args()
    rows = []
    print_heading(CLAIM.columns)
    for share, processes in product((PROCESS_SHARE, FAR_APART_SHARE), options.processes):
        rows.append(row_of(processes, share, simulate(processes, options.captures, share)))
        print_row(rows[-1])
    notes = [
        (
            "Processes differ by the standard deviation of their logarithms, "
            f"the {BLOCKS} blocks of each by {BLOCK_SHARE:.0%}; seed {_SEED}."
        ),
        "Where a report gives the range, the intervals of the categories are made with the factor all the same.",
        "What the machine does for minutes, slower or faster as a whole, is in no interval of one capture.",
    ]
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


def row_of(processes: int, share: float, found: Coverage) -> list[Cell]:
    """The row of the table."""
    return [
        processes,
        share,
        found.captures,
        round(found.bare, 4),
        found.factor,
        round(found.stretched, 4),
        round(found.needed, 2),
        "the range" if processes < FEWEST_PROCESSES else "the interval with the factor",
    ]


def simulate(processes: int, captures: int, share: float = PROCESS_SHARE) -> Coverage:
    """Draw captures of so many processes, which differ by ``share``, and count how many intervals contain the truth."""
    random = np.random.default_rng((_SEED, processes))
    factor = interval_scale(processes)
    needed = np.array([needed_factor(estimate, factor) for estimate in draw(random, processes, captures, share)])
    return Coverage(
        captures=captures,
        factor=factor,
        bare=float(np.mean(needed <= 1)),
        stretched=float(np.mean(needed <= factor)),
        needed=float(np.quantile(needed, WANTED)),
    )


def draw(random: np.random.Generator, processes: int, captures: int, share: float) -> Sequence[Estimate]:
    """The product's estimates of drawn captures."""
    return [median_over_processes(drawn_blocks(random, processes, share)) for _ in range(captures)]


def drawn_blocks(random: np.random.Generator, processes: int, share: float = PROCESS_SHARE) -> list[Floats]:
    """Blocks of each process of one capture, ns per call."""
    levels = TRUTH_NS * np.exp(random.normal(0.0, share, processes))
    return [level * (1 + random.normal(0.0, BLOCK_SHARE, BLOCKS)) for level in levels]


def needed_factor(estimate: Estimate, factor: float) -> float:
    """The factor with which this interval, made with ``factor``, would just reach the truth."""
    low, high = estimate.interval()
    bound = high if estimate.value < TRUTH_NS else low
    width = abs(math.log(bound / estimate.value)) / factor
    return abs(math.log(TRUTH_NS / estimate.value)) / width if width else math.inf


if __name__ == "__main__":
    main()
