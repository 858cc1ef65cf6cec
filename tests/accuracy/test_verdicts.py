"""The script that draws comparisons from recorded rounds: slow-downs, whom they are given to, and who judges them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from overhead_lens.captures.model import CaptureMeta
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.classifier import default_classifier
from scripts.validation.verdicts import (
    OWN,
    RULES,
    Pool,
    Process,
    added_functions,
    known_functions,
    resample,
    series_of,
    slowed,
)
from tests.drawn.stacks import BINDING, ENTRY, USER, stack

META = CaptureMeta(subject=Subject("scenario", "drawn", "drawn"), recorded_with="pool")


def process(random: np.random.Generator, *, sampled: bool) -> Process:
    noise = random.normal(0, 2, 20)
    clock = pd.DataFrame(
        {
            "process": 0,
            "block": range(20),
            "calls": 100,
            "wall_ns": (100_000 + 100 * noise).round().astype("int64"),
            "reference_ns": 7,
            "minor_faults": 0,
            "system_ns": 0,
            "compilation": 0,
        }
    )
    python, dispatcher = random.multinomial(2_000, [0.6, 0.4]).tolist()
    stacks = (stack(USER, count=python), stack(USER, BINDING, ENTRY, count=dispatcher))
    return Process(clock, stacks if sampled else ())


@pytest.fixture
def pool() -> Pool:
    random = np.random.default_rng(1)
    rounds = [tuple(process(random, sampled=number % 2 == 0) for _ in range(2)) for number in range(24)]
    return Pool(META, rounds, Counter(same=2), default_classifier(RULES))


def test_a_slow_down_is_time_of_every_block_and_stacks_of_one_function(pool: Pool) -> None:
    old, function = pool.sampled[0][0], stack("added_to_guard (added.so)")
    new = slowed(old, 0.05, function, np.random.default_rng(2))
    added_ns = (new.clock["wall_ns"] - old.clock["wall_ns"]) / 100
    assert added_ns.tolist() == pytest.approx([50.0] * 20, abs=0.5)
    assert sum(each.count for each in new.stacks) == 2_000
    assert new.stacks[-1].frames == function.frames
    # 5 of 105 parts of the slower call.
    assert new.stacks[-1].count == pytest.approx(2_000 * 5 / 105, rel=0.3)
    assert slowed(old, 0.0, function, np.random.default_rng(2)) is old
    assert slowed(pool.not_sampled[0][0], 0.05, function, np.random.default_rng(2)).stacks == ()


def test_functions_that_a_slow_down_may_hit(pool: Pool) -> None:
    added, known = added_functions(pool), known_functions(pool)
    assert sorted(added.categories) == ["dispatcher", "python"]
    assert added.weights.tolist() == [0.5, 0.5]
    assert set(known.categories) == {"dispatcher", "python"}
    assert known.weights.sum() == pytest.approx(1)


def test_the_product_judges(pool: Pool) -> None:
    added = added_functions(pool)
    same, slower = (resample(pool, 10, share, added) for share in (0.0, 0.05))
    assert same.verdicts[OWN] == Counter(same=10)
    assert (same.right, same.wrong) == (0, 0)
    assert slower.verdicts[OWN] == Counter(slower=10)
    assert (slower.right, slower.wrong) == (10, 0)
    assert slower.rows(0.05, "a new function")[0] == [0.05, "a new function", OWN, 1, 0, 0, 0, 1, 0]


def test_a_comparison_is_of_as_many_rounds_as_a_live_one(pool: Pool) -> None:
    drawn = pool.draw(np.random.default_rng(3))
    assert [bool(base.stacks) for base, _ in drawn] == [True] * 6 + [False] * 6
    budget = pool.budget([base for base, _ in drawn])
    assert (budget.breakdown.wall.processes, budget.recorded_with) == (12, "pool")
    assert sum(each.ns for each in budget.breakdown.host) == budget.breakdown.wall.ns


def test_each_series_has_a_result_of_its_own() -> None:
    assert series_of("add1", 5, load=False).claim == "verdicts-eager"
    claim = series_of("add1 --compile", 7, load=True)
    assert claim.claim == "verdicts-compiled-load"
    assert claim.command == 'python -m scripts.validation.verdicts FOLDER --target "add1 --compile" --live 7 --load'
