"""``overhead-lens/ladder/2``: a call with one thing after another left out; durations in ns per call."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from overhead_lens.contract import TenthsInterval
from overhead_lens.documents.common import Document, Interval, Row, fill, json_subject
from overhead_lens.studies.ladder import analysis
from overhead_lens.studies.ladder.analysis import PublishedRung
from overhead_lens.subject import Subject


class Rung(Row, frozen=True):
    """A way of doing the call, ns; ``step_ns`` is the difference to the rung ``against`` that it differs from in one thing."""

    title: str
    against: str | None
    name: str
    ns: float | None
    ci95_ns: TenthsInterval | None
    step_ns: float | None
    step_ci95_ns: Interval | None
    minor_faults: float | None
    reason: str | None
    published: list[PublishedRung]
    published_us: float | None


class Layer(Row, frozen=True):
    """A layer of the compiled call, ns; the layers sum to it, and the intervals are of paired differences."""

    name: str
    ns: int
    ci95_ns: Interval


class Step(Row, frozen=True):
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
    return fill(
        LadderDocument,
        ladder,
        subject=json_subject(ladder.subject),
        rungs=[_rung(rung) for rung in ladder.rungs],
        layers=[fill(Layer, layer) for layer in ladder.layers],
        steps=[fill(Step, step, **asdict(step.kind)) for step in ladder.steps],
    )


def _rung(rung: analysis.Rung) -> Rung:
    published_us = rung.published[0].ns / 1000 if rung.published else None
    return fill(Rung, rung, **asdict(rung.kind), published_us=published_us)
