"""Fits what one event costs torch.profiler to calibration calls timed bare and recorded (``correction/worker.py``).

An event's start is read at the end of its start callback and its end at the beginning of its end callback
(torch/csrc/profiler/collection.cpp), so most of its cost falls outside its own span, into the event around it. The part inside
is the span of an empty event less the time that the same code takes when nothing is recorded.

Recording costs more with cold caches: after a kernel that reads more than they hold, and in calls of many different operators.
Processes differ by where code and data lie. So each process is fitted by itself, and the median over processes counts
(docs/methodology/correction.md).
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from overhead_lens.correction.event_cost import (
    ANNOTATION,
    BACKWARD_NODE,
    C_CALL,
    COMPILED_REGION,
    FAST_ANNOTATION,
    MEMORY,
    OF_DEVICES,
    OF_OPERATORS,
    OF_REGIONS,
    OPERATOR_NESTED,
    OPERATOR_OUTER,
    PYTHON_FUNCTION,
    Costs,
    EventCost,
    Points,
    between,
)
from overhead_lens.stats.values import Floats
from overhead_lens.taxonomy import torch_names

# Median absolute deviations that hold 95 % of a normal distribution.
_DEVIATIONS = 2.91

_Row = Mapping[str, Any]


def event_costs(rows: Iterable[_Row], flags: str) -> dict[str, EventCost]:
    """Cost per class under one set of flags; classes without rows are missing."""
    by_process: defaultdict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        if row["flags"] == flags:
            by_process[row.get("process", 0)].append(row)
    fits = [_fit_process(process_rows, flags) for process_rows in by_process.values()]
    names = dict.fromkeys(name for costs in fits for name in costs)
    return {name: _median([costs[name] for costs in fits if name in costs]) for name in names}


def _median(costs: Sequence[EventCost]) -> EventCost:
    """Median over processes; robust against a disturbed one, also in the spread."""
    total_ns = statistics.median(cost.total_ns for cost in costs)
    deviation_ns = statistics.median(abs(cost.total_ns - total_ns) for cost in costs)
    return EventCost(
        total_ns,
        min(statistics.median(cost.inside_ns for cost in costs), total_ns),
        max(statistics.median(cost.spread_ns for cost in costs), _DEVIATIONS * deviation_ns),
        _median_points([cost.cold_after_kernels_ns for cost in costs]),
        statistics.median(cost.first_ns for cost in costs),
        _median_points([cost.cold_by_distance for cost in costs]),
        _median_points([cost.cold_by_interval for cost in costs]),
    )


def _median_points(curves: Sequence[Points]) -> Points:
    return _ascending(
        (statistics.median(argument for argument, _ in points), statistics.median(value for _, value in points))
        for points in zip(*filter(None, curves), strict=False)
    )


def _ascending(points: Iterable[tuple[float, float]]) -> Points:
    """The points sorted by argument, with values made non-decreasing and at least 0."""
    curve: list[tuple[float, float]] = []
    for argument, value in sorted(points):
        curve.append((argument, max(value, curve[-1][1] if curve else 0.0)))
    return tuple(curve)


def _fit_process(rows: Sequence[_Row], flags: str) -> dict[str, EventCost]:
    by_kind: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        by_kind[row["kind"]].append(row)
    costs = _operators(by_kind["operator"], by_kind["short_operator"], flags)
    if flags == "stack":
        costs.update(_python(by_kind["python"]))
    else:
        annotations = (("annotation", ANNOTATION), ("fast_annotation", FAST_ANNOTATION))
        costs.update({name: _annotation(by_kind[kind][0]) for kind, name in annotations if by_kind[kind]})
    if by_kind["compiled"] and OPERATOR_OUTER in costs and FAST_ANNOTATION in costs:
        costs[COMPILED_REGION] = _region(by_kind["compiled"][0], costs)
    if by_kind["backward"] and OPERATOR_NESTED in costs:
        costs[BACKWARD_NODE] = _backward(by_kind["backward"], costs[OPERATOR_NESTED])
    costs.update({kind: _device_call(by_kind[kind][0]) for kind in OF_DEVICES if by_kind[kind]})
    return _with_cold_caches(costs, by_kind)


def _with_cold_caches(costs: dict[str, EventCost], by_kind: Mapping[str, Sequence[_Row]]) -> dict[str, EventCost]:
    # Older calibrations have another distance.
    many_operators = [row for row in by_kind["varied"] if "rms_reuse_distance" in row]
    if OPERATOR_OUTER in costs and many_operators:
        cold_shares = _cold_shares(many_operators, costs)
        curve = _by_distance(many_operators, cold_shares, by_kind["operator"])
        costs |= {name: replace(costs[name], cold_by_distance=curve) for name in OF_OPERATORS if name in costs}
        if COMPILED_REGION in costs:
            curve = _by_interval(many_operators, cold_shares, by_kind["compiled"][0])
            costs |= {name: replace(costs[name], cold_by_interval=curve) for name in OF_REGIONS}
    of_operator = _after_kernels(by_kind["displaced_operator"])
    if OPERATOR_OUTER in costs:
        costs[OPERATOR_OUTER] = replace(costs[OPERATOR_OUTER], cold_after_kernels_ns=of_operator)
    if COMPILED_REGION in costs:
        # The cache lookup before the region is an operator to the profiler.
        of_compiled = _after_kernels(by_kind["displaced_compiled"])
        of_region = ((time, cost - lookup) for (time, cost), (_, lookup) in zip(of_compiled, of_operator, strict=False))
        costs[COMPILED_REGION] = replace(costs[COMPILED_REGION], cold_after_kernels_ns=_ascending(of_region))
    return costs


def _after_kernels(rows: Sequence[_Row]) -> Points:
    """Points of (ns of the copy before a call, extra ns), mean over the calls."""
    by_bytes: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    warm_ns = {row["name"]: _recording_ns(row) for row in rows if not row["bytes"]}
    for row in rows:
        if row["bytes"]:
            by_bytes[row["bytes"]].append((row["copy_ns"], _recording_ns(row) - warm_ns[row["name"]]))
    return _ascending(
        (statistics.mean(time for time, _ in points), statistics.mean(extra for _, extra in points))
        for points in by_bytes.values()
    )


def _recording_ns(row: _Row) -> float:
    """Cost of recording one call: the fastest recorded round less the fastest bare one.

    Page faults are left out: whether the buffers of events have any depends on what was recorded before.
    """
    return max(0.0, _fastest_ns(row, "traced") - _fastest_ns(row, "bare"))


def _fastest_ns(row: _Row, side: str) -> float:
    rounds_ns = row[f"{side}_ns"]
    faults = row.get(f"{side}_faults") or [0.0] * len(rounds_ns)
    return float(min(ns - row.get("fault_ns", 0.0) * count for ns, count in zip(rounds_ns, faults, strict=True)))


def _operators(rows: Sequence[_Row], short: Sequence[_Row], flags: str) -> dict[str, EventCost]:
    """Non-negative least squares over calls, weighted by 1 / events.

    Events other than operators are one kind per set of flags: memory events, or those of Python, which have calls of
    their own. The part inside the span is that of the shortest operator, which may be in ``short`` only.
    """
    if not rows:
        return {}
    counts = np.array([[row["outer"], row["nested"], row["others"]] for row in rows], dtype=np.float64)
    recording_ns = np.array([_recording_ns(row) for row in rows])
    events = counts.sum(axis=1)
    outer_ns, nested_ns, other_ns = _non_negative(counts / events[:, None], recording_ns / events)
    if not counts[:, 1].any():
        nested_ns = outer_ns
    spread_ns = float((np.abs(recording_ns - counts @ np.array([outer_ns, nested_ns, other_ns])) / events).max())
    alone = [row for row in (*rows, *short) if row["outer"] == 1 and not row["nested"]]
    inside_ns = min((_inside_ns(row, torch_names.OPERATOR_PREFIX) for row in alone), default=0.0)
    costs = {
        OPERATOR_OUTER: EventCost(outer_ns, min(inside_ns, outer_ns), spread_ns),
        OPERATOR_NESTED: EventCost(nested_ns, min(inside_ns, nested_ns), spread_ns),
    }
    # An instant has no span: all of its cost falls into the event around it.
    return {**costs, MEMORY: EventCost(other_ns, 0.0, spread_ns)} if flags == "memory" else costs


def _inside_ns(row: _Row, prefix: str = "") -> float:
    """The profiler's share of an event's span, estimated by its share of the recorded call."""
    span_ns = min((span for name, span in row["span_ns"].items() if name.startswith(prefix)), default=math.inf)
    return float(span_ns) * _recording_ns(row) / float(min(row["traced_ns"]))


def _annotation(row: _Row) -> EventCost:
    total_ns = _recording_ns(row)
    return EventCost(total_ns, min(_inside_ns(row), total_ns))


def _device_call(row: _Row) -> EventCost:
    """Cost of a call of a device's runtime, which is timed by itself: what its span is longer than the bare call is inside."""
    total_ns = _recording_ns(row)
    inside_ns = max(row["span_ns"].values(), default=0.0) - _fastest_ns(row, "bare")
    return EventCost(total_ns, min(max(0.0, inside_ns), total_ns))


