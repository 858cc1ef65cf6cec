"""Holm's adjusted p-values by hand."""

from __future__ import annotations

import pytest

from overhead_lens.stats.distributions import holm


def test_each_p_value_is_multiplied_by_how_many_are_left() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("p_values", "rejected"),
    [
        ([], []),
        ([0.05], [True]),
        ([0.051], [False]),
        ([0.03, 0.02], [True, True]),
        ([0.03, 0.026], [False, False]),
        # 0.01 <= 0.05 / 4; 0.016 <= 0.05 / 3; 0.026 > 0.05 / 2, and so is whatever comes after it.
        ([0.026, 0.01, 0.016, 0.04], [False, True, True, False]),
        ([0.06, 0.001], [False, True]),
    ],
)
def test_what_is_rejected_at_5_percent(p_values: list[float], rejected: list[bool]) -> None:
    assert [p_value <= 0.05 for p_value in holm(p_values)] == rejected
