"""How often does the interval of a share contain the truth, where the stacks of one process come in clusters?

    python -m scripts.validation.stack_blocks [--processes N] [--stacks N ...] [--blocks N ...]

A process is drawn as stacks in the order of time. Each cluster is of one category, and its length is geometric, as if the sampler
hit one place again and again. The product divides them into blocks of consecutive stacks and makes its intervals of the shares::

    stacks    ppppkkkkkkkkkppwwwwkkkkkpppppppk kkkkpppwwwwwwkkkkkkpppppp
    blocks    |             |             |             |             |

As independent counts, clustered stacks have intervals that are too narrow by the root of the clusters' dispersion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from overhead_lens.budget.shares import Shares, shares_of_blocks, shares_of_stacks
from overhead_lens.readers.py_spy.stacks import parse_stacks
from overhead_lens.stack import Stack
from overhead_lens.stats.values import Bools, Floats, Ints
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import default_classifier
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result

CLAIM = Claim(
    claim="stack-blocks",
    question="How often does the interval of a share contain the truth, where the stacks of one process come in clusters?",
    method=(
        "Processes are drawn as stacks in the order of time: clusters of one category, of geometric length; of length 1 they "
        "are independent. The product makes the intervals of the shares of four categories, of blocks of consecutive stacks and, "
        "beside it, as if all stacks were independent. Coverage is the mean over the four."
    ),
    command="python -m scripts.validation.stack_blocks",
    columns=(
        Column("stacks"),
        Column("mean cluster", "stacks"),
        Column("blocks"),
        Column("processes"),
        Column("coverage by blocks", "share"),
        Column("least of a category", "share"),
        Column("coverage as independent", "share"),
    ),
    about=("overhead_lens/budget", "overhead_lens/readers/py_spy", "overhead_lens/stats", "overhead_lens/taxonomy"),
)

TRUTH = {"python": 0.5, "kernel": 0.3, "dispatcher": 0.15, "wait": 0.05}
_STACKS = {
    "python": "train (train.py:5) 1",
    "kernel": "train (train.py:5);at::native::add_kernel (libtorch_cpu.so) 1",
    "dispatcher": "train (train.py:5);at::_ops::add_Tensor::call (libtorch_cpu.so) 1",
    "wait": "train (train.py:5);clock_nanosleep (libc.so.6) 1",
}
_FOUND_AT = [HOST_CATEGORIES.index(name) for name in TRUTH]
_SEED = 20_261_124


def main() -> None:
    """Simulate, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--processes", type=int, default=1_500, help="drawn for each row")
    parser.add_argument("--stacks", type=int, nargs="+", default=[1_000, 4_000])
    parser.add_argument("--clusters", type=float, nargs="+", default=[1.0, 3.0, 8.0])
    parser.add_argument("--blocks", type=int, nargs="+", default=[10, 20])
    options = parser.parse_args()
    rows: list[list[Cell]] = []
    print_heading(CLAIM.columns)
    for stacks in options.stacks:
        for cluster in options.clusters:
            for blocks in options.blocks:
                by_blocks, plain = simulate(stacks, cluster, blocks, options.processes)
                coverage = [round(float(value), 4) for value in (by_blocks.mean(), by_blocks.min(), plain.mean())]
                rows.append([stacks, cluster, blocks, options.processes, *coverage])
                print_row(rows[-1])
    truth = ", ".join(f"{name} {share:.0%}" for name, share in TRUTH.items())
    notes = [f"The truth: {truth}; seed {_SEED}."]
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


def simulate(stacks: int, cluster: float, blocks: int, processes: int) -> tuple[Floats, Floats]:
    """Share of drawn processes whose interval contains the truth, by category: of blocks, and as independent stacks."""
    random = np.random.default_rng((_SEED, stacks, round(10 * cluster), blocks))
    classifier = default_classifier()
    patterns = [stack for name in TRUTH for stack in parse_stacks([_STACKS[name]])]
    held = np.zeros((2, len(TRUTH)))
    for _ in range(processes):
        drawn = [stacks_of(block, patterns) for block in np.array_split(draw(random, stacks, cluster), blocks)]
        plain = shares_of_stacks([[stack for block in drawn for stack in block]], classifier)
        held += np.array([holds(shares_of_blocks(drawn, classifier)), holds(plain)])
    by_blocks, as_independent = held / processes
    return by_blocks, as_independent


def draw(random: np.random.Generator, stacks: int, cluster: float) -> Ints:
    """The categories of one process's stacks, in the order of time, as numbers of ``TRUTH``."""
    lengths = random.geometric(1 / cluster, stacks)
    drawn: Ints = np.repeat(random.choice(len(TRUTH), stacks, p=list(TRUTH.values())), lengths)[:stacks]
    return drawn


def stacks_of(categories: Ints, patterns: Sequence[Stack]) -> list[Stack]:
    """The stacks of a block: one of each category that it has, with its count."""
    counts = np.bincount(categories, minlength=len(patterns))
    return [replace(pattern, count=int(count)) for pattern, count in zip(patterns, counts, strict=True) if count]


def holds(shares: Shares) -> Bools:
    """Whether the interval of each category of ``TRUTH`` contains its share."""
    low, high = np.quantile(shares.replicates[:, _FOUND_AT], [0.025, 0.975], axis=0)
    truth = np.array(list(TRUTH.values()))
    held: Bools = (low <= truth) & (truth <= high)
    return held


if __name__ == "__main__":
    main()
