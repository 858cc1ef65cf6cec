"""Sums of a region's entries: in blocks of consecutive ones, never more than so many."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.program.entries import MOST_BLOCKS, Entries


def added(times: list[int]) -> Entries:
    entries = Entries()
    for ns in times:
        entries.add(ns)
    return entries


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=700))
def test_blocks_are_consecutive_equal_and_sum_to_the_whole(times: list[int]) -> None:
    count, ns, squares, blocks = added(times).row()
    assert (count, ns, squares) == (len(times), sum(times), sum(time * time for time in times))
    assert isinstance(blocks, list)
    counts = [size for size, _ in blocks]
    assert len(blocks) <= MOST_BLOCKS
    assert set(counts[:-1]) <= {max(counts)}
    ends = [0, *accumulate(counts)]
    assert blocks == [(end - begin, sum(times[begin:end])) for begin, end in zip(ends, ends[1:], strict=False)]


@pytest.mark.parametrize(
    ("entries", "blocks", "size"),
    [(1, 1, 1), (MOST_BLOCKS, MOST_BLOCKS, 1), (MOST_BLOCKS + 1, MOST_BLOCKS // 2 + 1, 2), (100_000, 25, 4_096)],
)
def test_full_blocks_are_merged_in_pairs(entries: int, blocks: int, size: int) -> None:
    *_, found = added([1] * entries).row()
    assert isinstance(found, list)
    assert (len(found), found[0]) == (blocks, (size, size))


def test_no_entry_has_no_block() -> None:
    assert Entries().row() == [0, 0, 0, []]
