"""``overhead-lens/ranks/1``: the runs of a job's ranks."""

from __future__ import annotations

from typing import Literal

from overhead_lens.documents.common import Document, fill
from overhead_lens.documents.run import RunDocument, run_document
from overhead_lens.studies.run.job import RunJob


class RanksDocument(Document, frozen=True, kw_only=True):
    """One run for each rank that completed, in order of rank."""

    schema: Literal["overhead-lens/ranks/1"] = "overhead-lens/ranks/1"
    ranks: list[RunDocument]
    capture: str


def ranks_document(job: RunJob) -> RanksDocument:
    """The document of a job."""
    return fill(RanksDocument, job, ranks=[run_document(run) for run in job.ranks])
