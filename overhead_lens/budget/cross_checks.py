"""What independent instruments say of the same category: samples, the corrected trace, and the call with the thing left out.

Readings are made comparable first, or are known to err in one way:

- ``guard``: the trace's event begins after the backend match, and filtering guards leaves it in: it is taken out of the samples.
  Without guards other functions of the call are faster, too: that reading is an upper bound (docs/methodology/cross-checks.md).
- ``allocation``: leaving it out means that the generated code's buffers are kept from call to call, which leaves out Python's
  call of the allocator as well (some 150 ns each, ``python`` in the budget): that reading is an upper bound.
- ``kernel``: kernels called alone still cross the binding, so that is one too. But they write to memory that
  is there: where the call's own touch fresh pages, they take longer by more than the faults are given, and it is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from overhead_lens.budget.model import Bound, CrossCheck, Reading
from overhead_lens.budget.shares import PAGE_FAULT
from overhead_lens.budget.trace import TraceBudget
from overhead_lens.budget.wall import undisturbed
from overhead_lens.stats.bootstrap import PairedSides, paired_sides
from overhead_lens.stats.values import Interval
from overhead_lens.taxonomy.host import HostCategory

# Page faults of so much of the kernels' time slow them down.
_FAULTS_THAT_MATTER = 0.1


def cross_checks(
    host: Sequence[HostCategory], backend_match_ns: float, traced: TraceBudget | None, ablation: pd.DataFrame | None
) -> tuple[CrossCheck, ...]:
    """The checks that at least two instruments can make.

    Args:
        host: The budget, from samples.
        backend_match_ns: Sampled time of the backend match, ns per call.
        traced: The trace's budget; None without one.
        ablation: Blocks of the rungs that the recorder times for checks; None without them.
    """
    by_name = {each.category: each for each in host}
    if not any(each.evidence == "samples" for each in host):
        return ()
    walls = None if ablation is None or ablation.empty else paired_sides(undisturbed(ablation, ("process", "rung")))
    checks = (
        _check(
            "guard",
            _sampled(by_name["guard"], backend_match_ns),
            _traced("guard", traced),
            _step(walls, "compiled", "guards_filtered"),
            "upper",
        ),
        _check(
            "allocation",
            _sampled(by_name["allocation"]),
            None,
            _step(walls, "generated_code", "allocation_hoisted"),
            "upper",
        ),
        _check("kernel", _sampled(by_name["kernel"]), None, _kernel(walls), _bound_of_kernels(by_name)),
    )
    return tuple(check for check in checks if check is not None)


def _check(
    category: str,
    samples: Reading | None,
    trace: Reading | None,
    ablation: Reading | None,
    bound: Bound | None = None,
) -> CrossCheck | None:
    seen = [
        (reading.ci95_ns, bound if reading is ablation else None) for reading in (samples, trace, ablation) if reading
    ]
    if len(seen) < 2:
        return None
    ranges = [_possible(interval, bound) for interval, bound in seen]
    agree = all(_meet(one, two) for one in ranges for two in ranges)
    return CrossCheck(category, samples, trace, ablation, agree, bound)


def _possible(interval: Interval, bound: Bound | None) -> Interval:
    """Where the category may lie by a reading."""
    low, high = interval
    return -math.inf if bound == "upper" else low, math.inf if bound == "lower" else high


def _bound_of_kernels(host: Mapping[str, HostCategory]) -> Bound:
    faults_ns = sum(part.ns for part in host["allocation"].parts if part.name == PAGE_FAULT.part)
    return "lower" if faults_ns > _FAULTS_THAT_MATTER * host["kernel"].ns else "upper"


def _meet(one: Interval, two: Interval) -> bool:
    return one[0] <= two[1] and two[0] <= one[1]


def _sampled(category: HostCategory, outside_ns: float = 0.0) -> Reading | None:
    if category.evidence == "trace":
        return None
    low, high = category.ci95_ns
    return Reading(category.ns - outside_ns, (low - outside_ns, high - outside_ns))


def _traced(category: str, traced: TraceBudget | None) -> Reading | None:
    """Its interval is that of the recorded process: what others differ by, a trace does not know."""
    if traced is None:
        return None
    ns = sum(of for attribution, of in traced.attributions.items() if attribution.category == category)
    spread_ns = traced.spread_ns.get(category, 0.0)
    return Reading(ns, (ns - spread_ns, ns + spread_ns)) if ns else None


def _kernel(walls: PairedSides | None) -> Reading | None:
    if walls is None or "kernel_binding" not in walls.values:
        return None
    estimate = walls.estimate("kernel_binding")
    return Reading(estimate.value, estimate.interval())


def _step(walls: PairedSides | None, upper: str, lower: str) -> Reading | None:
    found = None if walls is None else walls.difference(upper, lower)
    return None if found is None else Reading(*found)
