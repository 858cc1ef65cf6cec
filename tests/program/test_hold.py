"""Waiting for the sampler, by a drawn clock: until it has stopped the thread, and then left it alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.program import hold
from overhead_lens.program.hold import hold_until_sampled

US, MS = 1_000, 1_000_000


def waited_ns(*moments_ns: int, then_every_ns: int = US) -> int:
    """How long it stays when the clock is read at these moments, and every microsecond from then on."""
    reads: list[int] = []

    def clock() -> Iterator[int]:
        yield from moments_ns
        now_ns = moments_ns[-1]
        while True:
            now_ns += then_every_ns
            yield now_ns

    moments = clock()

    def read() -> int:
        reads.append(next(moments))
        return reads[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hold.time, "perf_counter_ns", read)
        hold_until_sampled()
    return reads[-1] - reads[0]


def test_stopped_once_and_left_alone_for_3_ms() -> None:
    assert waited_ns(0, US, US + 200 * US) == 201 * US + 3 * MS + US


def test_each_stop_begins_the_wait_anew() -> None:
    stops = (0, 2 * MS, 4 * MS, 4 * MS + 1, 6 * MS)
    assert waited_ns(*stops) == 6 * MS + 3 * MS + US


def test_never_stopped_it_goes_on_after_600_ms() -> None:
    assert waited_ns(0) == 600 * MS
    # What is no longer than 150 us is no stop.
    assert waited_ns(0, 150 * US, 300 * US, 450 * US) == 600 * MS


def test_stopped_all_the_time_it_goes_on_after_600_ms() -> None:
    assert waited_ns(0, then_every_ns=2 * MS) == 600 * MS


@given(st.lists(st.integers(1, 5 * MS), min_size=1, max_size=60))
def test_it_returns_at_the_first_quiet_moment_and_never_later_than_600_ms_and_a_stop(gaps_ns: list[int]) -> None:
    moments = [0]
    for gap_ns in gaps_ns:
        moments.append(moments[-1] + gap_ns)
    stops = [later for earlier, later in zip(moments, moments[1:], strict=False) if later - earlier > 150 * US]
    waited = waited_ns(*moments)
    assert waited <= 600 * MS + 5 * MS
    before = [stop for stop in stops if stop < waited]
    if waited < 600 * MS:
        assert waited - before[-1] > 3 * MS
        assert waited - before[-1] <= 3 * MS + 150 * US
