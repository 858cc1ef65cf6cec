"""Values at places."""

from __future__ import annotations

import numpy as np

from overhead_lens.stats.values import are_first


def test_the_first_of_each_place() -> None:
    assert are_first(np.array([3, -1, 3, 0, -1, 4])).tolist() == [True, True, False, True, False, True]
    assert are_first(np.array([-1, -1])).tolist() == [True, False]
    assert are_first(np.array([], dtype=np.int64)).tolist() == []
