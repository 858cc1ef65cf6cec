"""Three instruments on one category: comparable readings, and a verdict that uses their intervals."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from overhead_lens.budget.cross_checks import cross_checks
from overhead_lens.budget.model import CrossCheck, Reading
from overhead_lens.budget.trace import TraceBudget
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.host import HostCategory, Part
from overhead_lens.taxonomy.rules import Attribution

SPREAD_NS = 100.0


def host(evidence: str = "samples", **ns: int) -> list[HostCategory]:
    return [
        HostCategory(
            name,
            ns.get(name, 0),
            (ns[name] - SPREAD_NS, ns[name] + SPREAD_NS) if name in ns else (0.0, 30.0),
            0.1,
            evidence if name in ns else "none",
        )
        for name in HOST_CATEGORIES
    ]


def traced(guard_ns: float) -> TraceBudget:
    return TraceBudget({Attribution("guard"): guard_ns}, {}, 1e4, 1e4, 0.0, {"guard": 40.0}, frozenset(), 0.0)


def ablation(**ns: int) -> pd.DataFrame:
    """Blocks of rungs; processes differ by 1,000 ns, which pairing takes out."""
    rows = [
        {"process": process, "rung": rung, "block": block, "calls": 10, "wall_ns": 10 * (each + 1_000 * process)}
        for process in range(5)
        for rung, each in ns.items()
        for block in range(6)
    ]
    return pd.DataFrame(rows).assign(reference_ns=700, minor_faults=0)


RUNGS = {"compiled": 14_000, "guards_filtered": 12_500, "generated_code": 1_200, "allocation_hoisted": 600}


def by_category(checks: tuple[CrossCheck, ...]) -> dict[str, CrossCheck]:
    return {check.category: check for check in checks}


def test_all_instruments_agree() -> None:
    found = by_category(cross_checks(host(guard=2_600, allocation=650), 1_000, traced(1_450), ablation(**RUNGS)))
    assert found["guard"] == CrossCheck(
        "guard",
        Reading(1_600, (1_500, 1_700)),
        Reading(1_450, (1_410, 1_490)),
        Reading(1_500, (1_500, 1_500)),
        agree=False,
        bound="upper",
    )
    assert found["allocation"] == CrossCheck(
        "allocation", Reading(650, (550, 750)), None, Reading(600, (600, 600)), agree=True, bound="upper"
    )
    assert set(found) == {"guard", "allocation"}


@pytest.mark.parametrize(("trace_ns", "agree"), [(1_359, False), (1_360, True), (1_540, True), (1_541, False)])
def test_every_pair_must_meet(trace_ns: float, agree: bool) -> None:
    # By samples 1,400 to 1,600, without guards 1,500 less: no more than that.
    checks = by_category(cross_checks(host(guard=2_500), 1_000, traced(trace_ns), ablation(**RUNGS)))
    assert checks["guard"].agree is agree


@pytest.mark.parametrize(("kernel_ns", "agree"), [(150, True), (176, True), (177, False), (5, True)])
def test_kernels_called_alone_are_an_upper_bound(kernel_ns: int, agree: bool) -> None:
    rows = ablation(kernel_binding=76)
    rows["wall_ns"] -= rows["process"] * 10_000
    (check,) = cross_checks(host(kernel=kernel_ns), 0, None, rows)
    assert (check.category, check.ablation, check.agree) == ("kernel", Reading(76, (76, 76)), agree)
    assert check.bound == "upper"


def test_of_three_processes_the_interval_decides_and_not_their_range() -> None:
    rows = ablation(kernel_binding=1_000)
    rows["wall_ns"] += rows["process"] * (100 - 10_000)
    (check,) = cross_checks(host(kernel=1_140), 0, None, rows[rows["process"] < 3])
    assert check.ablation is not None
    assert (check.ablation.ns, check.ablation.has_level) == (1_010, True)
    assert check.ablation.ci95_ns == pytest.approx((968.7, 1_052.7), abs=0.1)
    assert check.agree


def test_kernels_wait_for_their_threads_alone_too() -> None:
    rows = ablation(kernel_binding=76)
    sides = [
        replace(each, parts=(Part("lock", 100), Part("parallel", 60))) if each.category == "wait" else each
        for each in host(wait=160, kernel=150)
    ]
    (check,) = cross_checks(sides, 0, None, rows)
    assert check.samples == Reading(210, (110, 310))


@pytest.mark.parametrize(
    ("kernel_ns", "faults_ns", "bound", "agree"),
    [
        (500, 50, "upper", False),
        (500, 51, "lower", True),
        (176, 400, "lower", True),
        (175, 400, "lower", False),
    ],
)
def test_kernels_that_fault_take_longer_than_alone(kernel_ns: int, faults_ns: int, bound: str, agree: bool) -> None:
    rows = ablation(kernel_binding=276)
    rows["wall_ns"] -= rows["process"] * 10_000
    sides = [
        replace(each, parts=(Part("storage", 600 - faults_ns), Part("page_fault", faults_ns)))
        if each.category == "allocation"
        else each
        for each in host(allocation=600, kernel=kernel_ns)
    ]
    (check,) = (each for each in cross_checks(sides, 0, None, rows) if each.category == "kernel")
    assert (check.bound, check.agree) == (bound, agree)


def test_a_category_that_was_never_sampled_still_has_a_bound() -> None:
    (check,) = cross_checks(host(python=9_000), 0, traced(1_450), None)
    assert check.samples == Reading(0, (0.0, 30.0))
    assert not check.agree


@pytest.mark.parametrize(("allocation_ns", "agree"), [(100, True), (700, True), (701, False)])
def test_the_allocator_called_from_python_is_an_upper_bound(allocation_ns: int, agree: bool) -> None:
    rows = ablation(generated_code=1_200, allocation_hoisted=600)
    (check,) = cross_checks(host(allocation=allocation_ns), 0, None, rows)
    assert (check.ablation, check.agree) == (Reading(600, (600, 600)), agree)


def test_one_instrument_checks_nothing() -> None:
    assert cross_checks(host(guard=2_000), 0, None, None) == ()
    assert cross_checks(host("trace", guard=2_000), 0, traced(2_000), ablation(**RUNGS)) == ()
    assert [check.category for check in cross_checks(host(guard=2_000), 0, traced(2_000), None)] == ["guard"]


def test_eager_operators_between_graphs_are_not_held_against_the_graphs_kernels() -> None:
    sides = host(guard=2_600, allocation=650, kernel=20_000)
    rungs = ablation(**RUNGS, kernel_binding=800)
    checked = [
        [each.category for each in cross_checks(sides, 1_000, None, rungs, is_one_graph=one)] for one in (True, False)
    ]
    assert checked == [["guard", "allocation", "kernel"], ["guard"]]
