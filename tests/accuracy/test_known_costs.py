"""A cost of 100 us in a known place outweighs all else in the call: its category must hold it, by real samples."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from typing import Any

import pytest

from overhead_lens.budget.shares import shares_of_stacks
from overhead_lens.errors import MeasurementError
from overhead_lens.taxonomy.classifier import default_classifier
from scripts.validation.known_costs.bench import Readings, warmed_up
from scripts.validation.known_costs.judging import budget_of
from scripts.validation.known_costs.sites import RULES, SITES

pytestmark = pytest.mark.measures

COST_NS = 100_000
ATTEMPTS = 3
SAMPLES = 120
# Where 20 samples of the cost are expected, more than half come in 99 of 100 cases (Poisson).
FEWEST_EXPECTED = 20

NATIVE = ["allocation, eager", "dispatch, eager", "kernel, eager", "binding, eager"]
PYTHON = ["user_code, eager", "library_code, eager"]
COMPILED = ["lambda_guard, compiled", "many_guards, compiled", "recompile, compiled"]
THREADS = ["kernel, two threads", "user_code, two threads", "compiled, two threads"]

SITE = {site.name: site for site in SITES}


def require_laboratory() -> None:
    if sys.platform != "linux":
        pytest.skip("the laboratory needs Linux: py-spy's native frames, shared memory")
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("the laboratory spins on the time-stamp counter of x86")
    if not any(map(shutil.which, filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")))):
        pytest.skip("no C++ compiler: the laboratory's extension and torch.compile need one")
    if shutil.which("ninja") is None:
        pytest.skip("no ninja: torch.utils.cpp_extension needs it to build the laboratory's extension")


def sample(bench: Any, cost_ns: int) -> list[Any]:
    """Stacks of the call; taken again where the sampler came too late for the first second's."""
    for _ in range(ATTEMPTS):
        try:
            (stacks,) = bench.sample([0], cost_ns, SAMPLES)
        except MeasurementError as error:
            if "no permission" in str(error) or "not installed" in str(error):
                pytest.skip(str(error))
            if "no samples" not in str(error):
                raise
        else:
            if stacks:
                return stacks
    pytest.fail(f"no stack of the call in {ATTEMPTS} attempts")


@pytest.mark.parametrize("name", [*NATIVE, *PYTHON, *COMPILED, *THREADS])
def test_the_right_category_holds_the_cost(name: str) -> None:
    require_laboratory()
    site = SITE[name]
    # A second holds few events: calls that cost more need fewer between two of them.
    cost_ns = site.most_ns if site.event_ns else COST_NS
    with warmed_up(site, 1) as bench:
        bench.time_block(0, cost_ns)
        rows = [bench.time_block(0, cost_ns)]
        stacks = sample(bench, cost_ns)
        rows.append(bench.time_block(0, cost_ns))
    shares = shares_of_stacks([stacks], default_classifier(RULES))
    held = {attribution.category: shares.share(attribution.category) for attribution in shares.attributions}
    # While another program has a core, threads wait for each other, and the call takes longer by more than the cost.
    call_ns = max(row["wall_ns"] / row["calls"] for row in rows)
    expected, holds = shares.weight * cost_ns / call_ns, held.get(site.category, 0.0) > 0.5 * cost_ns / call_ns
    if not holds and expected < FEWEST_EXPECTED:
        pytest.skip(
            f"the cores are taken: threads wait for each other, and {expected:.1f} samples of the cost are expected"
        )
    assert holds, (held, rows)


def test_page_faults_are_allocation() -> None:
    """A stack cannot show a fault: the budget takes it from the system time that the clock's rows hold."""
    require_laboratory()
    site = SITE["page_fault, eager"]
    with warmed_up(site, 1) as bench:
        rows = bench.time(0, [COST_NS], range(10))[COST_NS]
        readings = Readings(rows, [sample(bench, COST_NS)], [bench.measure_page_faults(0)])
        budget = budget_of(site, readings, bench.meta, default_classifier(RULES))
    host = {each.category: each for each in budget.breakdown.host}
    assert host["allocation"].share > 0.5, budget.breakdown
    assert {part.name: part.ns for part in host["allocation"].parts}["page_fault"] > 0
