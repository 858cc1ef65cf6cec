"""``overhead-lens/threads/1``: the difference of two watched processes, in shares of their threads' time."""

from __future__ import annotations

from typing import Literal

from overhead_lens.documents.common import Document, fill
from overhead_lens.documents.process import ProcessDocument, process_document
from overhead_lens.studies.attach import delta
from overhead_lens.studies.attach.delta import ThreadDelta


class ThreadsDocument(Document, frozen=True, kw_only=True):
    """How the time of a process's threads divides in two watches; ``gone`` and ``came`` have no counterpart."""

    schema: Literal["overhead-lens/threads/1"] = "overhead-lens/threads/1"
    base: ProcessDocument
    new: ProcessDocument
    threads: list[ThreadDelta]
    gone: list[str]
    came: list[str]
    sentence: str
    warnings: list[str]


def threads_document(difference: delta.ProcessDelta) -> ThreadsDocument:
    """The document of a difference."""
    both = {"base": process_document(difference.base), "new": process_document(difference.new)}
    return fill(ThreadsDocument, difference, **both)
