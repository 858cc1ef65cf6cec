"""The page of a sweep."""

from __future__ import annotations

import math

import pytest

from overhead_lens.report.outlines.sweep import sweep_outline
from overhead_lens.report.text.blocks import interval_text
from overhead_lens.units import format_ns
from tests.report.page.seen import charts, headings, notes, rows, traces, words
from tests.studies.test_sweep import SIZES, draw


def test_points_lines_and_where_they_cross() -> None:
    sweep = draw({"slow_start": lambda n: 2_000 + n * 0.1, "slow_rate": lambda n: 200 + n})
    page = sweep_outline(sweep)
    (chart,) = charts(page, "Time by size")
    points = traces(chart)
    for variant in sweep.variants:
        assert points[variant.name]["x"] == SIZES
        assert points[variant.name]["y"] == [point.ns for point in variant.points]
    line = chart.figure["data"][1]
    assert (line["x"][0], line["x"][-1]) == (100, 100_000)
    assert (line["y"][0], line["y"][-1]) == (pytest.approx(2_010, rel=1e-4), pytest.approx(12_000, rel=1e-4))
    (cross,) = chart.figure["layout"]["shapes"]
    assert cross["x0"] == pytest.approx(2_000, rel=1e-4)
    (note,) = chart.figure["layout"]["annotations"]
    assert (note["text"], note["x"]) == ("2,000", pytest.approx(math.log10(2_000), rel=1e-4))
    ((_, crossing),) = rows(page, "Where one overtakes the other")
    assert crossing == ["slow_rate", "slow_start", "2,000", "2,000 .. 2,000", "1,000 and 10,000"]


def test_intervals_are_whiskers_and_stand_in_the_table() -> None:
    sweep = draw({"a": lambda n: 2_000 + n, "b": lambda n: 3_000 + n}, per_process=0.2)
    page = sweep_outline(sweep)
    reach = traces(charts(page, "Time by size")[0])["a"]["error_y"]
    points = sweep.variants[0].points
    assert reach["array"] == pytest.approx([point.ci95_ns[1] - point.ns for point in points], rel=1e-3)
    assert reach["arrayminus"] == pytest.approx([point.ns - point.ci95_ns[0] for point in points], rel=1e-3)
    ((heads, *times),) = rows(page, "Time by size")
    assert heads == ["n", "a", "95 %", "line", "b", "95 %", "line"]
    assert [row[1] for row in times] == [format_ns(point.ns) for point in points]
    assert [row[2] for row in times] == [interval_text(point.ci95_ns) for point in points]


def test_a_line_that_does_not_fit_is_dashed_and_said() -> None:
    page = sweep_outline(draw({"bent": lambda n: 5_000 + (n > 10_000) * n * 0.5, "even": lambda n: 100.0 + n}))
    chart = charts(page, "Time by size")[0]
    assert "bent (no line fits)" in traces(chart)
    assert [trace["line"]["dash"] for trace in chart.figure["data"] if trace["mode"] == "lines"] == ["dash", "solid"]
    (said,) = words(page, "Time by size")
    assert said.startswith("bent does not fit one line")


def test_one_variant_alone() -> None:
    page = sweep_outline(draw({"only": lambda n: 2_000 + n * 0.5}))
    assert page.sentence == "only takes 2.00 µs [2.00 µs .. 2.00 µs] whatever the n, and 0.5 ns for each of n."
    assert "Where one overtakes the other" not in headings(page)
    assert notes(charts(page, "Time by size")[0]) == []
