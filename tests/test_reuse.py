"""The stack distance of events by their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.reuse import mean_reuse_distance


@pytest.mark.parametrize(
    ("names", "mean"),
    [("", 0.0), ("a", 1.0), ("aaaa", 1.0), ("ab", 2.0), ("abbcabbc", 2.5), ("abcabc", 3.0), ("aab", (2 + 1 + 2) / 3)],
)
def test_names_since_the_last_of_the_same(names: str, mean: float) -> None:
    assert mean_reuse_distance(names) == mean


@given(st.lists(st.sampled_from("abcdef"), min_size=1))
def test_as_counted_event_by_event(names: list[str]) -> None:
    distances = []
    for at, name in enumerate(names):
        before = [place for place in range(at) if names[place] == name]
        distances.append(len(set(names[before[-1] : at])) if before else len(set(names)))
    assert mean_reuse_distance(names) == pytest.approx(sum(distances) / len(names))
