"""The cost of one event of a class to torch.profiler, the class of an event, and a trace without that cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from overhead_lens.stats.values import Floats, Ints
from overhead_lens.taxonomy import torch_names

OPERATOR_OUTER = "operator_outer"
OPERATOR_NESTED = "operator_nested"
ANNOTATION = "annotation"
FAST_ANNOTATION = "fast_annotation"
BACKWARD_NODE = "backward_node"
COMPILED_REGION = "compiled_region"
PYTHON_FUNCTION = "python_function"
C_CALL = "c_call"
MEMORY = "memory"
DEVICE_CALL = "device_call"
DEVICE_LAUNCH = "device_launch"

# Classes whose cost was measured in calls with few distinct events.
OF_OPERATORS = (OPERATOR_OUTER, OPERATOR_NESTED, BACKWARD_NODE)

# Calls of a device's runtime. A launch costs more to record: its work is an event, too.
OF_DEVICES = (DEVICE_CALL, DEVICE_LAUNCH)

# Classes that occur rarely in a compiled call, at long intervals.
OF_REGIONS = (COMPILED_REGION, FAST_ANNOTATION)

_BY_NAME = (
    (torch_names.COMPILED_REGION_PREFIX, COMPILED_REGION),
    (torch_names.FAST_ANNOTATION_PREFIXES, FAST_ANNOTATION),
    (torch_names.BACKWARD_NODE_PREFIX, BACKWARD_NODE),
)

Points = tuple[tuple[float, float], ...]
"""A piecewise linear function that starts at (0, 0): (argument, value), both ascending."""


@dataclass(frozen=True, slots=True)
class EventCost:
    """Cost of one event of a class in ns: in all, and inside its own span.

    Attributes:
        spread_ns: The larger of the worst residual of the fit per event, and the distance of 95 % of processes from their median.
        cold_after_kernels_ns: (kernels' time in ns, cold-cache cost in ns): extra cost of the first event after kernels, outside.
        first_ns: Extra cost of the first event in a row of its class, outside.
        cold_by_distance: (LRU stack distance, cold-cache cost as a share of the event's cost).
        cold_by_interval: (ns from one event of the class to the next, cold-cache cost as a share of the event's cost).
    """

    total_ns: float
    inside_ns: float
    spread_ns: float = 0.0
    cold_after_kernels_ns: Points = ()
    first_ns: float = 0.0
    cold_by_distance: Points = ()
    cold_by_interval: Points = ()

    @property
    def outside_ns(self) -> float:
        """The part of the cost that falls into the surrounding event."""
        return self.total_ns - self.inside_ns

    def after_kernels_ns(self, kernels_ns: Floats) -> Floats:
        """Extra cost of each event, if kernels ran for so long since the last event of the class."""
        return _along(self.cold_after_kernels_ns, kernels_ns)

    def at(self, stack_distance: float = 0.0, interval_ns: float = 0.0) -> EventCost:
        """The cost at an LRU stack distance and an interval between two events of the class."""
        factor = (1 + between(self.cold_by_distance, stack_distance)) * (
            1 + between(self.cold_by_interval, interval_ns)
        )
        return replace(self, total_ns=factor * self.total_ns, inside_ns=factor * self.inside_ns)


Costs = Mapping[str, EventCost]


def between(points: Points, at: float) -> float:
    """Linear interpolation of points; constant beyond the last."""
    return float(_along(points, np.array(at)))


def _along(points: Points, at: Floats) -> Floats:
    arguments, values = zip((0.0, 0.0), *points, strict=True)
    found: Floats = np.interp(at, arguments, values)
    return found


def event_class(name: str, category: str, *, outer: bool, launches: bool = False) -> str:
    """Class of an event.

    Args:
        category: ``cat`` of the trace.
        outer: Whether no operator calls it.
        launches: Whether it starts work on a device.
    """
    if category == "python_function":
        return C_CALL if name.startswith("<built-in") else PYTHON_FUNCTION
    if category.endswith(("_runtime", "_driver")):
        return DEVICE_LAUNCH if launches else DEVICE_CALL
    for prefixes, named in _BY_NAME:
        if name.startswith(prefixes):
            return named
    if category == "user_annotation":
        return ANNOTATION
    if name == "[memory]":
        return MEMORY
    return OPERATOR_OUTER if outer else OPERATOR_NESTED


def equal_cost(total_ns: float) -> EventCost:
    """A cost of which nothing is known but its sum: half of it inside, and as much uncertain."""
    return EventCost(total_ns, total_ns / 2, total_ns / 2)


def corrected_self_ns(
    self_ns: Ints, parent: Ints, uncovered_ns: int, inside_ns: Floats, outside_ns: Floats, further_ns: float = 0.0
) -> tuple[Floats, float]:
    """Self times minus the profiler's cost, which is inside an event's own span and in the span around it.

    If an event is shorter than its cost, the remainder is taken from all others in proportion: exactly the whole cost is removed.

    Args:
        self_ns: int64, shape ``(n,)``.
        parent: Row of each event's parent, -1 where the loop itself is the parent.
        uncovered_ns: Time of the window that no event covers (the loop's own).
        inside_ns: Cost of each event inside its own span, shape ``(n,)``.
        outside_ns: Cost of each event in the span around it, shape ``(n,)``.
        further_ns: Other extra time of the recording, such as page faults; removed from all in proportion.

    Returns:
        Corrected self times, float64, shape ``(n,)``, all >= 0; corrected uncovered time, >= 0.
    """
    nested = parent >= 0
    of_children = np.bincount(parent[nested], outside_ns[nested], minlength=len(self_ns))
    corrected = np.maximum(self_ns - inside_ns - of_children, 0.0)
    outside = max(0.0, uncovered_ns - float(outside_ns[~nested].sum()))
    before = float(self_ns.sum()) + uncovered_ns
    left = float(corrected.sum()) + outside
    scale = max(0.0, before - float(inside_ns.sum() + outside_ns.sum()) - further_ns) / left if left > 0 else 1.0
    return corrected * scale, outside * scale
