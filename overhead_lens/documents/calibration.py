"""``overhead-lens/calibration/1``: what torch.profiler's events cost here, and the machine's peaks."""

from __future__ import annotations

from typing import Any, Literal

from overhead_lens.contract import Tenths
from overhead_lens.correction.event_cost import EventCost
from overhead_lens.documents.common import Document, Row, fill
from overhead_lens.recorder.calibrate import Calibrated


class AfterKernels(Row, frozen=True):
    """How much more an event costs after kernels of that length, ns."""

    kernels_ns: Tenths
    more_ns: Tenths


class Cost(Row, frozen=True):
    """What an event of a class costs, ns: in all, inside its own span, and how far off single calls are."""

    total_ns: Tenths
    inside_ns: Tenths
    spread_ns: Tenths
    after_kernels: list[AfterKernels]


class CalibrationDocument(Document, frozen=True, kw_only=True):
    """Costs by the profiler's flags and the class of event; ``reasons`` says why a class is missing."""

    schema: Literal["overhead-lens/calibration/1"] = "overhead-lens/calibration/1"
    unit: Literal["ns"] = "ns"
    costs: dict[str, dict[str, Cost]]
    peaks: dict[str, Any]
    reasons: dict[str, str]
    environment: dict[str, Any]


def calibration_document(calibrated: Calibrated) -> CalibrationDocument:
    """The document of a calibration and the costs that are fitted to it."""
    return CalibrationDocument(
        costs={flags: {name: _cost(cost) for name, cost in costs.items()} for flags, costs in calibrated.costs.items()},
        **{name: calibrated.calibration.get(name, {}) for name in ("peaks", "reasons", "environment")},
    )


def _cost(cost: EventCost) -> Cost:
    return fill(Cost, cost, after_kernels=[AfterKernels(*point) for point in cost.cold_after_kernels_ns])
