"""``overhead-lens/counts-delta/2``: instructions counted again and compared with a baseline."""

from __future__ import annotations

from typing import Literal

from overhead_lens.documents.common import Document, fill, json_subject
from overhead_lens.documents.delta import CountDelta, Limit, count_delta, limit
from overhead_lens.studies.check.outcome import CountOutcome
from overhead_lens.subject import Subject


class CountsDocument(Document, frozen=True, kw_only=True):
    """The outcome of a check in instructions: ``base`` and ``new`` are directories, ``calls`` were counted on either side."""

    schema: Literal["overhead-lens/counts-delta/2"] = "overhead-lens/counts-delta/2"
    subject: Subject
    base: str
    new: str
    calls: int
    instructions: CountDelta
    limits: list[Limit]
    regressed: bool


def counts_document(outcome: CountOutcome) -> CountsDocument:
    """The document of a check in instructions."""
    return fill(
        CountsDocument,
        outcome,
        subject=json_subject(outcome.subject),
        instructions=count_delta(outcome.delta),
        limits=[limit(finding) for finding in outcome.findings],
    )
