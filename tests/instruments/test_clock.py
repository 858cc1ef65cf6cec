"""Blocks of the bare loop, timed as a whole and in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.instruments.clock import worker as clock
from overhead_lens.worker.workload import calls_within


class Timed:
    """A workload whose runs take what they are told to, in ns."""

    def __init__(self, *walls_ns: int, on_device: bool = False) -> None:
        self.walls_ns = iter(walls_ns)
        self.on_device = on_device
        self.counts: list[int] = []

    def run(self, count: int) -> int:
        self.counts.append(count)
        return next(self.walls_ns)

    def calls_within(self, call_ns: float, duration_ns: int) -> int:
        return calls_within(call_ns, duration_ns)

    def compile_count(self) -> int:
        return len(self.counts)


def test_a_block_as_a_whole() -> None:
    workload = Timed(9_000)
    row = clock.measure_block(workload, 7)  # type: ignore[arg-type]
    assert (workload.counts, row["calls"], row["wall_ns"], row["compiles"]) == ([7], 7, 9_000, 1)
    assert "steady_ns" not in row


@pytest.mark.parametrize(
    ("walls_ns", "steady_ns"),
    [([900, 100, 110, 100, 102], 510), ([900, 100, 111, 101], 424), ([900, 102], 1_002), ([77], 77)],
)
def test_the_middle_piece_of_a_block_counts(walls_ns: list[int], steady_ns: int) -> None:
    workload = Timed(*walls_ns)
    row = clock.measure_block(workload, 7, len(walls_ns))  # type: ignore[arg-type]
    assert workload.counts == [7] * len(walls_ns)
    assert (row["calls"], row["wall_ns"], row["steady_ns"]) == (7 * len(walls_ns), sum(walls_ns), steady_ns)
    assert row["compiles"] == len(walls_ns)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=40), st.integers(0, 10**12))
def test_pieces_that_take_longer_than_half_of_the_others_do_not_count(walls_ns: list[int], more_ns: int) -> None:
    found = []
    for late_ns in (0, more_ns):
        ordered = sorted(walls_ns)
        ordered[len(ordered) // 2 + 1 :] = [ns + late_ns for ns in ordered[len(ordered) // 2 + 1 :]]
        found.append(clock.measure_block(Timed(*ordered), 1, len(ordered))["steady_ns"])  # type: ignore[arg-type]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("call_ns", "calls", "pieces"),
    # A quarter of a millisecond, 20 of them; calls that are longer are a piece each.
    [
        (0.0, 250_000, 20),
        (1_000.0, 250, 20),
        (100_000.0, 2, 25),
        (250_000.0, 1, 20),
        (2e6, 1, 2),
        (5e6, 1, 1),
        (1e9, 1, 1),
    ],
)
def test_how_many_calls_and_pieces_make_a_block(call_ns: float, calls: int, pieces: int) -> None:
    assert calls_within(call_ns, 250_000) == calls
    assert clock.division(Timed(), call_ns, 5_000_000, 250_000) == (calls, pieces)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("piece_ns", "on_device", "calls_and_pieces"),
    [
        (250_000, False, (250, 20)),
        (None, False, (5_000, None)),
        (250_000, True, (5_000, None)),
        (None, True, (5_000, None)),
    ],
)
def test_a_block_on_a_device_is_timed_as_a_whole(
    piece_ns: int | None, on_device: bool, calls_and_pieces: tuple[int, int | None]
) -> None:
    workload = Timed(on_device=on_device)
    assert clock.division(workload, 1_000.0, 5_000_000, piece_ns) == calls_and_pieces  # type: ignore[arg-type]


def test_blocks_are_numbered_and_stop_after_their_time() -> None:
    rows, call_ns = clock.measure_blocks(Timed(*[10] * 40), 5.0, 100, 4, 10**12, 10)  # type: ignore[arg-type]
    assert [(row["block"], row["calls"], row["steady_ns"]) for row in rows] == [
        (number, 20, 100) for number in range(4)
    ]
    assert call_ns == 5
    rows, _ = clock.measure_blocks(Timed(*[10] * 9), 5.0, 10, 9, 0)  # type: ignore[arg-type]
    assert len(rows) == 3


def test_a_block_that_is_much_too_short_is_timed_again_with_as_many_calls_as_it_needs() -> None:
    workload = Timed(1_000, 9_000, 4_900, 5_000)
    rows, call_ns = clock.measure_blocks(workload, 1_000.0, 10_000, 2, 10**12)  # type: ignore[arg-type]
    # Ten calls took 1,000 ns, so a hundred make a block; they took 4,900 later, too little by a hair, and 204 took 5,000.
    assert workload.counts == [10, 100, 100, 204]
    assert [(row["block"], row["calls"], row["wall_ns"]) for row in rows] == [(0, 100, 9_000), (1, 204, 5_000)]
    assert call_ns == 49


def test_a_block_that_stays_too_short_is_kept_in_the_end() -> None:
    workload = Timed(*[250] * 99)
    row, _ = clock.measure_whole_block(workload, 256.0, 1_024)  # type: ignore[arg-type]
    assert (workload.counts, row["wall_ns"]) == ([4, 16, 66, 270, 1_024], 250)
    # More calls than these are never made: shorter than a nanosecond is none.
    workload = Timed(*[10] * 99)
    clock.measure_whole_block(workload, 1.0, 1_000)  # type: ignore[arg-type]
    assert workload.counts == [1_000]
