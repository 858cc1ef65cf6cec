"""``overhead-lens/calibration/1``: what torch.profiler's events cost here, and the machine's peaks."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from overhead_lens.correction.event_cost import EventCost
from overhead_lens.documents.common import Document
from overhead_lens.recorder.calibrate import Calibrated


class AfterKernels(Struct, frozen=True, forbid_unknown_fields=True):
    """How much more an event costs after kernels of that length, ns."""

    kernels_ns: float
    more_ns: float


class Cost(Struct, frozen=True, forbid_unknown_fields=True):
    """What an event of a class costs, ns: in all, inside its own span, and how far off single calls are."""

    total_ns: float
    inside_ns: float
    spread_ns: float
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
    calibration = calibrated.calibration
    return CalibrationDocument(
        costs={flags: {name: _cost(cost) for name, cost in of.items()} for flags, of in calibrated.costs.items()},
        peaks=calibration.get("peaks", {}),
        reasons=calibration.get("reasons", {}),
        environment=calibration.get("environment", {}),
    )


def _cost(cost: EventCost) -> Cost:
    after = [AfterKernels(round(time, 1), round(more, 1)) for time, more in cost.cold_after_kernels_ns]
    return Cost(round(cost.total_ns, 1), round(cost.inside_ns, 1), round(cost.spread_ns, 1), after)
