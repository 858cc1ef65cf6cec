"""``overhead-lens/ladder/2``: a call with one thing after another left out; durations in ns per call."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from overhead_lens.documents.common import Document, Interval, json_subject
from overhead_lens.studies.ladder import analysis
from overhead_lens.studies.ladder.analysis import PublishedRung
from overhead_lens.subject import Subject


class Rung(Struct, frozen=True, forbid_unknown_fields=True):
    """A way of doing the call, ns; ``step_ns`` is the difference to the rung ``against`` that it differs from in one thing."""

    title: str
    against: str | None
    name: str
    ns: float | None
    ci95_ns: Interval | None
    step_ns: float | None
    step_ci95_ns: Interval | None
    minor_faults: float | None
    reason: str | None
    published: list[PublishedRung]
    published_us: float | None


class Layer(Struct, frozen=True, forbid_unknown_fields=True):
    """A layer of the compiled call, ns; the layers sum to it."""

    name: str
    ns: int


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """A small job done in two ways, ns."""

    pair: str
    slow: str
    fast: str
    published_ns: int | None
    slow_ns: float | None
    fast_ns: float | None
    delta_ns: float | None
    delta_ci95_ns: Interval | None
    reason: str | None


class LadderDocument(Document, frozen=True, kw_only=True):
    """What each layer of a compiled call costs."""

    schema: Literal["overhead-lens/ladder/2"] = "overhead-lens/ladder/2"
    subject: Subject
    per: Literal["call"] = "call"
    unit: Literal["ns"] = "ns"
    processes: int
    rungs: list[Rung]
    layers: list[Layer]
    steps: list[Step]
    sentence: str
    warnings: list[str]
    environment: dict[str, Any]
    directory: str


def ladder_document(ladder: analysis.Ladder) -> LadderDocument:
    """The document of a ladder."""
    return LadderDocument(
        subject=json_subject(ladder.subject),
        processes=ladder.processes,
        rungs=[_rung(rung) for rung in ladder.rungs],
        layers=[Layer(name, ns) for name, ns in analysis.layers(ladder)],
        steps=[_step(step) for step in ladder.steps],
        sentence=ladder.sentence,
        warnings=list(ladder.warnings),
        environment=dict(ladder.environment),
        directory=ladder.directory,
    )


def _rung(rung: analysis.Rung) -> Rung:
    return Rung(
        rung.kind.title,
        rung.kind.against,
        rung.name,
        rung.ns,
        rung.ci95_ns,
        rung.step_ns,
        rung.step_ci95_ns,
        rung.minor_faults,
        rung.reason,
        list(rung.published),
        rung.published[0].ns / 1000 if rung.published else None,
    )


def _step(step: analysis.LadderStep) -> Step:
    kind = step.kind
    return Step(
        kind.pair,
        kind.slow,
        kind.fast,
        kind.published_ns,
        step.slow_ns,
        step.fast_ns,
        step.delta_ns,
        step.delta_ci95_ns,
        step.reason,
    )
