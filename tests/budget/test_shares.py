from __future__ import annotations

import numpy as np
import pytest

from overhead_lens.budget.shares import Shares, shares_of_blocks, shares_of_stacks
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.rules import Attribution
from tests.drawn.stacks import BINDING, CLASSIFIER, ENTRY, USER, stack

STEADY = (
    ("clock_nanosleep (libc.so.6)",),
    (BINDING, ENTRY, "at::native::add_kernel (libtorch_cpu.so)"),
    (BINDING, ENTRY, "at::detail::empty_cpu (libtorch_cpu.so)"),
)
PATHS = ((USER,), (USER, BINDING, ENTRY))


def shares(*processes: tuple[int, int]) -> Shares:
    """Shares of processes given as (samples in user code, samples in the dispatcher)."""
    samples = [[stack(USER, count=user), stack(USER, BINDING, ENTRY, count=entered)] for user, entered in processes]
    return shares_of_stacks(samples, CLASSIFIER)


def in_blocks(*blocks: tuple[int, int]) -> Shares:
    """Shares of one process, by blocks of (samples in user code, samples in the dispatcher)."""
    samples = [
        [stack(path[0], *path[1:], count=count) for path, count in zip(PATHS, block, strict=True) if count]
        for block in blocks
    ]
    return shares_of_blocks(samples, CLASSIFIER)


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
    position, covered, widths = HOST_CATEGORIES.index("python"), 0, []
    for _ in range(200):
        true = np.clip(random.normal(0.35, 0.03, 5), 0.01, 0.99)
        found = shares(*[(seen := int(random.binomial(1_050, share)), 1_050 - seen) for share in true])
        low, high = np.quantile(found.replicates[:, position], [0.025, 0.975])
        covered += low <= 0.35 <= high
        widths.append(high - low)
    assert 0.93 <= covered / 200
    # Student's t of five processes whose shares have the deviation of the draw and of the counts; no wider than that needs.
    error = ((0.03**2 + 0.35 * 0.65 / 1_050) / 5) ** 0.5
    assert np.mean(widths) / 2 == pytest.approx(2.776 * error, rel=0.1)


# ---------------------------------------------------------------- blocks of one process
def test_blocks_are_pooled_as_one_process() -> None:
    found = in_blocks((10, 30), (50, 10), (0, 0))
    assert (found.weight, found.share("python")) == (100, 0.6)
    present = {"python": 0.6, "dispatcher": 0.4}
    assert found.per_process.tolist() == [[present.get(name, 0.0) for name in HOST_CATEGORIES]]
    assert {name: counts.tolist() for (name, _), counts in found.counts.items()} == {"python": [60], "dispatcher": [40]}


def test_a_single_block_is_a_process_of_its_own() -> None:
    one, plain = in_blocks((500, 500)), shares((500, 500))
    assert np.array_equal(one.replicates, plain.replicates)


def test_blocks_that_differ_widen_the_interval_by_the_root_of_their_dispersion() -> None:
    # Ten blocks of 100: of 50, as binomial counts of 0.5 are, 50 away from it by 15 each: chi-square 10 * 15 ** 2 / 25 = 90 of 9.
    apart = in_blocks(*[(65, 35), (35, 65)] * 5)
    assert apart.share("python") == 0.5
    # As 100 independent stacks and Jeffreys' half a stack in each category have it.
    mean = 50.5 / (100 + len(HOST_CATEGORIES) / 2)
    assert apart.replicates[:, HOST_CATEGORIES.index("python")].mean() == pytest.approx(mean, abs=0.005)
    assert width(apart, "python") == pytest.approx(2 * 1.96 * (0.25 / 100) ** 0.5, rel=0.1)
    alike = in_blocks(*[(50, 50)] * 10)
    assert width(alike, "python") == pytest.approx(2 * 1.96 * (0.25 / 1000) ** 0.5, rel=0.1)


def test_dispersion_does_not_move_the_shares() -> None:
    # User code and the dispatcher come in bursts, the others do not: counts are divided by different dispersions.
    steady = [stack(USER, *path, count=1_000) for path in STEADY]
    samples = [
        [stack(USER, count=user), stack(USER, BINDING, ENTRY, count=1_000 - user), *steady] for user in (900, 100) * 5
    ]
    found = shares_of_blocks(samples, CLASSIFIER)
    means = found.replicates.mean(axis=0)
    wanted = [found.share(name) for name in HOST_CATEGORIES]
    assert means == pytest.approx(wanted, abs=0.01)
    assert found.replicates.sum(axis=1) == pytest.approx(np.ones(len(found.replicates)))
