"""Asks a worker what the profiler's events cost."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from overhead_lens.machine.operations import Operation

# The flags of the trace that numbers come from: none.
PLAIN = "plain"


class MeasuredCosts(Struct, frozen=True):
    """Calibration calls timed bare and recorded, as ``worker.costs_here`` returns them."""

    rows: list[dict[str, Any]]
    reasons: dict[str, str]


MEASURE_COSTS = Operation("correction.worker:measure_costs", MeasuredCosts)
