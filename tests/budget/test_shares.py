from __future__ import annotations

import numpy as np
import pytest

from overhead_lens.budget.shares import Shares, shares_of_stacks
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.rules import Attribution
from tests.drawn.stacks import BINDING, CLASSIFIER, ENTRY, USER, stack


def shares(*processes: tuple[int, int]) -> Shares:
    """Shares of processes given as (samples in user code, samples in the dispatcher)."""
    samples = [[stack(USER, count=user), stack(USER, BINDING, ENTRY, count=entered)] for user, entered in processes]
    return shares_of_stacks(samples, CLASSIFIER)


def width(found: Shares, category: str) -> float:
    low, high = np.quantile(found.replicates[:, HOST_CATEGORIES.index(category)], [0.025, 0.975])
    return float(high - low)


def test_processes_are_pooled() -> None:
    found = shares((10, 30), (50, 10))
    assert found.weight == 100
    assert found.attributions == {Attribution("python", "user"): 60, Attribution("dispatcher", "dispatch"): 40}
    assert found.share("python") == 0.6
    assert found.frames["python"] == {"add1 (add1.py)": 60}


def test_one_process_has_the_error_of_counts() -> None:
    assert width(shares((500, 500)), "python") == pytest.approx(2 * 1.96 * (0.25 / 1000) ** 0.5, rel=0.1)


def test_processes_that_differ_widen_the_interval() -> None:
    alike = shares(*[(500, 500)] * 5)
    apart = shares((300, 700), (700, 300), (500, 500), (400, 600), (600, 400))
    assert width(apart, "python") > 4 * width(alike, "python")
    assert apart.share("python") == alike.share("python") == 0.5


def test_replicates_are_shares() -> None:
    found = shares((0, 40), (1, 60), (0, 50)).replicates
    assert (found >= 0).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(len(found)))


@pytest.mark.parametrize(("processes", "quantile"), [(5, 2.776), (9, 2.306)])
def test_few_processes_have_students_t(processes: int, quantile: float) -> None:
    python = np.linspace(300, 700, processes)
    found = shares(*[(int(each), 1_000 - int(each)) for each in python]).replicates[:, HOST_CATEGORIES.index("python")]
    error = np.std(python / 1_000, ddof=1) / processes**0.5
    low, high = np.quantile(found, [0.025, 0.975])
    assert (high - low) / 2 == pytest.approx(quantile * error, rel=0.1)


def test_intervals_cover_where_processes_differ() -> None:
    random = np.random.default_rng(3)
    position, covered = HOST_CATEGORIES.index("python"), 0
    for _ in range(200):
        true = np.clip(random.normal(0.35, 0.03, 5), 0.01, 0.99)
        found = shares(*[(seen := int(random.binomial(1_050, share)), 1_050 - seen) for share in true])
        low, high = np.quantile(found.replicates[:, position], [0.025, 0.975])
        covered += low <= 0.35 <= high
    assert 0.93 <= covered / 200 <= 1.0
