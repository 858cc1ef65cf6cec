from __future__ import annotations

import numpy as np
import pytest

from overhead_lens.stats.overdispersion import overdispersion, overdispersion_by_size


def test_a_row_whose_processes_agree_by_chance_is_as_overdispersed_as_others_of_its_size() -> None:
    counts = np.array([[140.0, 60.0], [60.0, 140.0], [100.0, 100.0], [10.0, 10.0], [10.0, 10.0], [10.0, 10.0]])
    share = 200 / 660
    own = 2 * 40**2 / (share * (1 - share) * 330)
    assert overdispersion([counts]) == pytest.approx([own, own, 1, 1, 1, 1])
    slope = (200 * (own - 1) * 2 - 200 - 3 * 20) / (3 * 200**2 + 3 * 20**2)
    assert overdispersion_by_size([counts]) == pytest.approx([own, own, 1 + 200 * slope, *[1 + 20 * slope] * 3])


def test_rows_that_agree_better_than_by_chance_and_none_are_not_overdispersed() -> None:
    even = np.full((3, 2), 100.0)
    assert overdispersion_by_size([even, even]) == pytest.approx([1, 1, 1])
    assert overdispersion_by_size([np.zeros((1, 2))]) == pytest.approx([1])
