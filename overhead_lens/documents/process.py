"""``overhead-lens/process/1``: budgets of a running process's threads; durations in ns over the time it was watched."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from overhead_lens.contract import Ratio
from overhead_lens.documents.common import Category, Document, Row, fill
from overhead_lens.studies.attach import analysis


class Thread(Row, frozen=True):
    """A thread's closed budget: ``host`` sums to ``wall_ns``, which is the duration."""

    name: str
    thread: int
    process: int
    wall_ns: int
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
