"""Factors of a ratio: exact integers that sum to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.comparison.difference import compare_budgets
from overhead_lens.comparison.factors import Factor, Factors, make_factors
from overhead_lens.errors import InvariantError
from overhead_lens.scenario import Work
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from tests.comparison.budgets import budget
from tests.comparison.layers import side, sides


def parts(found: Factors | None) -> dict[str, tuple[int, int]]:
    assert found is not None
    return {part.name: (part.base_ns, part.new_ns) for part in found.parts if part.base_ns or part.new_ns}


def test_factors_of_a_loop_and_one_batch() -> None:
    found = make_factors(*sides())
    assert parts(found) == {
        "python": (2_000, 100),
        "dispatcher": (1_000, 80),
        "allocation": (500, 20),
        "kernel": (300, 50),
    }
    assert found is not None
    assert (found.delta_ns, found.units) == (-3_550, 10)
    python = found.parts[0]
    assert (python.share, python.ratio_without) == (1_900 / 3_550, 1_900 / 250)
    assert [part.name for part in found.parts] == list(HOST_CATEGORIES)
    turned = make_factors(*reversed(sides()))
    assert turned is not None
    assert turned.parts[0].ratio_without == python.ratio_without


@pytest.mark.parametrize(
    "changes",
    [
        {"subject": Subject("scenario", "other", "batched")},
        {"units": 20},
        {"work": Work(units=10, flops=1)},
        {"subject": Subject("scenario", "layer", "loop")},
    ],
    ids=["another scenario", "other units", "other work", "the same variant"],
)
def test_no_factors_of_what_is_not_two_variants(changes: dict[str, Any]) -> None:
    base, new = sides()
    assert make_factors(base, replace(new, **changes)) is None


def test_no_factors_of_single_units() -> None:
    base, new = sides()
    assert make_factors(replace(base, units=1), replace(new, units=1)) is None


HOST = st.fixed_dictionaries({name: st.integers(0, 10**9) for name in HOST_CATEGORIES})


@given(base=HOST, new=HOST)
def test_the_parts_always_sum(base: dict[str, int], new: dict[str, int]) -> None:
    found = make_factors(side("loop", **base), side("batched", **new))
    assert found is not None
    assert sum(part.delta_ns for part in found.parts) == found.delta_ns == sum(new.values()) - sum(base.values())
    if found.delta_ns:
        assert sum(part.share for part in found.parts) == pytest.approx(1.0)


def test_constructors_refuse_what_does_not_sum() -> None:
    pieces = (Factor("python", 10, 4, -3.0, 1.0, 1.0), Factor("kernel", 5, 5, 0.0, 0.0, 15 / 9))
    assert Factors(2, 15, 9, pieces).delta_ns == -6
    with pytest.raises(InvariantError, match="of the base do not sum"):
        Factors(2, 16, 9, pieces)
    with pytest.raises(InvariantError, match="of the new side do not sum"):
        Factors(2, 15, 8, pieces)
    with pytest.raises(InvariantError, match="0 units"):
        Factors(0, 15, 9, pieces)
    with pytest.raises(InvariantError, match="python is negative"):
        Factor("python", -1, 4, 2.5, 1.0, None)


def test_a_difference_holds_the_factors_and_only_its_own() -> None:
    base, new = sides()
    one, other = budget(python=3_800), budget(python=250)
    delta = compare_budgets(replace(one, breakdown=base), replace(other, breakdown=new))
    assert delta.factors == make_factors(base, new)
    with pytest.raises(InvariantError, match="factors do not sum to the wall's difference"):
        replace(delta, factors=Factors(10, 5, 5, (Factor("python", 5, 5, 0.0, 0.0, 1.0),)))
    assert compare_budgets(one, other).factors is None