def _python(rows: Sequence[_Row]) -> dict[str, EventCost]:
    """Costs of Python events, from calls of Python functions and of a builtin inside a function.

    Empty for torch 2.6: it exports Python events but leaves them out of ``kineto_results.events()``.
    """
    by_name = {row["name"]: row for row in rows}
    if not {"functions", "builtin"} <= set(by_name):
        return {}
    event_count = round(by_name["functions"]["others"])
    if not event_count:
        return {}
    python_ns = _recording_ns(by_name["functions"]) / event_count
    c_ns = max(0.0, _recording_ns(by_name["builtin"]) - python_ns)
    return {PYTHON_FUNCTION: EventCost(python_ns, python_ns / 2), C_CALL: EventCost(c_ns, c_ns / 2)}


def _backward(rows: Sequence[_Row], nested: EventCost) -> EventCost:
    """Cost of a graph's node and of a pass: non-negative least squares, weighted by 1 / events.

    The node's function and its operators are events inside of its evaluation.
    """
    events = np.array([row["outer"] + row["nested"] + row["others"] for row in rows], dtype=np.float64)
    nodes = np.array([row["evaluated"] for row in rows], dtype=np.float64)
    left_ns = np.array([_recording_ns(row) for row in rows]) - nested.total_ns * (events - nodes)
    counts = np.stack([nodes, np.ones(len(rows))], axis=1)
    node_ns, pass_ns = _non_negative(counts / events[:, None], left_ns / events)
    spread_ns = float((np.abs(left_ns - counts @ np.array([node_ns, pass_ns])) / nodes).max())
    return EventCost(node_ns, min(nested.inside_ns, node_ns), spread_ns, first_ns=pass_ns)


