"""What repeats in numbers: it is there, does not overlap, and is found in linear work."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.traces.sequences import repeats as module
from overhead_lens.traces.sequences.repeats import repeats


def of(numbers: list[int], weights: list[int] | None = None) -> list[tuple[int, list[int]]]:
    """Length and places of each repeat."""
    weigh = np.array(weights if weights is not None else [1] * len(numbers), dtype=np.int64)
    return [(one.length, one.places.tolist()) for one in repeats(np.array(numbers, dtype=np.int64), weigh)]


@pytest.mark.parametrize("numbers", [[], [0], [0, 0], [0, 0, 0], [0, 1, 2, 3], [0, 1, 2, 0]])
def test_nothing_repeats(numbers: list[int]) -> None:
    assert of(numbers) == []


def test_the_drawn_example() -> None:
    a, b, c, x, y = range(5)
    assert of([a, b, c, x, a, b, c, y, a, b, c]) == [(3, [0, 4, 8])]


def test_what_follows_itself_is_cut_to_its_period() -> None:
    assert (3, [0, 3, 6, 9]) in of([0, 1, 2] * 4)
    assert all(length == 3 for length, _ in of([0, 1, 2] * 4))


def test_a_long_one_and_the_short_one_inside_it_that_is_there_more_often() -> None:
    layer = [1, 2, 3]
    step = [4, *layer, *layer, *layer, 5]
    found = of([*step, 6, *step, 7, *step])
    assert (11, [0, 12, 24]) in found
    assert (3, [1, 4, 7, 13, 16, 19, 25, 28, 31]) in found


def test_all_alike() -> None:
    assert (2, [0, 2, 4]) in of([7] * 6)
    assert max(length for length, _ in of([7] * 300)) == 128


@settings(max_examples=500, deadline=None)
@given(numbers=st.lists(st.integers(0, 3), max_size=60), data=st.data())
def test_a_repeat_is_there_at_all_its_places_without_overlap(numbers: list[int], data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.integers(0, 5), min_size=len(numbers), max_size=len(numbers)))
    for length, places in of(numbers, weights):
        assert length >= 2
        assert len(places) >= 2
        assert all(after - before >= length for before, after in zip(places, places[1:], strict=False))
        assert 0 <= places[0]
        assert places[-1] + length <= len(numbers)
        assert len({tuple(numbers[at : at + length]) for at in places}) == 1


@settings(max_examples=300, deadline=None)
@given(
    block=st.lists(st.integers(0, 9), min_size=2, max_size=20, unique=True),
    between=st.lists(st.integers(0, 3), min_size=1, max_size=8),
)
def test_a_block_among_numbers_of_their_own_is_found_whole(block: list[int], between: list[int]) -> None:
    numbers, places, fresh = list(block), [0], 100
    for count in between:
        numbers += range(fresh, fresh + count)
        fresh += count
        places.append(len(numbers))
        numbers += block
    assert (len(block), places) in of(numbers)


def test_the_work_is_linear_in_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    named = []
    real = module._named
    monkeypatch.setattr(module, "_named", lambda values: (named.append(len(values)), real(values))[1])
    count = 100_000
    found = of([0, 1, 2, 3, 4] * (count // 5))
    assert (5, list(range(0, count, 5))) in found
    # One pass for each doubling of the length, and few repeats of each.
    assert sum(named) <= count * (1 + np.log2(count))
    assert len(found) <= module._MOST_OF_A_LENGTH * (1 + np.log2(count))
