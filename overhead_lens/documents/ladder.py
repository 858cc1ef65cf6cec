"""``overhead-lens/ladder/3``: a call with one thing after another left out; durations in ns per call."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from overhead_lens.contract import TenthsInterval
from overhead_lens.documents.common import Document, Interval, Row, fill
from overhead_lens.studies.ladder import analysis
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


class LadderDocument(Document, frozen=True, kw_only=True):
    """What each layer of a compiled call costs."""

    schema: Literal["overhead-lens/ladder/3"] = "overhead-lens/ladder/3"
    subject: Subject
    per: Literal["call"] = "call"
    unit: Literal["ns"] = "ns"
    processes: int
    rungs: list[Rung]
    layers: list[analysis.Layer]
    sentence: str
    warnings: list[str]
    environment: dict[str, Any]
    directory: str


def ladder_document(ladder: analysis.Ladder) -> LadderDocument:
    """The document of a ladder."""
    return fill(LadderDocument, ladder, rungs=[fill(Rung, rung, **asdict(rung.kind)) for rung in ladder.rungs])
