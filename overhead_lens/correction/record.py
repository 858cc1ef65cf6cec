"""What a worker is asked for to learn what the profiler's events cost."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from overhead_lens.machine.operations import Operation

# The flags of the trace that numbers come from: none.
PLAIN = "plain"


class MeasuredCosts(Struct, frozen=True):
    """Calibration calls timed bare and recorded, as ``worker.costs_here`` returns them; and why a kind is missing."""

    rows: list[dict[str, Any]]
    reasons: dict[str, str]


MEASURE_COSTS = Operation("correction.worker:measure_costs", MeasuredCosts)
