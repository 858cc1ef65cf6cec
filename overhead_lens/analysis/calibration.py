"""What one event costs torch.profiler, from calibration calls timed bare and recorded (``capture/calibration.py``).

An event's start is read at the end of its start callback and its end at the begin of its end callback
(torch/csrc/profiler/collection.cpp), so most of its cost falls outside its own span, into the event around it. How much falls
inside is what an empty event shows: its span less the part of it that the same code takes when nothing is recorded.

A kernel that reads more than the caches hold displaces the profiler's code and data from them: the next event costs two to three
times as much. How much more is known by how long such a kernel took, for the first operator after it and for a compiled call.

Processes differ, by where code and data lie and by what the machine does meanwhile: outermost operators cost 203 to 703 ns in six
processes one after the other, with a median of 343. So each is fitted by itself and the median over processes is taken.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

OPERATOR_OUTER = "operator_outer"
OPERATOR_NESTED = "operator_nested"
ANNOTATION = "annotation"
FAST_ANNOTATION = "fast_annotation"
BACKWARD_NODE = "backward_node"
COMPILED_REGION = "compiled_region"
PYTHON_FUNCTION = "python_function"
C_CALL = "c_call"
MEMORY = "memory"

_LOOKUP = "TorchDynamo Cache Lookup"
_REGION = "Torch-Compiled Region"
_EVALUATION = "autograd::engine::evaluate_function: "
# torch/_dynamo/utils.py, torch/_functorch/_aot_autograd/runtime_wrappers.py, torch/_inductor/output_code.py.
_FAST = ("Pregraph bytecode", "AOTDispatcher Runtime Wrapper Prologue", "## Call CompiledFxGraph")

# Classes whose cost was measured in calls of few different events.
_OF_OPERATORS = (OPERATOR_OUTER, OPERATOR_NESTED, BACKWARD_NODE)

_BY_NAME = ((_REGION, COMPILED_REGION), (_FAST, FAST_ANNOTATION), (_EVALUATION, BACKWARD_NODE))

# Median absolute deviations that hold 95 % of a normal distribution.
_DEVIATIONS = 2.91


@dataclass(frozen=True, slots=True)
class EventCost:
    """What one event of a class costs, in ns: in all, and how much of it inside its own span.

    Attributes:
        spread_ns: Per event, the larger of two distances: of the furthest calibration call from the fit, and of 95 % of processes
            from their median.
        displaced_ns: What the first one after kernels costs beyond ``total_ns``, around it: the kernels' time and that, rising.
        first_ns: What the first one in a row of its class costs beyond ``total_ns``, around it.
        varied: By how much of itself it costs more among many different events: their mean reuse distance and that, rising.
    """

    total_ns: float
    inside_ns: float
    spread_ns: float = 0.0
    displaced_ns: tuple[tuple[float, float], ...] = ()
    first_ns: float = 0.0
    varied: tuple[tuple[float, float], ...] = ()

    @property
    def outside_ns(self) -> float:
        """What falls into the event around it."""
        return self.total_ns - self.inside_ns

    def after_kernels_ns(self, kernels_ns: float) -> float:
        """What one more costs if kernels of so long ran since the last of its kind; linear between what was measured."""
        return _between(self.displaced_ns, kernels_ns)

    def among(self, reuse_distance: float) -> EventCost:
        """What one costs among events of a mean reuse distance; linear between what was measured."""
        factor = 1 + _between(self.varied, reuse_distance)
        return replace(self, total_ns=factor * self.total_ns, inside_ns=factor * self.inside_ns)


Costs = Mapping[str, EventCost]


def _between(points: Sequence[tuple[float, float]], at: float) -> float:
    places, more = zip((0.0, 0.0), *points, strict=True)
    return float(np.interp(at, places, more))


def event_class(name: str, category: str, *, outer: bool) -> str:
    """Which cost an event has.

    Args:
        name: Event name.
        category: ``cat`` of the trace.
        outer: Whether no operator is around it.
    """
    if category == "python_function":
        return C_CALL if name.startswith("<built-in") else PYTHON_FUNCTION
    if named := next((found for prefixes, found in _BY_NAME if name.startswith(prefixes)), None):
        return named
    if category == "user_annotation":
        return ANNOTATION
    if name == "[memory]":
        return MEMORY
    return OPERATOR_OUTER if outer else OPERATOR_NESTED


def event_costs(rows: Iterable[Mapping[str, Any]], flags: str) -> dict[str, EventCost]:
    """Cost per class under one set of flags; a class that the rows say nothing of is missing.

    Args:
        rows: As ``capture/calibration.py`` makes them, each with its ``process``.
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
    if OPERATOR_OUTER in costs:
        more = _varied(by_kind.get("varied", []), costs)
        costs |= {name: replace(costs[name], varied=more) for name in _OF_OPERATORS if name in costs}
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


