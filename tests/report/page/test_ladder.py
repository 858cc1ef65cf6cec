"""The page of a ladder."""

from __future__ import annotations

import pytest

from overhead_lens.report.page.ladder import ladder_page
from overhead_lens.studies.ladder.analysis import LAYERS, Ladder, make_ladder
from overhead_lens.units import format_ns
from tests.drawn.ladders import META, frame, published, typed
from tests.drawn.stacks import CLASSIFIER
from tests.report.page.seen import charts, headings, notes, tables, words

CALL = {"eager": 2_000.0, "compiled": 10_000.0, "guards_filtered": 9_000.0, "direct_bytecode": 6_000.0}
CALL |= {"generated_code": 1_500.0, "allocation_hoisted": 900.0, "kernel_binding": 100.0}


def drawn(call: dict[str, float] = CALL, **meta: object) -> Ladder:
    rungs = {name: [ns, ns, ns] for name, ns in call.items()}
    return make_ladder(typed({**META, "names": list(call), **meta}), frame(rungs), "folder")


def test_the_waterfall_is_the_call_and_its_layers_which_begin_where_the_last_one_ended() -> None:
    (chart,) = charts(ladder_page(drawn(), CLASSIFIER), "What the compiled call is made of")
    (bars,) = chart.figure["data"]
    assert bars["x"] == [10.0, 1.0, 3.0, 4.5, 0.6, 0.8, 0.1]
    assert bars["base"] == [0.0, 9.0, 6.0, 1.5, 0.9, 0.1, 0.0]
    texts = notes(chart)
    assert texts[2] == "<b>guards</b>"
    assert texts[1::2] == [
        *("10.00 µs", "1.00 µs (10%)", "3.00 µs (30%)", "4.50 µs (45%)"),
        *("600 ns (6%)", "800 ns (8%)", "100 ns (1%)"),
    ]


def test_whiskers_are_the_intervals_of_paired_differences() -> None:
    times = {
        upper: [ns, ns + 5_000.0, ns + 900.0]
        for ns, (_, upper, _) in zip((900.0, 800.0, 500.0, 300.0, 200.0, 50.0), LAYERS, strict=True)
    }
    made = make_ladder(typed({**META, "names": list(times)}), frame(times), "folder")
    (chart,) = charts(ladder_page(made, CLASSIFIER), "What the compiled call is made of")
    reach = chart.figure["data"][0]["error_x"]
    assert reach["array"][:6] == reach["arrayminus"][:6] == [0.0] * 6
    low, high = made.layers[-1].ci95_ns
    assert reach["array"][6] == pytest.approx((high - made.layers[-1].ns) / 1_000, rel=1e-4)
    assert reach["arrayminus"][6] == pytest.approx((made.layers[-1].ns - low) / 1_000, rel=1e-4)


def test_every_rung_is_a_bar_and_a_row_with_its_figure_and_published_ones_are_marks() -> None:
    made = drawn(published=[published("compiled", 12_000.0), published("eager", 3_000.0)])
    page = ladder_page(made, CLASSIFIER)
    (chart,) = charts(page, "Rungs")
    bars, marks = chart.figure["data"]
    assert bars["x"] == [2.0, 10.0, 9.0, 6.0, 1.5, 0.9, 0.1]
    assert list(zip(marks["y"], marks["x"], strict=True)) == [(0, 3.0), (1, 12.0)]
    (table,) = tables(page, "Rungs")
    assert [row[1] for row in table.rows] == [format_ns(ns) for ns in CALL.values()]
    assert table.rows[2][0] == "· · all guards filtered"
    # The time stands behind the mark, not on it.
    assert chart.figure["layout"]["annotations"][1]["x"] == 3.0


def test_without_layers_and_with_what_could_not_be_timed() -> None:
    page = ladder_page(
        drawn({"eager": 2_000.0}, names=["eager", "compiled"], reasons={"compiled": "no compiler"}), CLASSIFIER
    )
    assert headings(page) == ["Rungs", "Single steps"]
    assert page.answer == "1 of 2 rungs could be timed."
    assert words(page, "Rungs") == ["not done: torch.compile: no compiler"]
    assert len(charts(page, "Rungs")[0].figure["data"][0]["x"]) == 1
