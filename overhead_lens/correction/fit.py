"""What one event costs torch.profiler, from calibration calls timed bare and recorded (``correction/worker.py``).

An event's start is read at the end of its start callback and its end at the begin of its end callback
(torch/csrc/profiler/collection.cpp), so most of its cost falls outside its own span, into the event around it. How much falls
inside is what an empty event shows: its span less the part of it that the same code takes when nothing is recorded.

A kernel that reads more than the caches hold displaces the profiler's code and data from them: the next event costs two to three
times as much. How much more is known by how long such a kernel took, for the first operator after it and for a compiled call.
So, it seems, does code: a call of many different operators costs more for each, and a compiled region more in a long call.

Processes differ, by where code and data lie and by what the machine does meanwhile: outermost operators cost 203 to 703 ns in six
processes one after the other, with a median of 343. So each is fitted by itself and the median over processes is taken.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from overhead_lens.correction.event_cost import (
    ANNOTATION,
    BACKWARD_NODE,
    C_CALL,
    COMPILED_REGION,
    FAST_ANNOTATION,
    MEMORY,
    OF_OPERATORS,
    OF_REGIONS,
    OPERATOR_NESTED,
    OPERATOR_OUTER,
    PYTHON_FUNCTION,
    Costs,
    EventCost,
    between,
)
from overhead_lens.taxonomy import torch_names

# Median absolute deviations that hold 95 % of a normal distribution.
_DEVIATIONS = 2.91


def event_costs(rows: Iterable[Mapping[str, Any]], flags: str) -> dict[str, EventCost]:
    """Cost per class under one set of flags; a class that the rows say nothing of is missing.

    Args:
        rows: As ``correction/worker.py`` makes them, each with its ``process``.
        flags: Name of the set of flags.
    """
    by_process: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["flags"] == flags:
            by_process.setdefault(row.get("process", 0), []).append(row)
    costs = [_of_process(found, flags) for found in by_process.values()]
    names = dict.fromkeys(name for each in costs for name in each)
    return {name: _middle([each[name] for each in costs if name in each]) for name in names}


def _middle(costs: Sequence[EventCost]) -> EventCost:
    """The median over processes; a disturbed one counts neither for it nor for the spread."""
    total_ns = statistics.median(each.total_ns for each in costs)
    inside_ns = statistics.median(each.inside_ns for each in costs)
    deviation_ns = statistics.median(abs(each.total_ns - total_ns) for each in costs)
    spread_ns = max(statistics.median(each.spread_ns for each in costs), _DEVIATIONS * deviation_ns)
    return EventCost(
        total_ns,
        min(inside_ns, total_ns),
        spread_ns,
        _middle_points([each.displaced_ns for each in costs]),
        statistics.median(each.first_ns for each in costs),
        _middle_points([each.varied for each in costs]),
        _middle_points([each.apart for each in costs]),
    )


def _middle_points(found: Sequence[tuple[tuple[float, float], ...]]) -> tuple[tuple[float, float], ...]:
    return _rising(
        (statistics.median(place for place, _ in point), statistics.median(more for _, more in point))
        for point in zip(*filter(None, found), strict=False)
    )


def _rising(points: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """In the order of their times, none with less than one before it, and none below 0."""
    found: list[tuple[float, float]] = []
    for time, more in sorted(points):
        found.append((time, max(more, found[-1][1] if found else 0.0)))
    return tuple(found)


def _of_process(found: Sequence[Mapping[str, Any]], flags: str) -> dict[str, EventCost]:
    by_kind = {kind: [row for row in found if row["kind"] == kind] for kind in {row["kind"] for row in found}}
    costs = _operators(by_kind.get("operator", []), by_kind.get("short_operator", []), flags)
    for kind, name in (("annotation", ANNOTATION), ("fast_annotation", FAST_ANNOTATION)):
        if flags != "stack" and by_kind.get(kind):
            costs[name] = _annotation(by_kind[kind][0])
    if flags == "stack":
        costs.update(_python(by_kind.get("python", [])))
    if by_kind.get("compiled") and OPERATOR_OUTER in costs and FAST_ANNOTATION in costs:
        costs[COMPILED_REGION] = _region(by_kind["compiled"][0], costs)
    if by_kind.get("backward") and OPERATOR_NESTED in costs:
        costs[BACKWARD_NODE] = _backward(by_kind["backward"], costs[OPERATOR_NESTED])
    # Calibrations of before knew the mean distance only.
    of_many = [row for row in by_kind.get("varied", []) if "rms_reuse_distance" in row]
    if OPERATOR_OUTER in costs and of_many:
        more = _displaced_by_code(of_many, costs)
        varied = _varied(of_many, more, by_kind["operator"])
        costs |= {name: replace(costs[name], varied=varied) for name in OF_OPERATORS if name in costs}
        if COMPILED_REGION in costs:
            apart = _apart(of_many, more, by_kind["compiled"][0])
            costs |= {name: replace(costs[name], apart=apart) for name in OF_REGIONS}
    of_operator = _displaced(by_kind.get("displaced_operator", []))
    of_compiled = _displaced(by_kind.get("displaced_compiled", []))
    if OPERATOR_OUTER in costs:
        costs[OPERATOR_OUTER] = replace(costs[OPERATOR_OUTER], displaced_ns=of_operator)
    if COMPILED_REGION in costs:
        # The cache lookup before the region is an operator to the profiler.
        of_region = ((time, more - other) for (time, more), (_, other) in zip(of_compiled, of_operator, strict=False))
        costs[COMPILED_REGION] = replace(costs[COMPILED_REGION], displaced_ns=_rising(of_region))
    return costs


def _displaced(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[float, float], ...]:
    """By the time of the copy before a call: how much more recording the call costs than after no copy, mean over the calls."""
    by_bytes: dict[int, list[tuple[float, float]]] = {}
    without = {row["name"]: _taken_ns(row) for row in rows if not row["bytes"]}
    for row in rows:
        if row["bytes"]:
            by_bytes.setdefault(row["bytes"], []).append((row["copy_ns"], _taken_ns(row) - without[row["name"]]))
    return _rising(
        (statistics.mean(time for time, _ in found), statistics.mean(more for _, more in found))
        for found in by_bytes.values()
    )


def _taken_ns(row: Mapping[str, Any]) -> float:
    """Cost of recording one call: the fastest round of each side, since a disturbance only ever adds time.

    Page faults of the memory that events are written to are left out: whether there are any depends on what was recorded before.
    """
    return max(0.0, _fastest_ns(row, "traced") - _fastest_ns(row, "bare"))


def _fastest_ns(row: Mapping[str, Any], side: str) -> float:
    rounds_ns = row[f"{side}_ns"]
    faults = row.get(f"{side}_faults") or [0.0] * len(rounds_ns)
    return float(min(ns - row.get("fault_ns", 0.0) * each for ns, each in zip(rounds_ns, faults, strict=True)))


def _operators(
    rows: Sequence[Mapping[str, Any]], short: Sequence[Mapping[str, Any]], flags: str
) -> dict[str, EventCost]:
    """Non-negative least squares over calls with different numbers of events, each call's weight one over them.

    What is inside an operator's own span is seen in the shortest one, which may be called in a way that ``rows`` are not.

    Other events than operators are of one kind per set of flags: memory events, or those of Python, which have calls of
    their own.
    """
    if not rows:
        return {}
    kinds = ("outer", "nested", "others")
    counts = np.array([[row[kind] for kind in kinds] for row in rows], dtype=np.float64)
    taken = np.array([_taken_ns(row) for row in rows])
    events = counts.sum(axis=1)
    outer_ns, nested_ns, other_ns = nnls(counts / events[:, None], taken / events)[0].tolist()
    if not counts[:, 1].any():
        nested_ns = outer_ns
    spread_ns = float((np.abs(taken - counts @ np.array([outer_ns, nested_ns, other_ns])) / events).max())
    alone = [row for row in (*rows, *short) if row["outer"] == 1 and not row["nested"]]
    inside_ns = min((_inside_ns(row, torch_names.OPERATOR_PREFIX) for row in alone), default=0.0)
    costs = {
        OPERATOR_OUTER: EventCost(outer_ns, min(inside_ns, outer_ns), spread_ns),
        OPERATOR_NESTED: EventCost(nested_ns, min(inside_ns, nested_ns), spread_ns),
    }
    # An instant has no span: all of its cost falls into the event around it.
    return {**costs, MEMORY: EventCost(other_ns, 0.0, spread_ns)} if flags == "memory" else costs


def _inside_ns(row: Mapping[str, Any], prefix: str = "") -> float:
    """The profiler's part of the span of a call's event: of what the call took longer, in proportion to the span."""
    span_ns = min((span for name, span in row["span_ns"].items() if name.startswith(prefix)), default=math.inf)
    return float(span_ns) * _taken_ns(row) / float(min(row["traced_ns"]))


def _annotation(row: Mapping[str, Any]) -> EventCost:
    total_ns = _taken_ns(row)
    return EventCost(total_ns, min(_inside_ns(row), total_ns))


def _python(rows: Sequence[Mapping[str, Any]]) -> dict[str, EventCost]:
    """Two calls: Python functions alone, and one function around a builtin; none of a torch that counts no event of theirs.

    torch 2.6 writes Python events into the exported trace and leaves them out of ``kineto_results.events()``.
    """
    by_name = {row["name"]: row for row in rows}
    if not {"functions", "builtin"} <= set(by_name):
        return {}
    functions, builtin = by_name["functions"], by_name["builtin"]
    events = round(functions["others"])
    if not events:
        return {}
    python_ns = _taken_ns(functions) / events
    c_ns = max(0.0, _taken_ns(builtin) - python_ns)
    return {PYTHON_FUNCTION: EventCost(python_ns, python_ns / 2), C_CALL: EventCost(c_ns, c_ns / 2)}


def _backward(rows: Sequence[Mapping[str, Any]], nested: EventCost) -> EventCost:
    """What evaluating a node of a graph costs, and what a pass costs besides: non-negative least squares, weights 1 / events.

    The node's function and its operators are events inside of the evaluation.
    """
    events = np.array([row["outer"] + row["nested"] + row["others"] for row in rows], dtype=np.float64)
    nodes = np.array([row["evaluated"] for row in rows], dtype=np.float64)
    left = np.array([_taken_ns(row) for row in rows]) - nested.total_ns * (events - nodes)
    counts = np.stack([nodes, np.ones(len(rows))], axis=1)
    node_ns, pass_ns = nnls(counts / events[:, None], left / events)[0].tolist()
    spread_ns = float((np.abs(left - counts @ np.array([node_ns, pass_ns])) / nodes).max())
    return EventCost(node_ns, min(nested.inside_ns, node_ns), spread_ns, first_ns=pass_ns)


def _displaced_by_code(rows: Sequence[Mapping[str, Any]], costs: Costs) -> list[float]:
    """By how much of itself more it costs to record calls of many different operators than as many events of few names.

    Of a call's other events, as the ``detach`` inside of ``aten::detach``, each is taken for a nested operator, as in a trace.
    """
    known_ns = [
        row["outer"] * costs[OPERATOR_OUTER].total_ns
        + (row["nested"] + row["others"]) * costs[OPERATOR_NESTED].total_ns
        for row in rows
    ]
    return [_taken_ns(row) / ns - 1 if ns else 0.0 for row, ns in zip(rows, known_ns, strict=True)]


def _varied(
    rows: Sequence[Mapping[str, Any]], more: Sequence[float], few: Sequence[Mapping[str, Any]]
) -> tuple[tuple[float, float], ...]:
    """``more`` by the reuse distance of a call's events; 0 at that of the calls of few operators that the costs come from."""
    usual = statistics.mean(row.get("rms_reuse_distance", 0.0) for row in few)
    return _rising([(usual, 0.0), *((row["rms_reuse_distance"], each) for row, each in zip(rows, more, strict=True))])


