"""``overhead-lens/sweep/2``: time over sizes; durations in ns per call, rates in elements per second."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from overhead_lens.documents.common import Document, Interval, finite_interval, json_subject
from overhead_lens.stats.line_fit import Line
from overhead_lens.studies.sweep import analysis
from overhead_lens.subject import Subject

_MODEL = "overhead_ns + size * element_ns, least squares of relative errors"


class PublishedLine(Struct, frozen=True, forbid_unknown_fields=True):
    """The line through what others measured; ``overhead_known`` if they measured the smallest size."""

    overhead_ns: float
    element_ns: float
    worst_share: float
    overhead_known: bool
    rate_per_s: float | None


class Point(Struct, frozen=True, forbid_unknown_fields=True):
    """A size: time per call, ns, and how far the line lies above it, as a share; ``misses`` beyond tolerance and error."""

    params: dict[str, int]
    size: int
    ns: float
    ci95_ns: Interval
    residual_share: float
    residual_ci95: Interval
    published_ns: float | None
    misses: bool


class Variant(Struct, frozen=True, forbid_unknown_fields=True):
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
    published: PublishedLine | None
    points: list[Point]


class Crossing(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the lines of two variants cross: the size (null without a crossing), its interval (an infinite end is null)."""

    below: str
    above: str
    size: float | None
    ci95: tuple[float | None, float | None] | None
    between: tuple[int, int] | None
    published: float | None


class SweepDocument(Document, frozen=True, kw_only=True):
    """Overhead and rate of each variant, and from which size on which one is the fastest."""

    schema: Literal["overhead-lens/sweep/2"] = "overhead-lens/sweep/2"
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
    return SweepDocument(
        subject=json_subject(sweep.subject),
        against=sweep.against,
        sizes=list(sweep.sizes),
        processes=sweep.processes,
        variants=[_variant(each) for each in sweep.variants],
        crossings=[
            Crossing(each.below, each.above, each.size, finite_interval(each.ci95), each.between, each.published)
            for each in sweep.crossings
        ],
        fastest=[list(names) for names in sweep.fastest],
        sentence=sweep.sentence,
        warnings=list(sweep.warnings),
        environment=dict(sweep.environment),
        directory=sweep.directory,
    )


def _variant(variant: analysis.SweptVariant) -> Variant:
    low_ns, high_ns = variant.element_ci95_ns
    return Variant(
        variant.name,
        variant.line.overhead_ns,
        variant.overhead_ci95_ns,
        variant.line.element_ns,
        variant.element_ci95_ns,
        _rate(variant.line.element_ns),
        (_rate(high_ns), _rate(low_ns)),
        variant.fit,
        variant.line.worst_share,
        None if variant.published is None else _line(variant.published, known=variant.published_overhead),
        [_point(each) for each in variant.points],
    )


def _point(point: analysis.SweptPoint) -> Point:
    return Point(
        dict(point.params),
        point.size,
        point.ns,
        point.ci95_ns,
        point.residual_share,
        point.residual_ci95,
        point.published_ns,
        point.misses,
    )


def _line(line: Line, *, known: bool) -> PublishedLine:
    return PublishedLine(line.overhead_ns, line.element_ns, line.worst_share, known, _rate(line.element_ns))


def _rate(element_ns: float) -> float | None:
    return 1e9 / element_ns if element_ns > 0 else None
