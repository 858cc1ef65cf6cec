"""What a watched process's threads do: one closed budget a thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from overhead_lens.budget.asleep import why_unattributed
from overhead_lens.budget.threads import ThreadBudget, is_main, thread_budgets, thread_warnings
from overhead_lens.budget.thresholds import UNATTRIBUTED_SHARE, UNREADABLE_STACKS_SHARE
from overhead_lens.captures.files import KINETO
from overhead_lens.errors import require
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.readers.py_spy.threads import SampledThread
from overhead_lens.result import Result
from overhead_lens.studies.attach.slowdown import slowdown
from overhead_lens.studies.attach.stored import ProcessMeta, read_process
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.traces.analyzer import analyze_trace

FEWEST_SAMPLES = 500
"""Fewer leave a category of 1 % uncertain by about as much."""

_THERE_SHARE = 0.95
_MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class TracedMoment:
    """The trace that a process made of itself after it was watched.

    Attributes:
        file: The trace, in the capture.
        wall_ns: The traced steps, or all of it where an optimizer marks none.
        steps: How many.
        host: The main thread's categories; sums to ``wall_ns``.
    """

    file: str
    wall_ns: int
    steps: int
    host: tuple[HostCategory, ...]

    def __post_init__(self) -> None:
        closes = sum(category.ns for category in self.host) == self.wall_ns
        require(closes, "a traced thread does not sum to its window")


@dataclass(frozen=True, slots=True)
class ProcessBudget(Result):
    """The budgets of a process's threads over the time it was watched.

    Attributes:
        python, torch: Its versions; None if there is none, or it is unknown.
        duration_ns: How long it was watched.
        samples: Stacks of all threads.
        slowdown_share: What watching cost it, by its own CPU clock; None if unknown.
        threads: The main thread first, then the busiest; the host of each sums to ``duration_ns``.
        traced: Of the main thread; None if none was requested or made.
    """

    pid: int
    command: str
    python: str | None
    torch: str | None
    duration_ns: int
    samples: int
    slowdown_share: float | None
    threads: tuple[ThreadBudget, ...]
    warnings: tuple[str, ...]
    capture: str
    traced: TracedMoment | None = None

    def __post_init__(self) -> None:
        closes = all(thread.wall_ns == self.duration_ns for thread in self.threads)
        require(closes, "a thread was watched for another time than its process")
        require(sum(thread.samples for thread in self.threads) == self.samples, "samples of the threads do not sum")


def process_of(path: Path, classifier: Classifier) -> ProcessBudget:
    """The budget of the watch stored in a directory.

    Raises:
        UsageError: It is none, or a damaged one.
    """
    process = make_process(*read_process(path), classifier, str(path))
    trace = path / KINETO
    return replace(process, traced=_traced(trace, process.pid, classifier)) if trace.exists() else process


def _traced(path: Path, pid: int, classifier: Classifier) -> TracedMoment | None:
    """The main thread of a trace; None if the trace has nothing of it.

    Raises:
        UsageError: The trace is damaged.
    """
    analysis = analyze_trace(read_trace(path), classifier)
    main = next((thread for thread in analysis.threads if thread.tid == str(pid)), None)
    if main is None:
        return None
    return TracedMoment(path.name, analysis.window.wall_ns, len(analysis.steps), main.host)


def make_process(
    meta: ProcessMeta, threads: Sequence[SampledThread], classifier: Classifier, capture: str
) -> ProcessBudget:
    """The budget of a watch of at least one thread; ``capture`` is empty where it was not stored."""
    budgets = thread_budgets(threads, meta.pid, meta.duration_ns, classifier, dict(meta.running), dict(meta.in_system))
    share, reason = slowdown(meta.before, meta.during)
    unknown_cost = [f"what watching cost it is unknown: {reason}"] if reason and meta.before else []
    return ProcessBudget(
        pid=meta.pid,
        command=meta.process_command,
        python=meta.python,
        torch=meta.torch,
        duration_ns=meta.duration_ns,
        samples=sum(thread.samples for thread in threads),
        slowdown_share=share,
        threads=budgets,
        warnings=(*meta.warnings, *unknown_cost, *_warnings(meta, budgets), meta.sees),
        capture=capture,
    )


def _warnings(meta: ProcessMeta, threads: Sequence[ThreadBudget]) -> Iterator[str]:
    first = threads[0]
    if not is_main(first, meta.pid):
        yield "the main thread gave no stack: it runs no Python"
    if first.samples < FEWEST_SAMPLES:
        points = 196 * (0.01 * 0.99 / first.samples) ** 0.5
        yield f"only {first.samples} samples of the main thread: a category of 1 % is uncertain by {points:.1f} points"
    if meta.errors > UNREADABLE_STACKS_SHARE * (meta.samples + meta.errors):
        yield f"{meta.errors} of {meta.samples + meta.errors} stacks could not be read: the shares are of the others"
    unknown = first.category("unattributed")
    if unknown.share > UNATTRIBUTED_SHARE:
        reason = why_unattributed(unknown.top[0].frame)
        yield f"{unknown.share:.1%} of the first thread is unattributed: {reason}"
    yield from thread_warnings(meta.unplaced, first.host, ((thread.called, thread.slept) for thread in threads))
    partly = [thread for thread in threads if thread.seen_share < _THERE_SHARE]
    if partly:
        names = ", ".join(f"{thread.name or thread.thread} {thread.seen_share:.0%}" for thread in partly[:_MOST_NAMES])
        more = f" and {len(partly) - _MOST_NAMES} more" if len(partly) > _MOST_NAMES else ""
        yield f"not all threads were there all the time ({names}{more}): theirs is the budget of that part, scaled to the whole"
