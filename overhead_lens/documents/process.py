"""``overhead-lens/process/1``: budgets of a running process; ``overhead-lens/threads/1``: the difference of two of them."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from overhead_lens.contract import Ratio, ShareOfTime
from overhead_lens.documents.common import Category, Document, Row, fill
from overhead_lens.studies.attach import analysis, delta
from overhead_lens.studies.attach.delta import ThreadDelta


class Thread(Row, frozen=True):
    """A thread's closed budget: ``host`` sums to ``wall_ns``, which is the duration.

    The thread was there for ``seen_share`` of it, from which ``host`` is scaled, and at work for ``busy_share`` of it.
    """

    name: str
    thread: int
    process: int
    wall_ns: int
    seen_share: ShareOfTime
    busy_share: ShareOfTime
    host: list[Category]


class Traced(Row, frozen=True):
    """What the main thread did while it was traced, after the watch: ``host`` sums to ``wall_ns``. The trace is ``file``."""

    file: str
    wall_ns: int
    steps: int
    host: list[Category]


class ProcessDocument(Document, frozen=True, kw_only=True):
    """What the threads of a process did while it was watched; the main thread first, then the busiest.

    ``slowdown_share`` is what watching cost it, by its own CPU clock; null if unknown. ``trace`` is there where one was made.
    """

    schema: Literal["overhead-lens/process/1"] = "overhead-lens/process/1"
    pid: int
    command: str
    python: str | None
    torch: str | None
    duration_ns: int
    samples: int
    slowdown_share: Ratio | None
    threads: list[Thread]
    warnings: list[str]
    capture: str
    trace: Traced | UnsetType = UNSET


def process_document(process: analysis.ProcessBudget) -> ProcessDocument:
    """The document of a watched process."""
    traced = {} if process.traced is None else {"trace": fill(Traced, process.traced)}
    return fill(ProcessDocument, process, **traced)


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
