"""``overhead-lens/missed/1``: what a hot loop would have missed of a run; durations in ns per step."""

from __future__ import annotations

from typing import Literal

from overhead_lens.documents.common import Document, fill
from overhead_lens.documents.run import RunDocument, run_document
from overhead_lens.studies.run.missed import EndToEnd, Shortfall


class MissedDocument(Document, frozen=True, kw_only=True):
    """Figures of a run that a hot loop of its step lacks, the most time first, not to be added up."""

    schema: Literal["overhead-lens/missed/1"] = "overhead-lens/missed/1"
    run: RunDocument
    median_ns: int | None
    missed: list[Shortfall]
    sentence: str
    notes: list[str]


def missed_document(found: EndToEnd) -> MissedDocument:
    """The document of a run compared with a hot loop."""
    return fill(MissedDocument, found, run=run_document(found.run))
