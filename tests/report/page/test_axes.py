"""Axes of plots."""

from __future__ import annotations

import math

import pytest

from overhead_lens.report.page.charts.axes import close_time_axis, linear_axis, log_axis, round_time


def test_ticks_that_lie_close_have_texts_of_their_own() -> None:
    assert [text for _, text in close_time_axis(1_195, 1_215).ticks] == [
        *("1.195 µs", "1.200 µs", "1.205 µs", "1.210 µs", "1.215 µs"),
    ]
    assert [text for _, text in close_time_axis(0, 4_000).ticks] == ["0", "1 µs", "2 µs", "3 µs", "4 µs"]


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((2_200.0, 4_500.0), ["3 µs", "4 µs"]),
        ((2_200.0, 2_400.0), ["2.2 µs", "2.4 µs"]),
        ((1.5e6, 60e6), ["2 ms", "5 ms", "10 ms", "20 ms", "50 ms"]),
        ((1_000.0, 1e6), ["1 µs", "10 µs", "100 µs", "1 ms"]),
    ],
)
def test_a_logarithmic_axis_has_ticks_to_be_read(values: tuple[float, float], ticks: list[str]) -> None:
    axis = log_axis(values, round_time)
    assert [text for _, text in axis.ticks] == ticks
    assert all(axis.low <= value <= axis.high for value, _ in axis.ticks)


@pytest.mark.parametrize("low", [9223372036854771712.0, 0.3, -5.0])
def test_an_axis_of_one_value_has_ticks_and_shows_no_rounding(low: float) -> None:
    axis = linear_axis(low, math.nextafter(low, math.inf), "{:,.6g}".format)
    texts = {text for _, text in axis.ticks}
    assert 4 <= len(texts) == len(axis.ticks)
    assert axis.high >= low + 1
