"""``scripts/reproduce.py``: ratios, fits and the text made of them; nothing is measured."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.stats.line_fit import Line, crossing, fit_line
from scripts.reproduction import add1, document, outcomes, peers, storing, sums, wording
from scripts.reproduction.measuring import from_budget
from scripts.reproduction.outcomes import Measured, Part, Unit

SLOW = Measured(8_000.0, 7_000.0, 9_000.0, 4, {"python": 5_000.0, "guard": 1_000.0, "kernel": 2_000.0})
FAST = Measured(2_000.0, 1_900.0, 2_100.0, 4, {"python": 900.0, "dispatcher": 100.0, "kernel": 1_000.0})

times = st.floats(1.0, 1e10)
shares = st.floats(0.0, 0.5)


@st.composite
def measured(draw: st.DrawFn) -> Measured:
    ns = draw(times)
    return Measured(ns, ns * (1 - draw(shares)), ns * (1 + draw(shares)), 4)


@given(measured(), measured())
def test_a_ratio_lies_in_its_interval_which_is_that_of_the_inverse_turned_over(top: Measured, bottom: Measured) -> None:
    forth, back = outcomes.ratio(top, bottom), outcomes.ratio(bottom, top)
    assert forth.value == top.ns / bottom.ns
    assert forth.low <= forth.value <= forth.high
    assert back.low == pytest.approx(1 / forth.high)
    assert back.high == pytest.approx(1 / forth.low)
    # Never wider than both intervals at their worst, never narrower than one of them.
    assert forth.low >= top.low_ns / bottom.high_ns * (1 - 1e-9)
    assert forth.high <= top.high_ns / bottom.low_ns * (1 + 1e-9)
    assert forth.high >= top.high_ns / bottom.ns * (1 - 1e-9)


def test_an_exact_divisor_leaves_the_interval_of_the_other() -> None:
    exact = Measured(1_000.0, 1_000.0, 1_000.0, 4)
    assert str(outcomes.ratio(SLOW, exact)) == "8.00x (7.00x .. 9.00x)"


def test_a_bound_of_zero_leaves_a_bound_open() -> None:
    anything = Measured(1_000.0, 0.0, 1_000.0, 4)
    assert str(outcomes.ratio(SLOW, anything)) == "8.00x (7.00x .. any)"
    assert str(outcomes.ratio(anything, SLOW)) == "0.125x (0.00x .. 0.143x)"


def budget(trace_sum_ns: float | None, bare_ns: float | None, residual: float | None) -> dict[str, Any]:
    return {
        "wall": {"ns": 2_000, "ci95_ns": [1_800, 2_400], "processes": 5},
        "host": [
            {
                "category": "python",
                "ns": 2_000,
                "parts": [{"name": "user", "ns": 500}, {"name": "binding", "ns": 1_500}],
            }
        ],
        "closure": {"trace_sum_ns": trace_sum_ns, "trace_bare_ns": bare_ns, "trace_residual_share": residual},
    }


def test_a_trace_is_held_against_the_bare_call_of_its_own_process() -> None:
    traced = from_budget(budget(1_050.0, 1_000.0, -0.475))
    assert traced == {
        "ns": 2_000,
        "low_ns": 1_800,
        "high_ns": 2_400,
        "processes": 5,
        "host_ns": {"python": 2_000, "python/user": 500, "python/binding": 1_500},
        "trace_residual_share": -0.475,
        "trace_bare_share": 0.05,
    }
    profiled = {
        "high": Measured(**traced),
        "without": Measured(**from_budget(budget(None, None, None))),
        "low": Measured(**from_budget(budget(980.0, 1_000.0, -0.51))),
    }
    _, _, *rows, blank, sentence, _ = peers.render_residuals(profiled)
    assert rows == ["| low | -2.0% | -51.0% | -10.0% .. +20.0% |", "| high | +5.0% | -47.5% | -10.0% .. +20.0% |"]
    assert blank == ""
    assert (
        "here -2.0% .. +5.0% of the bare call in the trace's process over 2 calls, half of them within 3.5%."
        in sentence
    )
    assert peers.render_residuals({"without": profiled["without"]}) == []


def test_an_interval_without_its_estimate_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^an interval contains its estimate: 2\.0 1\.0 3\.0$"):
        Measured(1.0, 2.0, 3.0, 4)


@given(st.integers(0, 10**6), st.integers(1, 1_000), st.sets(st.integers(1, 10**6), min_size=2, max_size=6))
def test_points_of_a_line_give_the_line(overhead_ns: int, element_ns: int, sizes: set[int]) -> None:
    line = fit_line([(n, overhead_ns + n * element_ns) for n in sizes])
    assert line.worst_share < 1e-3
    for n in sizes:
        assert line.overhead_ns + n * line.element_ns == pytest.approx(overhead_ns + n * element_ns, rel=1e-3)


def test_an_overhead_below_zero_is_zero() -> None:
    line = fit_line([(10, 5.0), (20, 20.0)])
    assert line.overhead_ns == 0.0
    assert line.element_ns == pytest.approx(0.6)
    assert line.worst_share == pytest.approx(0.4)


@given(times, times, st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_lines_take_the_same_time_where_they_cross(a: float, b: float, left_ns: float, right_ns: float) -> None:
    left, right = Line(a, left_ns, 0.0), Line(b, right_ns, 0.0)
    n = crossing(left, right)
    assert n == crossing(right, left)
    if n is None:
        assert (a - b) * (left_ns - right_ns) >= 0
    else:
        assert a + n * left_ns == pytest.approx(b + n * right_ns)


@pytest.mark.parametrize(
    ("ns", "row"),
    [
        (12_480.0, ["eager", "post", "24.40 µs", "12.48 µs (12.41 µs .. 12.55 µs)", "0.511x"]),
        (None, ["eager", "post", "24.40 µs", "not measured: no compiler", ""]),
    ],
)
def test_a_row_of_times(ns: float | None, row: list[str]) -> None:
    outcome = "no compiler" if ns is None else Measured(ns, 12_410.0, 12_550.0, 5)
    assert wording.time_row("eager", "post", 24_400.0, outcome) == row


def test_a_disturbed_figure_says_so() -> None:
    wild = Measured(2_000.0, 1_000.0, 2_001.0, 4)
    assert not outcomes.is_sound(wild)
    assert outcomes.is_sound(Measured(2_000.0, 1_000.0, 2_000.0, 4))
    assert wording.here(wild) == "2.00 µs (1.00 µs .. 2.00 µs) disturbed"
    assert wording.ratio_row("b over a", "forum", 2.0, SLOW, wild)[3:] == [
        "4.00x (3.50x .. 8.08x) disturbed",
        "2.00x",
    ]


def test_a_row_of_ratios() -> None:
    assert wording.ratio_row("b over a", "forum", 77.0, SLOW, FAST) == [
        "b over a", "forum", "77.0x", "4.00x (3.47x .. 4.55x)", "0.0519x",
    ]  # fmt: skip
    assert wording.ratio_row("b over a", "forum", 77.0, SLOW, "no memory") == [
        "b over a", "forum", "77.0x", "not measured: no memory", "",
    ]  # fmt: skip


def test_a_table_keeps_bars_out_of_cells() -> None:
    assert wording.table(("a", "b"), [("1|2", "3")]) == ["| a | b |", "| --- | --- |", "| 1/2 | 3 |", ""]


def test_sentences() -> None:
    assert wording.budget_sentence("`loop`", SLOW) == ["`loop` (8.00 µs): python 62%, kernel 25%, guard 12%."]
    assert wording.difference_sentence("eager", FAST, "compiled", SLOW) == [
        "compiled takes 6.00 µs more than eager: python +4.10 µs, kernel +1.00 µs, guard +1.00 µs."
    ]
    assert wording.difference_sentence("compiled", SLOW, "eager", FAST) == [
        "eager takes 6.00 µs less than compiled: python −4.10 µs, kernel −1.00 µs, guard −1.00 µs."
    ]
    said = wording.kernel_sentence("loop", SLOW, "batched", FAST)
    assert said == [
        (
            "The kernels of batched alone are 2.00x as fast as those of loop; outside kernels lie 75% of loop and "
            "50% of batched, which together make it 4.00x."
        )
    ]
    assert wording.kernel_rate_sentence(4_000, {"loop": SLOW, "batched": FAST, "other": "no compiler"}) == [
        "While a kernel runs, it does 2 GFLOP/s in loop, 4 GFLOP/s in batched."
    ]
    assert wording.bandwidth_sentence(
        16_000, {"rows": 1_000.0, "cols": 2_000.0}, {"rows": FAST, "cols": "no memory"}
    ) == ["Reading 1.6e-05 GB: rows 16 GB/s published, 8 GB/s here."]
    bare = Measured(8_000.0, 7_000.0, 9_000.0, 4)
    assert wording.budget_sentence("`loop`", bare) == []
    assert wording.difference_sentence("eager", "no compiler", "compiled", SLOW) == []
    assert wording.kernel_sentence("loop", SLOW, "batched", bare) == []


def test_fits_and_their_crossing() -> None:
    theirs = {"torch": [(100, 1_100.0), (10_000, 11_000.0)], "numpy": [(100, 300.0), (10_000, 20_100.0)]}
    ours = {"torch": [(100, 600.0), (10_000, 5_550.0)], "numpy": [(100, 300.0), (10_000, 20_100.0)]}
    assert sums.lines_of_fits(theirs, ours)[2:4] == [
        "| torch | 1.00 µs | 550 ns | 1 | 2 | 2.00x | 0% | 0% |",
        "| numpy | 100 ns | 100 ns | 0.5 | 0.5 | 1.00x | 0% | 0% |",
    ]
    text = "\n".join(sums.lines_of_fits(theirs, ours))
    assert "| torch, numpy | 900 | 300 |" in text


def test_the_fastest_are_those_whose_intervals_meet() -> None:
    found = {
        ("torch", 10): SLOW,
        ("numpy", 10): Measured(9_500.0, 8_900.0, 9_900.0, 4),
        ("numba", 10): "no compiler",
    }
    assert sums.fastest_at(10, found) == "torch, numpy"
    assert sums.fastest_at(10, {**found, ("python", 10): FAST}) == "python"
    assert sums.fastest_at(20, found) == outcomes.NOT_YET


@pytest.mark.parametrize(
    ("rung", "cells"),
    [
        ({"ns": 11_200.0, "ci95_ns": [11_000.0, 11_500.0], "reason": None, "published_us": 8.0},
         ["8.00 µs", "11.20 µs (11.00 µs .. 11.50 µs)", "1.40x"]),
        ({"ns": 66.0, "ci95_ns": None, "reason": None, "published_us": None}, ["", "66 ns (66 ns .. 66 ns)", ""]),
        ({"ns": None, "ci95_ns": None, "reason": "no compiler", "published_us": 8.6},
         ["8.60 µs", "not measured: no compiler", ""]),
    ],
)  # fmt: skip
def test_a_rung(rung: dict, cells: list[str]) -> None:
    row = add1.rung_row({"name": "guards", "title": "no guards", **rung})
    assert (row[0], row[2:]) == ("no guards", cells)


def test_a_unit_is_measured_once_unless_it_failed(tmp_path: Path) -> None:
    answers = iter([{"a": "no compiler"}, {"a": {"ns": 2.0, "low_ns": 1.0, "high_ns": 3.0, "processes": 4}}])
    part = Part(
        "add1", "title", (Unit("eager", lambda _: next(answers)), Unit("other", lambda _: {"b": "x"})), lambda _: []
    )
    options = argparse.Namespace(folder=tmp_path, only=["add1.eager"])
    seen = []
    for _ in range(3):
        storing.measure_missing(part, options)
        seen.append(storing.read_stored(part, tmp_path).outcomes)
    assert seen == [
        {"eager/a": "no compiler"},
        {"eager/a": Measured(2.0, 1.0, 3.0, 4)},
        {"eager/a": Measured(2.0, 1.0, 3.0, 4)},
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["add1.eager.json"]
    assert json.loads((tmp_path / "add1.eager.json").read_text())["machine"]


def test_a_document_of_nothing_says_so_in_every_table() -> None:
    text = document.document_text({part.name: storing.Stored({}, frozenset()) for part in document.PARTS})
    assert text.count("\n## ") == len(document.PARTS)
    for section in text.split("\n## ")[1:]:
        assert outcomes.NOT_YET in section
    assert (
        "| compiled, before the changes | Micro-optimizations for the most micro of benchmarks; i9-11900K, 1 element"
        in text
    )
