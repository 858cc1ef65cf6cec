"""The page of a sweep."""

from __future__ import annotations

import pytest

from overhead_lens.report.outlines.sweep import sweep_outline
from overhead_lens.report.text.blocks import interval_text
from overhead_lens.units import format_ns
from tests.report.page.seen import headings, plots, rows, series, words
from tests.studies.test_sweep import SIZES, draw


def test_points_lines_and_where_they_cross() -> None:
    sweep = draw({"slow_start": lambda n: 2_000 + n * 0.1, "slow_rate": lambda n: 200 + n})
    page = sweep_outline(sweep)
    (plot,) = plots(page, "Time by size")
    points = series(plot)
    for variant in sweep.variants:
        assert points[variant.name].x == SIZES
        assert points[variant.name].y == [point.ns for point in variant.points]
    line = plot.series[0]
    assert (line.x[0], line.x[-1]) == (pytest.approx(100), pytest.approx(100_000))
    assert (line.y[0], line.y[-1]) == (pytest.approx(2_010), pytest.approx(12_000))
    assert [(each.text, each.x) for each in plot.uprights] == [("2,000", pytest.approx(2_000))]
    ((_, crossing),) = rows(page, "Where one overtakes the other")
    assert crossing == ["slow_rate", "slow_start", "2,000", "2,000 .. 2,000", "1,000 and 10,000"]


def test_intervals_are_whiskers_and_stand_in_the_table() -> None:
    sweep = draw({"a": lambda n: 2_000 + n, "b": lambda n: 3_000 + n}, per_process=0.2)
    page = sweep_outline(sweep)
    points = sweep.variants[0].points
    assert series(plots(page, "Time by size")[0])["a"].ends == [point.ci95_ns for point in points]
    ((heads, *times),) = rows(page, "Time by size")
    assert heads == ["n", "a", "95 %", "line", "b", "95 %", "line"]
    assert [row[1] for row in times] == [format_ns(point.ns) for point in points]
    assert [row[2] for row in times] == [interval_text(point.ci95_ns) for point in points]


def test_a_line_that_does_not_fit_is_dashed_and_said() -> None:
    page = sweep_outline(draw({"bent": lambda n: 5_000 + (n > 10_000) * n * 0.5, "even": lambda n: 100.0 + n}))
    (plot,) = plots(page, "Time by size")
    assert list(series(plot)) == ["bent (no line fits)", "even"]
    assert [each.is_dashed for each in plot.series if each.form == "line"] == [True, False]
    (said,) = words(page, "Time by size")
    assert said.startswith("bent does not fit one line")


def test_one_variant_alone() -> None:
    page = sweep_outline(draw({"only": lambda n: 2_000 + n * 0.5}))
    assert page.sentence == "only takes 2.00 µs [2.00 µs .. 2.00 µs] whatever the n, and 0.5 ns for each of n."
    assert "Where one overtakes the other" not in headings(page)
    (plot,) = plots(page, "Time by size")
    assert plot.uprights == []
    assert plot.alternative == "Time per call by n, both logarithmic, of 1 variant, with fitted lines."


def test_large_figures_have_no_exponent() -> None:
    slow = sweep_outline(draw({"layers": lambda n: 2_000 + n * 12_345.0}))
    assert slow.sentence.endswith("whatever the n, and 12.35 µs for each of n.")
    ((_, line),) = rows(
        sweep_outline(draw({"wide": lambda n: 2_000 + n / 4_321}, sizes=[10**6, 10**7, 10**8])), "Lines"
    )
    assert line[3:5] == ["4,321", "4,321 .. 4,321"]
