"""The intervals of shares cover where the stacks of a process come in clusters, and only because of its blocks."""

from __future__ import annotations

import numpy as np
import pytest

from scripts.validation.stack_blocks import TRUTH, draw, simulate

PROCESSES = 200
# What 95 % may come out as in so many processes of four categories, three standard errors to either side.
LEAST, MOST = 0.915, 0.985


@pytest.mark.parametrize(("cluster", "plain"), [(1.0, (LEAST, MOST)), (4.0, (0.0, 0.7))])
def test_blocks_make_the_intervals_cover(cluster: float, plain: tuple[float, float]) -> None:
    by_blocks, as_independent = simulate(3_000, cluster, 20, PROCESSES)
    assert LEAST <= by_blocks.mean() <= MOST
    assert plain[0] <= as_independent.mean() <= plain[1]


def test_what_is_drawn_has_the_shares_and_clusters_that_it_says() -> None:
    drawn = draw(np.random.default_rng(1), 200_000, 4.0)
    assert len(drawn) == 200_000
    assert np.bincount(drawn) / 200_000 == pytest.approx(list(TRUTH.values()), abs=0.01)
    # A cluster is followed by one of the same category as often as that category is drawn.
    changes = (drawn[1:] != drawn[:-1]).mean()
    assert changes == pytest.approx((1 - sum(share**2 for share in TRUTH.values())) / 4, rel=0.03)
