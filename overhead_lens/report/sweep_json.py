"""The JSON of a size sweep, ``overhead-lens/sweep/1``; durations are ns per call, rates elements per second."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from overhead_lens.analysis.line_fit import Line
from overhead_lens.analysis.model import Interval
from overhead_lens.analysis.sweep import TOLERANCE_SHARE, Crossing, Sweep, SweptVariant

SCHEMA = "overhead-lens/sweep/1"


def sweep_document(sweep: Sweep) -> dict[str, Any]:
    """The document; what is infinite is null."""
    return {
        "schema": SCHEMA,
        "scenario": sweep.scenario,
        "compile": sweep.compile,
        "device": sweep.device_kind,
        "params": dict(sweep.params),
        "per": "call",
        "unit": "ns",
        "against": sweep.against,
        "sizes": list(sweep.sizes),
        "processes": sweep.processes,
        "model": "overhead_ns + size * element_ns, least squares of relative errors",
        "tolerance_share": TOLERANCE_SHARE,
        "variants": [_variant(each) for each in sweep.variants],
        "crossings": [_crossing(each) for each in sweep.crossings],
        "fastest": [list(names) for names in sweep.fastest],
        "sentence": sweep.sentence,
        "warnings": list(sweep.warnings),
        "environment": dict(sweep.environment),
        "directory": sweep.directory,
    }


def _variant(variant: SweptVariant) -> dict[str, Any]:
    low_ns, high_ns = variant.element_ci95_ns
    return {
        "name": variant.name,
        "overhead_ns": variant.line.overhead_ns,
        "overhead_ci95_ns": list(variant.overhead_ci95_ns),
        "element_ns": variant.line.element_ns,
        "element_ci95_ns": [low_ns, high_ns],
        "rate_per_s": _rate(variant.line.element_ns),
        "rate_ci95_per_s": [_rate(high_ns), _rate(low_ns)],
        "fit": variant.fit,
        "worst_share": variant.line.worst_share,
        "published": None if variant.published is None else _line(variant.published, known=variant.published_overhead),
        "points": [{**asdict(each), "misses": each.misses} for each in variant.points],
    }


def _line(line: Line, *, known: bool) -> dict[str, Any]:
    return {**asdict(line), "overhead_known": known, "rate_per_s": _rate(line.element_ns)}


def _rate(element_ns: float) -> float | None:
    return 1e9 / element_ns if element_ns > 0 else None


def _crossing(crossing: Crossing) -> dict[str, Any]:
    return {**asdict(crossing), "ci95": _finite(crossing.ci95)}


def _finite(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [each if math.isfinite(each) else None for each in interval]
