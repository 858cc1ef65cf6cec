"""``overhead-lens/advice/1``: what was tried to make a call faster, and what came of it; durations in ns per call."""

from __future__ import annotations

from typing import Literal

from overhead_lens.contract import ShareOfTime
from overhead_lens.documents.breakdown import BreakdownDocument, breakdown_document
from overhead_lens.documents.common import Document, Row, fill
from overhead_lens.studies.advise import analysis
from overhead_lens.studies.advise.analysis import Saving
from overhead_lens.subject import Subject


class CategoryChange(Row, frozen=True):
    """What a category changed by, ns per call."""

    category: str
    delta_ns: int


class Remedy(Row, frozen=True):
    """A remedy: ``how`` is the line of code that does it.

    ``wall`` and ``verdict`` are null if it was not measured, for the ``reason``. ``host`` is empty but of the best; it sums to
    the difference of the walls.
    """

    remedy: str
    summary: str
    how: str
    source: str
    safety: Literal["safe", "changes_semantics", "unsafe"]
    output: Literal["equal", "close", "differs", "unknown"]
    status: Literal["measured", "not_applicable", "failed"]
    reason: str | None
    wall: Saving | None
    verdict: str | None
    host: list[CategoryChange]


class Together(Row, frozen=True):
    """The best remedies that go together, measured in turns with the call as it is."""

    remedies: list[str]
    wall: Saving
    verdict: str


class AdviceDocument(Document, frozen=True, kw_only=True):
    """Remedies that help come first, by saving."""

    schema: Literal["overhead-lens/advice/1"] = "overhead-lens/advice/1"
    subject: Subject
    base: BreakdownDocument
    verdict: Literal["overhead", "work", "mixed"]
    overhead_share: ShareOfTime
    sentence: str
    remedies: list[Remedy]
    together: Together | None
    warnings: list[str]
    directory: str


def advice_document(advice: analysis.Advice) -> AdviceDocument:
    """The document of advice."""
    return fill(
        AdviceDocument,
        advice,
        base=breakdown_document(advice.base),
        remedies=[
            fill(Remedy, tried, host=[CategoryChange(*each) for each in tried.host]) for tried in advice.remedies
        ],
        together=advice.together and fill(Together, advice.together, verdict=advice.together.delta.verdict),
    )
