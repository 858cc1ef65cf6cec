"""``scripts/reproduction``: ratios and the tables made of them; nothing is measured."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.scenario import make_params
from overhead_lens.target import parse_target
from overhead_lens.worker.load import load_scenario
from scripts.reproduction import add1, loops, outcomes, storing, tables
from scripts.reproduction.measuring import from_budget
from scripts.reproduction.outcomes import Measured, Part, RatioRow, TimeRow, Unit
from scripts.reproduction.published import figures, published_of
from scripts.results import Origin

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
    found = outcomes.ratio(SLOW, exact)
    assert [found.value, found.low, found.high] == pytest.approx([8.0, 7.0, 9.0])


def test_a_bound_of_zero_leaves_a_bound_open() -> None:
    anything = Measured(1_000.0, 0.0, 1_000.0, 4)
    found = outcomes.ratio(SLOW, anything)
    assert [found.value, found.low, found.high] == pytest.approx([8.0, 7.0, math.inf])
    found = outcomes.ratio(anything, SLOW)
    assert [found.value, found.low, found.high] == pytest.approx([0.125, 0.0, 1 / 7])


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
        "unit/high": Measured(**traced),
        "unit/without": Measured(**from_budget(budget(None, None, None))),
        "unit/low": Measured(**from_budget(budget(980.0, 1_000.0, -0.51))),
    }
    assert tables.trace_rows("drawn", profiled) == [
        ["drawn", "high", 0.05, -0.475, -0.1, 0.2],
        ["drawn", "low", -0.02, -0.51, -0.1, 0.2],
    ]
    assert tables.trace_rows("drawn", {"unit/without": profiled["unit/without"]}) == []


def test_a_budget_is_a_row_of_all_categories() -> None:
    assert tables.budget_rows(
        "drawn", {"unit/slow": SLOW, "unit/bare": Measured(1.0, 1.0, 1.0, 4), "unit/no": "x"}
    ) == [["drawn", "slow", 8_000.0, 5_000.0, 1_000.0, 0.0, 0.0, 2_000.0, 0.0, 0.0, 0.0, 0.0]]


def test_an_interval_without_its_estimate_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^an interval contains its estimate: 2\.0 1\.0 3\.0$"):
        Measured(1.0, 2.0, 3.0, 4)


@pytest.mark.parametrize(
    ("ns", "row"),
    [
        (12_480.0, ["add1", "eager", "post", 24_400.0, 12_480.0, 12_410.0, 12_550.0, 0.511, None]),
        (None, ["add1", "eager", "post", 24_400.0, None, None, None, None, "no compiler"]),
    ],
)
def test_a_row_of_times(ns: float | None, row: list[Any]) -> None:
    outcome = "no compiler" if ns is None else Measured(ns, 12_410.0, 12_550.0, 5)
    assert tables.time_row("add1", TimeRow("eager", "post", 24_400.0, "eager"), {"eager/eager": outcome}) == row


def test_a_disturbed_figure_says_so() -> None:
    wild = Measured(2_000.0, 1_000.0, 2_001.0, 4)
    found = {"loop/slow": SLOW, "loop/wild": wild}
    assert not Measured(2_000.0, 1_000.0, 2_000.0, 4).is_disturbed
    assert tables.time_row("add1", TimeRow("eager", "post", None, "loop/wild"), found)[3:] == [
        None, 2_000.0, 1_000.0, 2_001.0, None, "disturbed",
    ]  # fmt: skip
    row = RatioRow("b over a", "forum", 2.0, "loop/slow", "loop/wild")
    assert tables.ratio_row("add1", row, found)[3:] == [
        2.0, 4.0, 3.5, 8.08, 2.0, "disturbed",
    ]  # fmt: skip


def test_a_row_of_ratios() -> None:
    row = RatioRow("b over a", "forum", 77.0, "loop", "fast")
    assert tables.ratio_row("loop", row, {"loop/loop": SLOW, "fast/fast": FAST}) == [
        "loop", "b over a", "forum", 77.0, 4.0, 3.47, 4.55, 0.0519, None,
    ]  # fmt: skip
    assert tables.ratio_row("loop", row, {"loop/loop": SLOW, "fast/fast": "no memory"}) == [
        "loop", "b over a", "forum", 77.0, None, None, None, None, "no memory",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "rung", "cells"),
    [
        ("guards_filtered", {"ns": 11_200.0, "ci95_ns": [11_000.0, 11_500.0], "reason": None},
         ["all guards filtered", 8_000, 11_200.0, 11_000.0, 11_500.0, 1.4, None]),
        ("kernel_binding", {"ns": 66.0, "ci95_ns": [66.0, 66.0], "reason": None},
         ["kernels alone, generated binding", None, 66.0, 66.0, 66.0, None, None]),
        ("cpp_wrapper_guards_filtered", {"ns": None, "ci95_ns": None, "reason": "no compiler"},
         ["and all guards filtered", 8_600, None, None, None, None, "no compiler"]),
    ],
)  # fmt: skip
def test_a_rung(
    name: str, rung: dict[str, Any], cells: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(add1, "run_tool", lambda _: {"rungs": [{"name": name, **rung}]})
    (part,) = (part for part in tables.PARTS if part.name == "rungs")
    storing.measure_missing(part, argparse.Namespace(folder=tmp_path, only=[]))
    row = tables.time_row("rungs", add1.rung_row(name), storing.read_stored(part, tmp_path).outcomes)
    assert [row[1], *row[3:]] == cells


def test_a_ladder_that_fails_says_so_of_every_rung(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(add1, "run_tool", lambda _: "no compiler")
    assert set(add1.measure_ladder(argparse.Namespace()).values()) == {"no compiler"}


def test_a_unit_is_measured_once_unless_it_failed(tmp_path: Path) -> None:
    answers = iter([{"a": "no compiler"}, {"a": {"ns": 2.0, "low_ns": 1.0, "high_ns": 3.0, "processes": 4}}])
    part = Part("add1", (Unit("eager", lambda _: next(answers)), Unit("other", lambda _: {"b": "x"})))
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
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json")] == ["add1/eager.json"]
    assert json.loads((tmp_path / "add1" / "eager.json").read_text())["machine"]


def test_tables_of_nothing_say_so_in_every_row() -> None:
    origin = Origin(measured_on="2026-11-22", machine="AMD EPYC, 2 cores", torch="2.13.0", python="3.11.7")
    stored = {part.name: storing.Stored({}, frozenset({origin})) for part in tables.PARTS}
    found = {result.claim: result for result in tables.results_of(stored)}
    assert {row[-1] for name in ("published-times", "published-ratios") for row in found[name].rows} == {
        outcomes.NOT_YET
    }
    assert found["published-budgets"].rows == found["published-traces"].rows == ()
    labels = {(row[1], row[2]) for row in found["published-times"].rows}
    assert ("compiled, before the changes", published_of("add1", compile=True)[0].source) in labels
    assert {result.measured_on for result in found.values()} == {"2026-11-22"}
    assert list(tables.results_of({part.name: storing.Stored({}, frozenset()) for part in tables.PARTS})) == []


def test_every_published_figure_is_of_a_call_that_there_is() -> None:
    for name in ("add1", "sum_elements", "row_col_sum", "gelu", "split_stack", add1.INFERENCE):
        scenario = load_scenario(parse_target(name))
        found = figures(scenario.name)
        assert found, name
        for figure in found:
            assert figure.label and figure.source and figure.ns > 0  # noqa: PT018
            assert figure.variant in scenario.variants
            make_params(scenario, figure.params)


def test_the_kernels_of_the_loop_are_split_by_the_peaks() -> None:
    def measured(ns: float, kernel_ns: float = 0.0) -> Measured:
        return Measured(ns, ns, ns, 4, {"kernel": kernel_ns})

    share = (loops.SIZE**3) / loops.FEATURES**2
    rates = {"product": 100.0 * share, "product_one_thread": 150.0 * share, "read": 200.0 * loops.PASSES}
    found = {
        "kernel/loop": measured(1e9, 300.0 * loops.VECTORS),
        "kernel/batched": measured(1e9, 110.0 * loops.VECTORS),
    }
    assert loops.kernel_notes(found) == []
    disturbed = Measured(9.0, 4.0, 9.0, 4, {"kernel": 1.0})
    assert (
        loops.kernel_notes({**found, "kernel/loop": disturbed, **{f"kernel/{name}": measured(1.0) for name in rates}})
        == []
    )
    loop, batched = loops.kernel_notes({**found, **{f"kernel/{name}": measured(ns) for name, ns in rates.items()}})
    assert loop == (
        "The kernels of loop take 300 ns a vector (436.9 GFLOP/s): 100 ns arithmetic at the rate of a large product, "
        "50 ns more on one thread, 50 ns more for reading the weight again, 100 ns the rest."
    )
    assert batched == (
        "The kernels of batched take 110 ns a vector (1191.6 GFLOP/s): 100 ns arithmetic at the rate of a large product, "
        "10 ns the rest."
    )
