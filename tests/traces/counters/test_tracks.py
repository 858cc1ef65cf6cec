"""Counters over time: how long a value holds, what is a gap, and what it was while kernels ran."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.report.outlines.recorded.counters import over_time
from overhead_lens.traces.counters.model import CounterTrack
from overhead_lens.traces.counters.tracks import Track, held, integrals, period
from tests.drawn.counters import counter, work
from tests.drawn.timelines import analyzer_of, timed

WHOLE = timed(0, 1000, "all of it", "user_annotation")


def tracks(*entries: dict) -> tuple[CounterTrack, ...]:
    return analyzer_of(WHOLE, *entries).analysis().counters.tracks


def sampled(*at_ns: int) -> list[dict]:
    """A metric whose value is its time."""
    return [counter(at, "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", _=at) for at in at_ns]


def test_a_sample_holds_for_a_period_and_what_is_missing_is_a_gap() -> None:
    (found,) = tracks(*sampled(100, 110, 120, 160, 170, 180))
    assert (found.device, found.process, found.unit, found.samples) == ("0", "GPU 0 Counters", "%", 6)
    assert (found.period_ns, found.gaps, found.gap_ns) == (10, 1, 30)
    # 100..130 and 160..190: six values of 10 ns each.
    assert (found.start_ns, found.covered_ns, found.min, found.max) == (100, 60, 100.0, 180.0)
    assert found.mean == (100 + 110 + 120 + 160 + 170 + 180) / 6


def test_a_value_that_is_written_on_change_holds_until_the_next_and_the_last_to_the_end() -> None:
    (found,) = tracks(
        *(counter(at, "Queue Length", 0, "", stream7=value) for at, value in ((100, 1), (105, 3), (700, 0))), work(0, 5)
    )
    assert (found.name, found.device, found.unit) == ("Queue Length/stream7", "0", "")
    assert (found.period_ns, found.gaps, found.covered_ns) == (None, 0, 900)
    assert found.mean == (5 * 1 + 595 * 3 + 300 * 0) / 900


def test_of_two_values_at_one_time_the_later_holds() -> None:
    (found,) = tracks(*(counter(at, "c", 0, "", _=value) for at, value in ((100, 7), (100, 1), (600, 3))))
    assert (found.samples, found.covered_ns, found.mean) == (3, 900, (500 * 1 + 400 * 3) / 900)


def test_the_chart_reaches_as_far_as_the_last_value_holds() -> None:
    (one,) = tracks(counter(100, "c", 1, "", _=7))
    (regular,) = tracks(*sampled(100, 110, 120, 160, 170, 180))
    ends = [(axis.low, axis.high) for axis in (over_time(found).x for found in (one, regular))]
    assert ends == [(100, 1_000), (100, 190)]


def test_a_counter_that_stays_at_a_value_so_large_that_one_more_is_the_same_is_drawn() -> None:
    (found,) = tracks(counter(100, "memory.limit_in_bytes", 1, "", _=9223372036854771712))
    axis = over_time(found).y
    assert [text for _, text in axis.ticks] == ["9.224e+18", "9.226e+18", "9.228e+18", "9.23e+18", "9.232e+18"]


def test_large_round_values_on_the_axis_are_written_out() -> None:
    (found,) = tracks(counter(100, "memory", 1, "", _=0), counter(500, "memory", 1, "", _=4_000_000_000))
    texts = [text for _, text in over_time(found).y.ticks]
    assert texts[:2] == ["1,000,000,000", "2,000,000,000"]


def test_the_order_in_the_file_changes_nothing() -> None:
    samples = sampled(100, 110, 120, 160, 170, 180)
    assert tracks(*samples) == tracks(*reversed(samples))


def test_a_sample_without_a_number_is_counted_and_leaves_a_gap() -> None:
    analysis = analyzer_of(
        WHOLE, *sampled(100, 110, 120), counter(130, "sm", _="nan"), *sampled(140, 150, 160)
    ).analysis()
    (found,) = analysis.counters.tracks
    assert (found.samples, found.gaps, found.gap_ns, found.covered_ns) == (6, 1, 10, 60)
    assert dict(analysis.issues) == {"bad_counter_event": 1}


def test_several_metrics_of_one_event_are_counters_of_their_own() -> None:
    found = tracks(counter(1, "XPU", 3, "xpu_scope_profiler", a__bytes=4, b=2))
    assert [(one.name, one.device, one.mean) for one in found] == [("XPU/a__bytes", "3", 4.0), ("XPU/b", "3", 2.0)]


def test_a_counter_of_a_host_process_is_of_no_device() -> None:
    (found,) = tracks(counter(1, "RSS", 1, "", _=4), work(5, 5))
    assert (found.device, found.process, found.kernels) == ("", "1", ())


def test_kernels_have_the_mean_of_the_counter_over_what_it_covers_of_them() -> None:
    samples = [counter(at, "dram__bytes.sum", _=value) for at, value in ((100, 10), (110, 20), (120, 30), (130, 40))]
    (found,) = tracks(
        *samples, work(105, 10, "gemm"), work(125, 30, "gemm"), work(112, 4, "add"), work(500, 9, "late"), work(131, 4, "copy", "gpu_memcpy")
    )  # fmt: skip
    # gemm: 105-110 at 10, 110-115 at 20; 125-130 at 30, 130-140 at 40, 140-155 unknown. Copies are no kernels.
    assert [(one.name, one.total_ns, one.covered_ns, one.mean) for one in found.kernels] == [
        ("gemm", 40, 25, (5 * 10 + 5 * 20 + 5 * 30 + 10 * 40) / 25),
        ("add", 4, 4, 20.0),
    ]
    assert found.unit == "B"


def test_a_copy_that_amd_records_among_the_kernels_is_none() -> None:
    (found,) = tracks(*sampled(100, 110, 120, 130), work(105, 10, "__amd_rocclr_copyBuffer"))
    assert found.kernels == ()


def test_times_at_a_period_are_told_from_those_on_change() -> None:
    assert period(np.array([0, 10, 20, 31, 40, 90])) == 10
    assert period(np.array([0, 10, 20])) is None  # too few to tell
    assert period(np.array([0, 10, 13, 40, 41, 90])) is None


def test_times_that_int64_holds_but_not_their_multiples() -> None:
    dur_ns, gap_ns = held(np.array([0, 5 * 10**18]), 10, 0)
    assert (dur_ns.tolist(), gap_ns.tolist()) == ([10, 10], [5 * 10**18 - 10, 0])
    far = 1_700_000_000_000_000_000
    values = [counter(at, "c", 1, "", _=at) for at in (0, 1, 5, 100, 101, 900)]
    (found,) = analyzer_of(timed(far, 1000, "work"), *values).analysis().counters.tracks
    # The last value holds from 900 on to the end of the events, which begin at 0.
    assert found.over_time.start_ns == tuple(at * (far + 1000) // 6 - far for at in range(6))
    assert found.over_time.values[1:] == pytest.approx([900] * 5)


TIMES = st.lists(st.integers(0, 500), min_size=1, max_size=12).map(sorted)


@given(times=TIMES, regular=st.booleans(), end=st.integers(500, 600))
def test_what_is_held_and_what_is_a_gap_is_all_from_the_first_to_the_last(
    times: list[int], regular: bool, end: int
) -> None:
    start_ns = np.array(times)
    dur_ns, gap_ns = held(start_ns, 10 if regular else None, end)
    last_ns = times[-1] + 10 if regular else end
    assert dur_ns.sum() + gap_ns.sum() == last_ns - times[0]
    assert (dur_ns >= 0).all() and (gap_ns >= 0).all()


@given(
    times=TIMES,
    regular=st.booleans(),
    cuts=st.lists(st.integers(-10, 620), min_size=2, max_size=6).map(sorted),
)
def test_integrals_of_parts_sum_to_the_whole_and_agree_with_a_count_of_every_ns(
    times: list[int], regular: bool, cuts: list[int]
) -> None:
    start_ns = np.array(times)
    dur_ns, gap_ns = held(start_ns, 10 if regular else None, 600)
    track = Track(0, "p", "c", "", start_ns, dur_ns, np.arange(1.0, len(times) + 1), gap_ns, 10)
    covered, summed = integrals(track, np.array(cuts[:-1]), np.array(cuts[1:]))
    values = {
        ns: value
        for start, dur, value in zip(times, dur_ns.tolist(), track.values.tolist(), strict=True)
        for ns in range(start, start + dur)
    }
    for low, high, ns, total in zip(cuts[:-1], cuts[1:], covered.tolist(), summed.tolist(), strict=True):
        inside = [values[at] for at in range(low, high) if at in values]
        assert (ns, total) == (len(inside), sum(inside))