def uniform_costs(total_ns: float) -> dict[str, EventCost]:
    """The same cost for every event, half of it inside: what a capture without a calibration has."""
    return {OPERATOR_NESTED: EventCost(total_ns, total_ns / 2, total_ns / 2)}


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
    """Least squares over calls with different numbers of events, each call's weight one over them.

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
    fitted, *_ = np.linalg.lstsq(counts / events[:, None], taken / events, rcond=None)
    outer_ns, nested_ns, other_ns = (max(0.0, float(each)) for each in fitted)
    if not counts[:, 1].any():
        nested_ns = outer_ns
    spread_ns = float((np.abs(taken - counts @ np.array([outer_ns, nested_ns, other_ns])) / events).max())
    alone = [row for row in (*rows, *short) if row["outer"] == 1 and not row["nested"]]
    inside_ns = min((_inside_ns(row, "aten::") for row in alone), default=0.0)
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
    """What evaluating a node of a graph costs, and what a pass costs besides: least squares, weights one over the events.

    The node's function and its operators are events inside of the evaluation.
    """
    events = np.array([row["outer"] + row["nested"] + row["others"] for row in rows], dtype=np.float64)
    nodes = np.array([row["evaluated"] for row in rows], dtype=np.float64)
    left = np.array([_taken_ns(row) for row in rows]) - nested.total_ns * (events - nodes)
    counts = np.stack([nodes, np.ones(len(rows))], axis=1)
    fitted, *_ = np.linalg.lstsq(counts / events[:, None], left / events, rcond=None)
    node_ns, pass_ns = (max(0.0, float(each)) for each in fitted)
    spread_ns = float((np.abs(left - counts @ np.array([node_ns, pass_ns])) / nodes).max())
    return EventCost(node_ns, min(nested.inside_ns, node_ns), spread_ns, first_ns=pass_ns)


def _varied(rows: Sequence[Mapping[str, Any]], costs: Costs) -> tuple[tuple[float, float], ...]:
    """By the reuse distance of a call's events: how much more recording it costs than as many events of few names do."""
    known_ns = [
        row["outer"] * costs[OPERATOR_OUTER].total_ns + row["nested"] * costs[OPERATOR_NESTED].total_ns for row in rows
    ]
    return _rising(
        (row["reuse_distance"], _taken_ns(row) / ns - 1) for row, ns in zip(rows, known_ns, strict=True) if ns
    )


def _region(row: Mapping[str, Any], costs: Costs) -> EventCost:
    """What a compiled call's events cost less the cache lookup's and the annotations': Dynamo's region.

    Where it falls is not known; it is divided between the inside of the region and its outside in proportion to their time.
    """
    annotations = sum(name.startswith(_FAST) for name in row["span_ns"])
    known_ns = annotations * costs[FAST_ANNOTATION].total_ns
    if _LOOKUP in row["span_ns"]:
        known_ns += costs[OPERATOR_OUTER].total_ns
    total_ns = max(0.0, _taken_ns(row) - known_ns)
    span_ns = next((span for name, span in row["span_ns"].items() if name.startswith(_REGION)), 0.0)
    return EventCost(total_ns, total_ns * min(1.0, span_ns / min(row["traced_ns"])))
