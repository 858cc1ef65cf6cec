"""The budget as the trace gives it: self times by the sweep line, corrected for the profiler's cost, classified.

A trace cannot see inside an operator: dispatch, hidden allocation and kernel are one span. Of an operator's self time,
as much as a one-element operator takes in all is counted as dispatcher and the rest as kernel: an estimate, marked so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from overhead_lens.analysis.correction import corrected_self_ns, event_cost_ns
from overhead_lens.analysis.timeline import Segments, parents, sweep
from overhead_lens.categories import Claim, Classifier
from overhead_lens.trace.model import DEVICE_CATEGORIES

LOOP_EVENT = "measured_loop"

_LOOP = Claim("python", "user")
_KERNEL = Claim("kernel")


@dataclass(frozen=True, slots=True)
class TraceBudget:
    """One measured call as the corrected trace sees it.

    Attributes:
        claims: ns per call and claim.
        frames: ns per call, per category and event name.
        sum_ns: Corrected total, ns per call.
        event_cost_ns: What one event cost the profiler.
        events_per_call: Host events in one call.
        operator_names: Names of the operators in the trace.
        kernel_calls: Calls, per measured call, of the event whose kernels take most; 0 where none has any.
    """

    claims: Mapping[Claim, float]
    frames: Mapping[str, Mapping[str, float]]
    sum_ns: float
    event_cost_ns: float
    events_per_call: float
    operator_names: frozenset[str]
    kernel_calls: float


def trace_budget(events: pd.DataFrame, timing: Mapping[str, float], classifier: Classifier) -> TraceBudget:
    """Budget of the loop's thread.

    Args:
        events: Event frame of the plain trace; the loop is its ``measured_loop`` annotation, or everything.
        timing: ``calls``, ``traced_wall_ns``, ``bare_wall_ns`` and ``operator_floor_ns`` of the recording.
        classifier: Rules.
    """
    host, window = loop_events(events)
    calls = max(1, int(timing["calls"]))
    names = frozenset(name for name in host["name"] if name.startswith("aten::"))
    cost_ns = event_cost_ns(int(timing["traced_wall_ns"]), int(timing["bare_wall_ns"]), len(host))
    start, dur = host["start_ns"].to_numpy(), host["dur_ns"].to_numpy()
    segments = sweep(start, dur, window)
    own, outside = corrected_self_ns(segments.self_ns(len(host)), parents(start, dur), segments.uncovered_ns(), cost_ns)
    claims: defaultdict[Claim, float] = defaultdict(float, {_LOOP: outside})
    frames: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    frames[_LOOP.category]["outside of any event"] = outside
    for name, category, ns in zip(host["name"], host["cat"], own.tolist(), strict=True):
        for claim, part_ns in _split(classifier.classify_event(name, category), ns, timing["operator_floor_ns"]):
            claims[claim] += part_ns
            frames[claim.category][name] += part_ns
    kernels = frames[_KERNEL.category]
    costliest = max(kernels, key=lambda name: kernels[name], default=None)
    return TraceBudget(
        {claim: ns / calls for claim, ns in claims.items()},
        {category: {name: ns / calls for name, ns in names.items()} for category, names in frames.items()},
        sum(claims.values()) / calls,
        cost_ns,
        len(host) / calls,
        names,
        int((host["name"] == costliest).sum()) / calls,
    )


def loop_events(events: pd.DataFrame) -> tuple[pd.DataFrame, tuple[int, int]]:
    """Host events of the loop's thread inside the loop's annotation, and the window in ns."""
    host = events[~events["cat"].isin(DEVICE_CATEGORIES) & (events["cat"] != "Trace")]
    loop = host[host["name"] == LOOP_EVENT]
    if loop.empty:
        window = (int(host["start_ns"].min()), int((host["start_ns"] + host["dur_ns"]).max())) if len(host) else (0, 0)
        return host.reset_index(drop=True), window
    first = loop.iloc[0]
    window = (int(first["start_ns"]), int(first["start_ns"] + first["dur_ns"]))
    inside = host["start_ns"].between(*window) & (host["tid"] == first["tid"]) & (host["name"] != LOOP_EVENT)
    return host[inside].reset_index(drop=True), window


def category_lane(events: pd.DataFrame, classifier: Classifier) -> tuple[pd.DataFrame, Segments]:
    """The category of every instant of the loop's window as traced: ``start_ns``, ``dur_ns``, ``category``."""
    host, window = loop_events(events)
    segments = sweep(host["start_ns"].to_numpy(), host["dur_ns"].to_numpy(), window)
    claims = [
        classifier.classify_event(name, cat).category for name, cat in zip(host["name"], host["cat"], strict=True)
    ]
    categories = [claims[owner] if owner >= 0 else _LOOP.category for owner in segments.owner.tolist()]
    return pd.DataFrame({"start_ns": segments.start_ns, "dur_ns": segments.dur_ns, "category": categories}), segments


def _split(claim: Claim, ns: float, operator_floor_ns: float) -> list[tuple[Claim, float]]:
    if claim != Claim("dispatcher", "dispatch") or ns <= operator_floor_ns:
        return [(claim, ns)]
    return [(claim, operator_floor_ns), (_KERNEL, ns - operator_floor_ns)]
