"""Compares independent readings of one category: samples, the corrected trace, and ablation.

Ablation only bounds a category (docs/methodology/cross-checks.md):

- ``guard``: upper bound, since the rest of the call runs faster without guards, too. Neither the trace's event nor the filtered
  guards cover the backend match, so it is subtracted from the samples.
- ``allocation``: upper bound, since keeping the buffers also saves Python's call of the allocator, which counts as ``python``.
- ``kernel``: upper bound, since kernels called alone still cross the binding. Lower bound where the call's own kernels touch
  fresh pages, which slows them down by more than the page faults themselves take. The samples' reading has the waiting for the
  kernels' threads in it (``wait/parallel``), since kernels called alone wait for theirs, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from overhead_lens.budget.model import Bound, CrossCheck, Reading
from overhead_lens.budget.shares import PAGE_FAULT
from overhead_lens.budget.trace import TraceBudget
from overhead_lens.budget.wall import undisturbed
from overhead_lens.stats.bootstrap import PairedSides, paired_sides
from overhead_lens.stats.values import Interval
from overhead_lens.taxonomy.host import HostCategory

_SLOWING_FAULTS_SHARE = 0.1
"""Page faults above this share of the kernels' time slow the kernels down."""


def cross_checks(
    host: Sequence[HostCategory],
    backend_match_ns: float,
    traced: TraceBudget | None,
    ablation: pd.DataFrame | None,
    *,
    is_one_graph: bool = True,
) -> tuple[CrossCheck, ...]:
    """Checks of every category that at least two instruments can read.

    Args:
        backend_match_ns: Sampled time of the backend match, ns per call.
        is_one_graph: Whether the compiled call is one graph: eager operators between graphs are beyond ablation.
    """
    by_name = {category.category: category for category in host}
    if not any(category.evidence == "samples" for category in host):
        return ()
    walls = rung_walls(ablation)
    without_guards = _step(walls, "compiled", "guards_filtered")
    in_graphs = walls if is_one_graph else None
    without_allocation = _step(in_graphs, "generated_code", "allocation_hoisted")
    guard, allocation, kernel = (by_name[name] for name in ("guard", "allocation", "kernel"))
    with_waiting = _sampled(kernel, -by_name["wait"].part_ns("parallel"))
    are_slowed = allocation.part_ns(str(PAGE_FAULT.part)) > _SLOWING_FAULTS_SHARE * kernel.ns
    checks = (
        _check("guard", _sampled(guard, backend_match_ns), _traced("guard", traced), without_guards, "upper"),
        _check("allocation", _sampled(allocation), None, without_allocation, "upper"),
        _check("kernel", with_waiting, None, kernels_alone(in_graphs), "lower" if are_slowed else "upper"),
    )
    return tuple(check for check in checks if check is not None)


def rung_walls(ablation: pd.DataFrame | None) -> PairedSides | None:
    """Times of the rungs; None without any."""
    return None if ablation is None or ablation.empty else paired_sides(undisturbed(ablation, ("process", "rung")))


def kernels_alone(walls: PairedSides | None) -> Reading | None:
    """What the kernels of compiled code take when they are called alone."""
    if walls is None or "kernel_binding" not in walls.values:
        return None
    estimate = walls.estimate("kernel_binding")
    return Reading(estimate.value, estimate.interval())


def _check(
    category: str, samples: Reading | None, trace: Reading | None, ablation: Reading | None, bound: Bound | None = None
) -> CrossCheck | None:
    readings = ((samples, None), (trace, None), (ablation, bound))
    intervals = [_unbounded(reading.ci95_ns, side) for reading, side in readings if reading]
    if len(intervals) < 2:
        return None
    agree = all(low <= high for low, _ in intervals for _, high in intervals)
    return CrossCheck(category, samples, trace, ablation, agree, bound)


def _unbounded(interval: Interval, bound: Bound | None) -> Interval:
    """The interval, open on the side that a bound leaves open."""
    low, high = interval
    return -math.inf if bound == "upper" else low, math.inf if bound == "lower" else high


def _sampled(category: HostCategory, excluded_ns: float = 0.0) -> Reading | None:
    if category.evidence == "trace":
        return None
    low, high = category.ci95_ns
    return Reading(category.ns - excluded_ns, (low - excluded_ns, high - excluded_ns))


def _traced(category: str, traced: TraceBudget | None) -> Reading | None:
    """The trace's reading; its interval is that of the one traced process."""
    if traced is None:
        return None
    ns = sum(own_ns for attribution, own_ns in traced.attributions.items() if attribution.category == category)
    spread_ns = traced.spread_ns.get(category, 0.0)
    return Reading(ns, (ns - spread_ns, ns + spread_ns)) if ns else None


def _step(walls: PairedSides | None, upper: str, lower: str) -> Reading | None:
    difference = None if walls is None else walls.difference(upper, lower)
    return None if difference is None else Reading(*difference)
