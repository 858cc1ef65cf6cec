"""The stack distance of events by their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.correction.lru_stack import rms_stack_distance


@pytest.mark.parametrize(
    ("names", "mean_square"),
    [("", 0.0), ("a", 1.0), ("aaaa", 1.0), ("ab", 4.0), ("abbcabbc", 7.0), ("abcabc", 9.0), ("aab", (4 + 1 + 4) / 3)],
)
def test_names_since_the_last_of_the_same(names: str, mean_square: float) -> None:
    assert rms_stack_distance(names) == pytest.approx(mean_square**0.5)


@given(st.lists(st.sampled_from("abcdef"), min_size=1))
def test_as_counted_event_by_event(names: list[str]) -> None:
    distances = []
    for at, name in enumerate(names):
        before = [place for place in range(at) if names[place] == name]
        distances.append(len(set(names[before[-1] : at])) if before else len(set(names)))
    assert rms_stack_distance(names) == pytest.approx((sum(each**2 for each in distances) / len(names)) ** 0.5)
