from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.analysis.breakdown import Budget
from overhead_lens.categories import HOST_CATEGORIES
from overhead_lens.compare.difference import compare_budgets, differences
from tests.builders import breakdown


def budget(spread: float = 0.0, /, **host_ns: int) -> Budget:
    """A budget whose replicates are normal about the estimate with relative standard deviation ``spread``."""
    made = breakdown(**host_ns)
    random = np.random.default_rng(sum(host_ns.values()))
    host = np.array([each.ns for each in made.host]) * random.normal(1.0, spread, (2_000, 1))
    frames = {name: {f"{name}_frame": float(ns)} for name, ns in host_ns.items()}
    return Budget(made, host.sum(axis=1), host, frames)


def test_slower_and_who_is_to_blame() -> None:
    delta = compare_budgets(
        budget(0.001, python=1_000, allocation=1_000, kernel=100),
        budget(0.001, python=1_100, allocation=4_000, kernel=100),
    )
    assert (delta.verdict, delta.wall_delta_ns, delta.blame) == ("slower", 3_100, ("allocation", "python"))
    assert delta.sentence == "3.10 µs slower: allocation +3.00 µs, python +100 ns"
    assert [(move.name, move.delta_ns) for move in delta.host[HOST_CATEGORIES.index("allocation")].moved] == [
        ("allocation_frame", 3_000)
    ]


@pytest.mark.parametrize(
    ("base", "new", "verdict"),
    [
        (budget(0.001, python=1_000), budget(0.001, python=1_000), "same"),
        (budget(0.001, python=1_000), budget(0.001, python=1_005), "same"),
        (budget(0.0001, python=10_000), budget(0.0001, python=10_050), "same"),
        (budget(0.001, python=1_000), budget(0.001, python=900), "faster"),
        (budget(0.2, python=1_000), budget(0.2, python=1_100), "inconclusive"),
        (budget(0.2, python=1_000), budget(0.2, python=1_000), "inconclusive"),
    ],
)
def test_verdicts(base: Budget, new: Budget, verdict: str) -> None:
    delta = compare_budgets(base, new)
    assert delta.verdict == verdict
    assert bool(delta.blame) == (verdict == "faster")


SIZES = st.fixed_dictionaries({name: st.integers(0, 10_000) for name in HOST_CATEGORIES})


@settings(deadline=None, max_examples=40)
@given(base=SIZES, new=SIZES, spread=st.sampled_from([0.0, 0.01, 0.3]))
def test_the_categories_account_for_the_whole_difference(
    base: dict[str, int], new: dict[str, int], spread: float
) -> None:
    delta = compare_budgets(budget(spread, **base), budget(spread, **new))
    assert (
        sum(change.delta_ns for change in delta.host) == delta.wall_delta_ns == sum(new.values()) - sum(base.values())
    )
    for change in delta.host:
        assert change.ci95_ns[0] <= change.delta_ns <= change.ci95_ns[1]


def test_what_makes_captures_incomparable() -> None:
    base = {
        "scenario": "add1",
        "params": {"size": 10},
        "device": "cpu",
        "environment": {"torch": "2.13.0", "host": "a"},
    }
    assert differences(base, base) == []
    other = {**base, "params": {"size": 20}, "environment": {"torch": "2.14.0", "host": "a"}}
    assert differences(base, other) == ["params: {'size': 10} against {'size': 20}", "torch: '2.13.0' against '2.14.0'"]
