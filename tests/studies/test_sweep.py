"""Sweeps of drawn blocks: lines, intervals, crossings and what does not fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from overhead_lens.studies.sweep.analysis import Sweep, make_sweep
from overhead_lens.studies.sweep.stored import SWEEP, SweepMeta

SIZES = [100, 1_000, 10_000, 100_000]


def draw(
    sides: Mapping[str, Callable[[int], float]],
    sizes: list[int] = SIZES,
    noise: float = 0.0,
    per_process: float = 0.0,
    **meta: Any,
) -> Sweep:
    random = np.random.default_rng(0)
    rows = []
    for process in range(5):
        for variant, ns in sides.items():
            for point, size in enumerate(sizes):
                level = ns(size) * (1 + random.normal(0, per_process))
                for block in range(6):
                    wall_ns = 1_000 * level * (1 + random.normal(0, noise))
                    rows.append((process, variant, point, block, 1_000, round(wall_ns), 700_000))
    columns = ["process", "variant", "point", "block", "calls", "wall_ns", "reference_ns"]
    about = {
        "scenario": "drawn", "variants": list(sides), "compile": False, "device": "cpu", "swept": {"n": sizes},
        "points": [{"params": {"n": n, "dtype": "float32"}, "work": {}} for n in sizes],
        "against": {"name": "n", "sizes": sizes},
    }  # fmt: skip
    return make_sweep(typed({**about, **meta}), pd.DataFrame(rows, columns=columns), "folder")


def typed(meta: Mapping[str, Any]) -> SweepMeta:
    (upgrade,) = SWEEP.upgrades.values()
    return msgspec.convert(upgrade(meta), SweepMeta)


def test_lines_without_noise_are_exact_and_cross_where_they_should() -> None:
    sweep = draw({"slow_start": lambda n: 2_000 + n * 0.1, "slow_rate": lambda n: 200 + n})
    first, second = (variant.line for variant in sweep.variants)
    assert (first.overhead_ns, first.element_ns) == (pytest.approx(2_000, rel=1e-6), pytest.approx(0.1, rel=1e-6))
    assert (second.overhead_ns, second.element_ns) == (pytest.approx(200, rel=1e-6), pytest.approx(1.0, rel=1e-6))
    assert [variant.fit for variant in sweep.variants] == ["fits", "fits"]
    assert sweep.variants[0].overhead_ci95_ns == (pytest.approx(2_000), pytest.approx(2_000))
    (crossing,) = sweep.crossings
    assert (crossing.below, crossing.above, crossing.between) == ("slow_rate", "slow_start", (1_000, 10_000))
    assert crossing.size == pytest.approx(2_000, rel=1e-6)
    assert crossing.ci95 == (pytest.approx(2_000, rel=1e-6), pytest.approx(2_000, rel=1e-6))
    assert sweep.fastest == (("slow_rate",), ("slow_rate",), ("slow_start",), ("slow_start",))
    assert sweep.sentence == "Fastest: slow_rate at n = 100 to 1,000, slow_start at n = 10,000 to 100,000."
    assert sweep.subject.params == {"dtype": "float32"}


def test_sizes_in_any_order_give_the_same() -> None:
    ways = [draw({"a": lambda n: 500 + n}, sizes) for sizes in (SIZES, SIZES[::-1])]
    assert ways[0].variants == ways[1].variants


def test_noise_widens_the_intervals_and_they_hold_the_truth() -> None:
    sweep = draw({"a": lambda n: 2_000 + n * 0.1, "b": lambda n: 200 + n}, noise=0.01, per_process=0.02)
    low, high = sweep.variants[0].overhead_ci95_ns
    assert low < 2_000 < high
    assert 5 < high - low < 400
    low, high = sweep.variants[1].element_ci95_ns
    assert low < 1.0 < high
    (crossing,) = sweep.crossings
    assert crossing.ci95[0] < 2_000 < crossing.ci95[1]
    assert crossing.ci95[1] - crossing.ci95[0] < 400


def test_a_bent_curve_does_not_fit_and_says_where() -> None:
    # From 10,000 on the data leaves the cache.
    (variant,) = draw({"a": lambda n: 100 + n * (0.1 if n < 10_000 else 1.0)}).variants
    assert variant.fit == "does not fit"
    assert [point.size for point in variant.points if point.misses] == SIZES
    assert variant.points[1].residual_share > 0.1


def test_noise_beyond_the_tolerance_is_undecided_rather_than_a_fit() -> None:
    (variant,) = draw({"a": lambda n: 1_000 + n * (1.4 if n == 10_000 else 1.0)}, per_process=0.5).variants
    assert variant.fit == "undecided"


def test_two_sizes_check_nothing() -> None:
    assert draw({"a": lambda n: 100 + n}, [10, 20]).variants[0].fit == "not checked"


def test_lines_that_do_not_cross() -> None:
    sweep = draw({"slow": lambda n: 200 + 2 * n, "quick": lambda n: 100 + n})
    (crossing,) = sweep.crossings
    assert (crossing.below, crossing.above, crossing.size, crossing.ci95) == ("quick", "slow", None, None)
    assert sweep.sentence == "Fastest: quick at n = 100 to 100,000."


def test_an_order_that_changes_twice_is_between_no_two_sizes() -> None:
    sweep = draw({"a": lambda n: 100 + n, "b": lambda n: (100 + n) * (0.9 if n == 1_000 else 1.1)})
    assert sweep.crossings[0].between is None
    assert sweep.fastest == (("a",), ("b",), ("a",), ("a",))


def test_lines_alike_cross_anywhere() -> None:
    sweep = draw({"a": lambda n: 100 + n, "b": lambda n: 100.001 + 0.9999 * n}, per_process=0.03)
    (crossing,) = sweep.crossings
    assert crossing.ci95 == (0.0, math.inf)
    assert sweep.fastest == (("a", "b"),) * len(SIZES)
