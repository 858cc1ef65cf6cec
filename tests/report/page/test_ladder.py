"""The page of a ladder."""

from __future__ import annotations

import pytest

from overhead_lens.report.outline import Length, Table
from overhead_lens.report.outlines.ladder import ladder_outline
from overhead_lens.studies.ladder.analysis import LAYERS, Ladder, make_ladder
from overhead_lens.units import format_ns
from tests.drawn.ladders import META, frame, typed
from tests.report.page.seen import headings, rows, section, words

CALL = {"eager": 2_000.0, "compiled": 10_000.0, "guards_filtered": 9_000.0, "direct_bytecode": 6_000.0}
CALL |= {"generated_code": 1_500.0, "allocation_hoisted": 900.0, "kernel_binding": 100.0}


def drawn(call: dict[str, float] = CALL, **meta: object) -> Ladder:
    rungs = {name: [ns, ns, ns] for name, ns in call.items()}
    return make_ladder(typed({**META, "names": list(call), **meta}), frame(rungs), "folder")


def lengths(ladder: Ladder, heading: str) -> list[Length]:
    (table,) = [block for block in section(ladder_outline(ladder), heading).blocks if isinstance(block, Table)]
    return [row.cells[1].length for row in table.rows if row.cells[1].length is not None]


def test_the_waterfall_is_the_call_and_its_layers_which_begin_where_the_last_one_ended() -> None:
    bars = lengths(drawn(), "What the compiled call is made of")
    assert [round(bar.end, 2) for bar in bars] == [1.0, 0.9, 0.6, 0.15, 0.09, 0.01]
    assert [round(bar.start, 2) for bar in bars] == [0.9, 0.6, 0.15, 0.09, 0.01, 0.0]
    ((_, *layers),) = rows(ladder_outline(drawn()), "What the compiled call is made of")
    assert [row[1:3] for row in layers] == [
        *(["1.00 µs", "10.0%"], ["3.00 µs", "30.0%"], ["4.50 µs", "45.0%"]),
        *(["600 ns", "6.0%"], ["800 ns", "8.0%"], ["100 ns", "1.0%"], ["10.00 µs", ""]),
    ]


def test_whiskers_are_the_intervals_of_paired_differences() -> None:
    times = {
        upper: [ns, ns + 5_000.0, ns + 900.0]
        for ns, (_, upper, _) in zip((900.0, 800.0, 500.0, 300.0, 200.0, 50.0), LAYERS, strict=True)
    }
    made = make_ladder(typed({**META, "names": list(times)}), frame(times), "folder")
    *others, last = lengths(made, "What the compiled call is made of")
    assert all(bar.low == bar.high for bar in others)
    low, high = made.layers[-1].ci95_ns
    total = sum(layer.ns for layer in made.layers)
    assert (last.low, last.high) == (pytest.approx(low / total), pytest.approx(min(1.0, high / total)))


def test_every_rung_is_a_bar_and_a_row_with_its_figure() -> None:
    made = drawn()
    assert [round(10 * bar.end, 2) for bar in lengths(made, "Rungs")] == [2.0, 10.0, 9.0, 6.0, 1.5, 0.9, 0.1]
    ((heads, *rungs),) = rows(ladder_outline(made), "Rungs")
    assert heads == ["rung", "time", "step", "95 % interval", "x eager"]
    assert [row[1] for row in rungs] == [format_ns(ns) for ns in CALL.values()]
    assert [row[-1] for row in rungs[:3]] == ["1.00", "5.00", "4.50"]
    (table,) = [block for block in section(ladder_outline(made), "Rungs").blocks if isinstance(block, Table)]
    assert [row.depth for row in table.rows] == [0, 1, 2, 2, 3, 4, 5]


def test_without_layers_and_with_what_could_not_be_timed() -> None:
    page = ladder_outline(drawn({"eager": 2_000.0}, names=["eager", "compiled"], reasons={"compiled": "no compiler"}))
    assert headings(page)[:1] == ["Rungs"]
    assert page.sentence == "1 of 2 rungs could be timed."
    assert words(page, "Rungs") == ["not done: torch.compile: no compiler"]
