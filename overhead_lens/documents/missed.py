"""``overhead-lens/missed/1``: what a hot loop would have missed of a run; durations in ns per step."""

from __future__ import annotations

from typing import Annotated, Literal

from overhead_lens.documents.common import Document, Rounded, Row, fill
from overhead_lens.documents.run import RunDocument, run_document
from overhead_lens.studies.run.missed import RealLife


class Figure(Row, frozen=True):
    """A category, ``category/part`` or ``slow steps``; ``remedy`` and ``how`` are empty where nothing is known against it."""

    figure: str
    ns: int
    share: Annotated[float, Rounded(5)]
    because: str
    remedy: str
    how: str


class MissedDocument(Document, frozen=True, kw_only=True):
    """Figures of a run that a hot loop of its step lacks, the most time first, not to be added up."""

    schema: Literal["overhead-lens/missed/1"] = "overhead-lens/missed/1"
    run: RunDocument
    median_ns: int | None
    missed: list[Figure]
    sentence: str
    notes: list[str]


def missed_document(found: RealLife) -> MissedDocument:
    """The document of a run held against a hot loop."""
    return fill(MissedDocument, found, run=run_document(found.run))