def _non_negative(counts: Floats, spent_ns: Floats) -> list[float]:
    """Non-negative least squares: nanoseconds per item of each counted kind.

    At the optimum some kinds have their unconstrained least-squares solution and the others are zero (Lawson and Hanson, Solving
    Least Squares Problems, 1974). All subsets of three kinds are tried: importing scipy.optimize takes longer than most reports.
    """
    kinds = range(counts.shape[1])
    best, least_ns2 = [0.0] * len(kinds), math.inf
    for some in (list(chosen) for size in kinds for chosen in combinations(kinds, size + 1)):
        solution, _, rank, _ = np.linalg.lstsq(counts[:, some], spent_ns, rcond=None)
        left_ns2 = float(np.square(spent_ns - counts[:, some] @ solution).sum())
        if rank == len(some) and solution.min() >= 0 and left_ns2 < least_ns2:
            given = dict(zip(some, solution.tolist(), strict=True))
            best, least_ns2 = [given.get(kind, 0.0) for kind in kinds], left_ns2
    return best


def _cold_shares(rows: Sequence[_Row], costs: Costs) -> list[float]:
    """Cold-cache cost of calls of many different operators, as a share of their events' warm cost.

    Other events, as the ``detach`` inside of ``aten::detach``, count as nested operators, as in a trace.
    """
    warm_ns = [
        row["outer"] * costs[OPERATOR_OUTER].total_ns
        + (row["nested"] + row["others"]) * costs[OPERATOR_NESTED].total_ns
        for row in rows
    ]
    return [_recording_ns(row) / ns - 1 if ns else 0.0 for row, ns in zip(rows, warm_ns, strict=True)]


def _by_distance(rows: Sequence[_Row], cold_shares: Sequence[float], few_operators: Sequence[_Row]) -> Points:
    """Cold-cache cost by LRU stack distance; 0 up to that of the calls with few operators."""
    warm_distance = statistics.mean(row.get("rms_reuse_distance", 0.0) for row in few_operators)
    distances = (row["rms_reuse_distance"] for row in rows)
    return _ascending([(warm_distance, 0.0), *zip(distances, cold_shares, strict=True)])


def _by_interval(rows: Sequence[_Row], cold_shares: Sequence[float], compiled: _Row) -> Points:
    """Cold-cache cost by a call's time, relative to that at the time of the compiled calibration call."""
    points = _ascending(zip((_fastest_ns(row, "traced") for row in rows), cold_shares, strict=True))
    usual = 1 + between(points, _fastest_ns(compiled, "traced"))
    return _ascending((time, (1 + share) / usual - 1) for time, share in points)


def _region(row: _Row, costs: Costs) -> EventCost:
    """Cost of Dynamo's region: that of a compiled call minus the cache lookup's and the annotations'.

    It is divided between the inside and the outside of the region in proportion to their time.
    """
    spans_ns = row["span_ns"]
    annotations = sum(name.startswith(torch_names.FAST_ANNOTATION_PREFIXES) for name in spans_ns)
    known_ns = annotations * costs[FAST_ANNOTATION].total_ns
    if torch_names.CACHE_LOOKUP in spans_ns:
        known_ns += costs[OPERATOR_OUTER].total_ns
    total_ns = max(0.0, _recording_ns(row) - known_ns)
    span_ns = next((ns for name, ns in spans_ns.items() if name.startswith(torch_names.COMPILED_REGION_PREFIX)), 0.0)
    return EventCost(total_ns, total_ns * min(1.0, span_ns / min(row["traced_ns"])))
