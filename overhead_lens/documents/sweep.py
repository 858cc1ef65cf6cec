"""``overhead-lens/sweep/3``: time over sizes; durations in ns per call, rates in elements per second."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, Literal

from overhead_lens.documents.common import Document, Interval, Row, fill
from overhead_lens.studies.sweep import analysis
from overhead_lens.studies.sweep.analysis import SweptPoint
from overhead_lens.subject import Subject

_MODEL = "overhead_ns + size * element_ns, least squares of relative errors"


class Variant(Row, frozen=True):
    """A variant's line: overhead, ns, and ns per element; a rate that is infinite is null."""

    name: str
    overhead_ns: float
    overhead_ci95_ns: Interval
    element_ns: float
    element_ci95_ns: Interval
    rate_per_s: float | None
    rate_ci95_per_s: tuple[float | None, float | None]
    fit: str
    worst_share: float
    points: list[SweptPoint]


class Crossing(Row, frozen=True):
    """Where the lines of two variants cross: the size (null without a crossing), its interval (an infinite end is null)."""

    below: str
    above: str
    size: float | None
    ci95: tuple[float | None, float | None] | None
    between: tuple[int, int] | None


class SweepDocument(Document, frozen=True, kw_only=True):
    """Overhead and rate of each variant, and from which size on which one is the fastest."""

    schema: Literal["overhead-lens/sweep/3"] = "overhead-lens/sweep/3"
    subject: Subject
    per: Literal["call"] = "call"
    unit: Literal["ns"] = "ns"
    against: str
    sizes: list[int]
    processes: int
    model: str = _MODEL
    tolerance_share: float = analysis.TOLERANCE_SHARE
    variants: list[Variant]
    crossings: list[Crossing]
    fastest: list[list[str]]
    sentence: str
    warnings: list[str]
    environment: dict[str, Any]
    directory: str


def sweep_document(sweep: analysis.Sweep) -> SweepDocument:
    """The document of a sweep."""
    return fill(
        SweepDocument,
        sweep,
        variants=[_variant(variant) for variant in sweep.variants],
        crossings=[fill(Crossing, crossing, ci95=_finite(crossing.ci95)) for crossing in sweep.crossings],
    )


def _variant(variant: analysis.SweptVariant) -> Variant:
    line, (low_ns, high_ns) = variant.line, variant.element_ci95_ns
    return fill(
        Variant,
        variant,
        **asdict(line),
        rate_per_s=_rate(line.element_ns),
        rate_ci95_per_s=(_rate(high_ns), _rate(low_ns)),
    )


def _finite(interval: Interval | None) -> list[float | None] | None:
    return interval and [end if math.isfinite(end) else None for end in interval]


def _rate(element_ns: float) -> float | None:
    return 1e9 / element_ns if element_ns > 0 else None
