"""What one event of a class costs torch.profiler, and which class an event is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

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

# torch/_dynamo/utils.py, torch/_functorch/_aot_autograd/runtime_wrappers.py, torch/_inductor/output_code.py.

# Classes whose cost was measured in calls of few different events.
OF_OPERATORS = (OPERATOR_OUTER, OPERATOR_NESTED, BACKWARD_NODE)

# Classes of which a compiled call has few, far apart.
OF_REGIONS = (COMPILED_REGION, FAST_ANNOTATION)

_BY_NAME = (
    (torch_names.COMPILED_REGION_PREFIX, COMPILED_REGION),
    (torch_names.FAST_ANNOTATION_PREFIXES, FAST_ANNOTATION),
    (torch_names.BACKWARD_NODE_PREFIX, BACKWARD_NODE),
)


@dataclass(frozen=True, slots=True)
class EventCost:
    """What one event of a class costs, in ns: in all, and how much of it inside its own span.

    Attributes:
        spread_ns: Per event, the larger of two distances: of the furthest calibration call from the fit, and of 95 % of processes
            from their median.
        displaced_ns: What the first one after kernels costs beyond ``total_ns``, around it: the kernels' time and that, rising.
        first_ns: What the first one in a row of its class costs beyond ``total_ns``, around it.
        varied: By how much of itself it costs more among many different events: their reuse distance (``reuse.py``) and that,
            rising.
        apart: By how much of itself it costs more the longer ago its like was: the time from one to the next and that, rising.
    """

    total_ns: float
    inside_ns: float
    spread_ns: float = 0.0
    displaced_ns: tuple[tuple[float, float], ...] = ()
    first_ns: float = 0.0
    varied: tuple[tuple[float, float], ...] = ()
    apart: tuple[tuple[float, float], ...] = ()

    @property
    def outside_ns(self) -> float:
        """What falls into the event around it."""
        return self.total_ns - self.inside_ns

    def after_kernels_ns(self, kernels_ns: float) -> float:
        """What one more costs if kernels of so long ran since the last of its kind; linear between what was measured."""
        return between(self.displaced_ns, kernels_ns)

    def among(self, reuse_distance: float) -> EventCost:
        """What one costs among events of a reuse distance (``reuse.py``); linear between what was measured."""
        return self._times(1 + between(self.varied, reuse_distance))

    def every(self, apart_ns: float) -> EventCost:
        """What one costs if they are so far apart; linear between what was measured."""
        return self._times(1 + between(self.apart, apart_ns))

    def _times(self, factor: float) -> EventCost:
        return replace(self, total_ns=factor * self.total_ns, inside_ns=factor * self.inside_ns)


Costs = Mapping[str, EventCost]


def between(points: Sequence[tuple[float, float]], at: float) -> float:
    """Linear interpolation from (0, 0) on; what lies beyond the last point is as high as that."""
    places, more = zip((0.0, 0.0), *points, strict=True)
    return float(np.interp(at, places, more))


def event_class(name: str, category: str, *, outer: bool) -> str:
    """Which cost an event has.

    Args:
        name: Event name.
        category: ``cat`` of the trace.
        outer: Whether no operator calls it.
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


def uniform_costs(total_ns: float) -> dict[str, EventCost]:
    """The same cost for every event, half of it inside: what a capture without a calibration has."""
    return {OPERATOR_NESTED: EventCost(total_ns, total_ns / 2, total_ns / 2)}
