"""``overhead-lens/threads/1``: the difference of two watched processes, in shares of their threads' time."""

from __future__ import annotations

from typing import Annotated, Literal

from overhead_lens.documents.common import Document, Interval, Rounded, Row, fill
from overhead_lens.documents.process import ProcessDocument, process_document
from overhead_lens.studies.attach import delta

Share = Annotated[float, Rounded(5)]


class ShareDelta(Row, frozen=True):
    """A category's share of a thread's time in both; ``verdict`` is ``more``, ``less`` or ``same``."""

    category: str
    base_share: Share
    new_share: Share
    delta_share: Share
    ci95_share: Annotated[Interval, Rounded(5)]
    verdict: str


class ThreadDelta(Row, frozen=True):
    """Two threads of one name."""

    name: str
    base_thread: int
    new_thread: int
    base_busy_share: Share
    new_busy_share: Share
    host: list[ShareDelta]


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
