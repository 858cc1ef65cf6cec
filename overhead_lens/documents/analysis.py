"""``overhead-lens/analysis/1``: exported traces, host and device; durations in whole ns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from overhead_lens.documents.common import Document
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.traces import model, ranks
from overhead_lens.traces.model import Cost, Kinds, Launches
from overhead_lens.traces.ranks import Excess, RankTime, Spread

ISSUES = ("partial_overlap", "negative_duration", "unlinked_device_event", "truncated")
"""Reasons that are listed also where their count is 0."""


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A named share of a category, ns."""

    name: str
    ns: int


class Frame(Struct, frozen=True, forbid_unknown_fields=True):
    """A function or event and its self time in a category, ns."""

    frame: str
    ns: int


class Category(Struct, frozen=True, forbid_unknown_fields=True):
    """A host category, ns; one recording has no interval, so ``ci95_ns`` is null."""

    category: str
    ns: int
    ci95_ns: None
    share: float
    evidence: str
    parts: list[Part]
    top: list[Frame]


class Window(Struct, frozen=True, forbid_unknown_fields=True):
    """From the first to the last instant of host and device work, and how many steps it holds."""

    start_ns: int
    wall_ns: int
    steps: int


class Thread(Struct, frozen=True, forbid_unknown_fields=True):
    """Another host thread; its categories sum to the window."""

    pid: str
    tid: str
    name: str
    covered_ns: int
    host: list[Category]


class Device(Struct, frozen=True, forbid_unknown_fields=True):
    """A device: busy and idle partition its span, ``idle_blame`` the idle time."""

    device: str
    name: str
    events: int
    span_ns: int
    busy_ns: int
    idle_ns: int
    kinds: Kinds
    idle_blame: dict[str, int]
    launch: Launches


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """A ``ProfilerStep#N`` window; its host categories sum to it."""

    step: int
    start_ns: int
    wall_ns: int
    host: list[Category]
    device: list[Device]


class Trace(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=False):
    """One trace. ``host`` is the busiest thread's; one that failed has its ``error`` and nothing else."""

    path: str
    rank: int | None
    world_size: int | None
    events: int | None
    error: str | None
    issues: dict[str, int]
    window: Window | None
    host: list[Category]
    threads: list[Thread]
    device: list[Device]
    steps: list[Step]
    operators: list[Cost] | UnsetType = UNSET
    kernels: list[Cost] | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET


class Ranks(Struct, frozen=True, forbid_unknown_fields=True):
    """Ranks of one job compared, ns; ``straggler`` is what the slowest spends more time in than the median of the others."""

    slowest: str
    by_collectives: bool
    ranks: list[RankTime]
    spreads: list[Spread]
    straggler: list[Excess]
    notes: list[str]


class AnalysisDocument(Document, frozen=True, kw_only=True):
    """Where the time of recorded traces went, in the order in which they were named; ``ranks`` for several of a job."""

    schema: Literal["overhead-lens/analysis/1"] = "overhead-lens/analysis/1"
    traces: list[Trace]
    ranks: Ranks | None = None


def job_document(job: ranks.Job) -> AnalysisDocument:
    """The document of analyses, and of the comparison of their ranks."""
    return AnalysisDocument(
        traces=[_trace(each) for each in job.results], ranks=None if job.ranks is None else _ranks(job.ranks)
    )


def trace_document(analysis: model.TraceAnalysis) -> AnalysisDocument:
    """The document of one trace."""
    return AnalysisDocument(traces=[_trace(analysis)])


def _trace(result: model.TraceAnalysis | model.TraceFailure) -> Trace:
    if isinstance(result, model.TraceFailure):
        return Trace(result.path, None, None, None, result.error, {}, None, [], [], [], [])
    return Trace(
        result.path,
        result.rank,
        result.world_size,
        result.events,
        None,
        {**dict.fromkeys(ISSUES, 0), **result.issues},
        Window(result.window.start_ns, result.window.wall_ns, len(result.steps)),
        _host(result.host),
        [_thread(each) for each in result.threads[1:]],
        [_device(each) for each in result.devices],
        [_step(each) for each in result.steps],
        list(result.operators),
        list(result.kernels),
        list(result.notes),
    )


def _host(host: Sequence[HostCategory]) -> list[Category]:
    return [
        Category(
            each.category,
            each.ns,
            None,
            round(each.share, 5),
            each.evidence,
            [Part(part.name, part.ns) for part in each.parts],
            [Frame(frame.frame, frame.ns) for frame in each.top],
        )
        for each in host
    ]


def _thread(thread: model.ThreadBudget) -> Thread:
    return Thread(thread.pid, thread.tid, thread.name, thread.covered_ns, _host(thread.host))


def _device(device: model.DeviceBudget) -> Device:
    return Device(
        device.device,
        device.name,
        device.events,
        device.span_ns,
        device.busy_ns,
        device.idle_ns,
        device.kinds,
        dict(device.idle_blame),
        device.launch,
    )


def _step(step: model.TraceStep) -> Step:
    devices = [_device(each) for each in step.devices]
    return Step(step.step, step.window.start_ns, step.window.wall_ns, _host(step.host), devices)


def _ranks(compared: ranks.RanksAnalysis) -> Ranks:
    return Ranks(
        compared.slowest,
        compared.by_collectives,
        list(compared.ranks),
        list(compared.spreads),
        list(compared.straggler),
        list(compared.notes),
    )
