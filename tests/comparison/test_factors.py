"""Factors of a ratio: exact integers that sum to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.budget.model import Breakdown
from overhead_lens.comparison.difference import compare_budgets
from overhead_lens.comparison.factors import KERNEL_PARTS, Factor, Factors, describe_kernel, make_factors
from overhead_lens.errors import InvariantError
from overhead_lens.scenario import Work
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from tests.comparison.budgets import budget
from tests.comparison.layers import peaks, side, sides
from tests.drawn.peaks import peaks as drawn_peaks


def parts(found: Factors | None) -> dict[str, tuple[int, int]]:
    assert found is not None
    return {part.name: (part.base_ns, part.new_ns) for part in found.parts if part.base_ns or part.new_ns}


def test_factors_of_a_loop_and_one_batch() -> None:
    found = make_factors(*sides())
    assert parts(found) == {
        "python": (2_000, 100),
        "dispatcher": (1_000, 80),
        "allocation": (500, 20),
        "kernel: arithmetic": (40, 40),
        "kernel: on one thread": (10, 0),
        "kernel: re-reading shared data": (50, 0),
        "kernel: rest": (200, 10),
    }
    assert found is not None
    assert (found.delta_ns, found.units) == (-3_550, 10)
    python = found.parts[0]
    assert (found.share(python), found.ratio_without(python)) == (1_900 / 3_550, 1_900 / 250)
    assert [part.name for part in found.parts if part.estimate] == list(KERNEL_PARTS)
    turned = make_factors(*reversed(sides()))
    assert turned is not None
    assert turned.ratio_without(turned.parts[0]) == found.ratio_without(python)


def test_a_few_large_pieces_are_not_taken_to_run_on_one_thread() -> None:
    base, new = sides()
    found = parts(make_factors(replace(base, shared_reads=5.0), new))
    assert found["kernel: re-reading shared data"] == (10, 0)
    assert "kernel: on one thread" not in found


def test_what_the_kernels_achieved() -> None:
    found = make_factors(*sides())
    assert found is not None
    assert found.kernel is not None
    assert describe_kernel(found.kernel) == [
        (
            "estimate: 1.00 kB that all units share lie in L2, 100 GB/s measured there (one thread); a matrix-vector product"
            " alone reads 60.0 GB/s; arithmetic at the 100 GFLOP/s of a matrix product"
            " (80.0 GFLOP/s on one thread)"
        ),
        "kernel of base: shared data read 10 times at 33.3 GB/s (33% of that), 13.3 GFLOP/s (13% of that), 0.381 FLOP per byte",
        "kernel of new: shared data read once, 80.0 GFLOP/s (80% of that), 2.67 FLOP per byte",
    ]


def test_a_kernel_faster_than_its_cache_is_not_believed() -> None:
    found = make_factors(side("loop", 10.0, kernel=99), side("batched", 1.0, kernel=50))
    assert found is not None
    assert found.kernel is not None
    assert describe_kernel(found.kernel)[2] == (
        "kernel of base reads faster than L2 was measured: its share of the call is too small (see its interval), or the peak"
        " is; do not believe the split"
    )
    at_the_peak = make_factors(side("loop", 10.0, kernel=100), side("batched", 1.0, kernel=50))
    assert at_the_peak is not None
    assert at_the_peak.kernel is not None
    assert len(describe_kernel(at_the_peak.kernel)) == 3


def test_the_faster_of_two_measured_peaks_counts_for_both_sides() -> None:
    base, new = sides()
    found = make_factors(
        replace(base, peaks=drawn_peaks(peaks(5e10, 2e11))), replace(new, peaks=drawn_peaks(peaks(1e11, 1e11)))
    )
    assert found is not None
    assert [(each.base_ns, each.new_ns) for each in found.parts if each.estimate] == [
        (20, 20),
        (5, 0),
        (75, 0),
        (200, 30),
    ]


def test_a_kernel_faster_than_the_peaks_has_no_negative_part() -> None:
    base, new = side("loop", 10.0, kernel=70), side("batched", 1.0, kernel=30)
    found = parts(make_factors(base, new))
    assert found == {
        "kernel: arithmetic": (40, 30),
        "kernel: on one thread": (10, 0),
        "kernel: re-reading shared data": (20, 0),
    }


@pytest.mark.parametrize(
    "new",
    [
        side("batched", None, kernel=50),
        side("batched", 1.0, python=50),
        replace(side("batched", 1.0, kernel=50), peaks=None),
        replace(
            side("batched", 1.0, kernel=50),
            peaks=drawn_peaks({"copy": [{"bytes": 9, "bytes_per_s": 1e9}], "flops_per_s": 1e9}),
        ),
        replace(side("batched", 1.0, kernel=50), environment={"host": "another"}),
        replace(side("batched", 1.0, kernel=50), subject=Subject("scenario", "layer", "batched", device="cuda")),
    ],
    ids=["no trace", "no kernel", "no peaks", "old peaks", "another machine", "a device"],
)
def test_a_kernel_that_cannot_be_split_stays_whole(new: Breakdown) -> None:
    found = make_factors(sides()[0], new)
    assert found is not None
    assert found.kernel is None
    assert [part.name for part in found.parts] == list(HOST_CATEGORIES)


def test_work_that_shares_nothing_is_not_split() -> None:
    work = Work(units=10, flops=4_000, bytes=1_500)
    found = make_factors(side("loop", 10.0, work, kernel=300), side("batched", 1.0, work, kernel=50))
    assert parts(found) == {"kernel": (300, 50)}


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
RATES = st.floats(1e3, 1e15)


@given(
    base=HOST,
    new=HOST,
    reads=st.tuples(st.floats(1.0, 10.0), st.floats(1.0, 10.0)),
    rates=st.tuples(RATES, RATES, RATES, RATES),
)
def test_the_parts_always_sum(
    base: dict[str, int],
    new: dict[str, int],
    reads: tuple[float, float],
    rates: tuple[float, float, float, float],
) -> None:
    one_side = replace(side("loop", reads[0], **base), peaks=drawn_peaks(peaks(*rates[:2])))
    other = replace(side("batched", reads[1], **new), peaks=drawn_peaks(peaks(*rates[2:])))
    found = make_factors(one_side, other)
    assert found is not None
    assert sum(part.delta_ns for part in found.parts) == found.delta_ns == sum(new.values()) - sum(base.values())
    kernel = [part for part in found.parts if part.name.partition(":")[0] == "kernel"]
    assert sum(part.base_ns for part in kernel) == base["kernel"]
    assert sum(part.new_ns for part in kernel) == new["kernel"]
    assert all(min(part.base_ns, part.new_ns) >= 0 for part in found.parts)
    if found.delta_ns:
        assert sum(found.share(part) for part in found.parts) == pytest.approx(1.0)


def test_constructors_refuse_what_does_not_sum() -> None:
    pieces = (Factor("python", 10, 4), Factor("kernel", 5, 5))
    assert Factors(2, 15, 9, pieces, None).delta_ns == -6
    with pytest.raises(InvariantError, match="of the base do not sum"):
        Factors(2, 16, 9, pieces, None)
    with pytest.raises(InvariantError, match="of the new side do not sum"):
        Factors(2, 15, 8, pieces, None)
    with pytest.raises(InvariantError, match="0 units"):
        Factors(0, 15, 9, pieces, None)
    with pytest.raises(InvariantError, match="python is negative"):
        Factor("python", -1, 4)


def test_a_difference_holds_the_factors_and_only_its_own() -> None:
    base, new = sides()
    one, other = budget(python=3_800), budget(python=250)
    delta = compare_budgets(replace(one, breakdown=base), replace(other, breakdown=new))
    assert delta.factors == make_factors(base, new)
    with pytest.raises(InvariantError, match="factors do not sum to the wall's difference"):
        replace(delta, factors=Factors(10, 5, 5, (Factor("python", 5, 5),), None))
    assert compare_budgets(one, other).factors is None
