"""The intervals of shares cover where the stacks of a process come in clusters, and only because of its blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from overhead_lens.budget.shares import Shares, shares_of_blocks, shares_of_stacks
from overhead_lens.readers.py_spy.stacks import parse_stacks
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from tests.drawn.timelines import CLASSIFIER

TRUTH = {"python": 0.5, "kernel": 0.3, "dispatcher": 0.15, "wait": 0.05}
PATTERNS = [
    *parse_stacks(
        [
            "train (train.py:5) 1",
            "train (train.py:5);at::native::add_kernel (libtorch_cpu.so) 1",
            "train (train.py:5);at::_ops::add_Tensor::call (libtorch_cpu.so) 1",
            "train (train.py:5);clock_nanosleep (libc.so.6) 1",
        ]
    )
]
STACKS, BLOCKS, PROCESSES = 3_000, 20, 200

# What 95 % may come out as in so many processes of four categories, three standard errors to either side.
LEAST, MOST = 0.915, 0.985


@pytest.mark.parametrize(("cluster", "plain"), [(1.0, (LEAST, MOST)), (4.0, (0.0, 0.7))])
def test_blocks_make_the_intervals_cover(cluster: float, plain: tuple[float, float]) -> None:
    random = np.random.default_rng(20_261_124)
    by_blocks, as_independent = [], []
    for _ in range(PROCESSES):
        blocks = [stacks_of(block) for block in np.array_split(drawn(random, STACKS, cluster), BLOCKS)]
        by_blocks.append(held(shares_of_blocks(blocks, CLASSIFIER)))
        as_independent.append(held(shares_of_stacks([[stack for block in blocks for stack in block]], CLASSIFIER)))
    assert LEAST <= np.mean(by_blocks) <= MOST
    assert plain[0] <= np.mean(as_independent) <= plain[1]


def drawn(random: np.random.Generator, stacks: int, cluster: float) -> np.ndarray:
    """The categories of one process's stacks, in the order of time: clusters of geometric length."""
    lengths = random.geometric(1 / cluster, stacks)
    return np.repeat(random.choice(len(TRUTH), stacks, p=list(TRUTH.values())), lengths)[:stacks]


def stacks_of(categories: np.ndarray) -> list[Stack]:
    """The stacks of a block: one of each category that it has, with its count."""
    counts = np.bincount(categories, minlength=len(PATTERNS))
    return [replace(pattern, count=int(count)) for pattern, count in zip(PATTERNS, counts) if count]


def held(shares: Shares) -> np.ndarray:
    """Whether the interval of each category of ``TRUTH`` contains its share."""
    at = [HOST_CATEGORIES.index(name) for name in TRUTH]
    low, high = np.quantile(shares.replicates[:, at], [0.025, 0.975], axis=0)
    truth = np.array(list(TRUTH.values()))
    return (low <= truth) & (truth <= high)
