"""Axes of plots."""

from __future__ import annotations

from overhead_lens.report.page.charts.axes import close_time_axis


def test_ticks_that_lie_close_have_texts_of_their_own() -> None:
    assert [text for _, text in close_time_axis(1_195, 1_215).ticks] == [
        *("1.195 µs", "1.200 µs", "1.205 µs", "1.210 µs", "1.215 µs"),
    ]
    assert [text for _, text in close_time_axis(0, 4_000).ticks] == ["0", "1 µs", "2 µs", "3 µs", "4 µs"]
