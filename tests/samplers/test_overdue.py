"""Stacks of a loop that stood still."""

from __future__ import annotations

import random

import pytest

from overhead_lens.samplers.overdue import without_overdue
from overhead_lens.samplers.sampler import SamplerRun


def drawn(seed: int, shares: dict[str, float], count: int) -> list[str]:
    return random.Random(seed).choices(list(shares), list(shares.values()), k=count)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9, 0.99])
def test_chance_is_left_alone(share: float) -> None:
    lost = 0
    for seed in range(200):
        taken = drawn(seed, {"hot": share, **{f"f{at}": (1 - share) / 50 for at in range(50)}}, 500)
        lost += len(taken) - len(without_overdue(taken, 1.0))
    assert lost / (200 * 500) < 1e-4


def test_a_stack_that_is_always_there_counts_every_time() -> None:
    assert without_overdue(500 * ["only"], 1.0) == 500 * ["only"]


@pytest.mark.parametrize("length", [15, 40, 300])
def test_a_burst_is_one_stack(length: int) -> None:
    taken = drawn(1, {f"f{at}": 1.0 for at in range(50)}, 500)
    assert without_overdue([*taken[:200], *(length * ["held"]), *taken[200:]], 1.0) == [
        *taken[:200],
        "held",
        *taken[200:],
    ]
    # A call in which as many stacks fall, and a sampler that is late so often.
    for few, per_call in ((length, float(length)), (14, 1.0)):
        all_of_them = [*taken[:200], *(few * ["held"]), *taken[200:]]
        assert without_overdue(all_of_them, per_call) == all_of_them


@pytest.mark.parametrize(
    ("count", "sequences", "samples"),
    [
        (0, (("a", "b", "c"), ("x",)), 9),
        (1, (("b", "c"), ("x",)), 8),
        (2, (("c",), ("x",)), 7),
        (3, (), 5),
        (9, (), 5),
    ],
)
def test_the_first_looks_at_all_threads_are_left_out(
    count: int, sequences: tuple[tuple[str, ...], ...], samples: int
) -> None:
    run = SamplerRun((("a", "b", "c"), ("x",)), 9, 2)
    assert run.without_first(count) == SamplerRun(sequences, samples, 2)