def _apart(
    rows: Sequence[Mapping[str, Any]], more: Sequence[float], compiled: Mapping[str, Any]
) -> tuple[tuple[float, float], ...]:
    """``more`` by the time of a call, relative to a call as short as the compiled one that the cost of a region comes from."""
    points = _rising((_fastest_ns(row, "traced"), each) for row, each in zip(rows, more, strict=True))
    usual = 1 + between(points, _fastest_ns(compiled, "traced"))
    return _rising((time, (1 + each) / usual - 1) for time, each in points)


def _region(row: Mapping[str, Any], costs: Costs) -> EventCost:
    """What a compiled call's events cost less the cache lookup's and the annotations': Dynamo's region.

    Where it falls is not known; it is divided between the inside of the region and its outside in proportion to their time.
    """
    annotations = sum(name.startswith(torch_names.FAST_ANNOTATION_PREFIXES) for name in row["span_ns"])
    known_ns = annotations * costs[FAST_ANNOTATION].total_ns
    if torch_names.CACHE_LOOKUP in row["span_ns"]:
        known_ns += costs[OPERATOR_OUTER].total_ns
    total_ns = max(0.0, _taken_ns(row) - known_ns)
    span_ns = next(
        (span for name, span in row["span_ns"].items() if name.startswith(torch_names.COMPILED_REGION_PREFIX)), 0.0
    )
    return EventCost(total_ns, total_ns * min(1.0, span_ns / min(row["traced_ns"])))
