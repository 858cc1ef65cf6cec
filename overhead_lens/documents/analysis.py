"""Exported traces; durations in whole ns.

``overhead-lens/analysis/1`` is their host and devices, ``overhead-lens/structure/1`` which operators, kernels and launches came,
went or changed between two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, UnsetType, field

from overhead_lens.contract import ShareOfTime
from overhead_lens.documents.common import Document, Row, fill
from overhead_lens.taxonomy.host import Frame, HostCategory, Part
from overhead_lens.traces import model
from overhead_lens.traces.budgets import Cost, DeviceBudget
from overhead_lens.traces.collectives.model import CollectiveCost
from overhead_lens.traces.collectives.stragglers import Stragglers
from overhead_lens.traces.counters.model import Counters
from overhead_lens.traces.critical_path.model import CriticalPath, PathOverRanks
from overhead_lens.traces.findings.model import Finding
from overhead_lens.traces.job import ranks
from overhead_lens.traces.job.batches import Batches
from overhead_lens.traces.job.ranks import Excess, RankTime, Spread
from overhead_lens.traces.launch_figures.model import DeviceLaunches, InputBatch
from overhead_lens.traces.memory.model import DeviceMemory
from overhead_lens.traces.modules.model import Layers, ModuleBudgets, ModuleClass, ModuleTime
from overhead_lens.traces.sequences.model import RepeatedSequence
from overhead_lens.traces.structure.model import Divided, Side, StructureChange, StructureDelta, Swap

ISSUES = ("partial_overlap", "negative_duration", "unlinked_device_event", "truncated")
"""Reasons that are listed also where their count is 0."""


class Category(Row, frozen=True):
    """A host category, ns; ``ci95_ns`` is null unless ``evidence`` is ``estimate``, as one recording has no other interval."""

    category: str
    ns: int
    ci95_ns: tuple[int, int] | None
    share: ShareOfTime
    evidence: str
    parts: list[Part]
    top: list[Frame]


class Window(Row, frozen=True):
    """First to last instant of host and device work, and its number of steps."""

    start_ns: int
    wall_ns: int
    steps: int


class Thread(Row, frozen=True):
    """Another host thread; its categories sum to the window."""

    pid: str
    tid: str
    name: str
    covered_ns: int
    host: list[Category]


class Step(Row, frozen=True):
    """A ``ProfilerStep#N`` window; its host categories sum to it."""

    step: int
    start_ns: int
    wall_ns: int
    host: list[Category]
    devices: list[DeviceBudget] = field(name="device")


class Module(Row, frozen=True):
    """A module as called from its parent, whose place in the list is ``parent``; ``again`` of its calls in a backward pass."""

    path: str
    parent: int | None
    name: str
    class_name: str
    number: int | None
    depth: int
    calls: int
    again: int
    own: ModuleTime
    total: ModuleTime


class Modules(Row, frozen=True):
    """The budget per module. Own times of all and ``outside`` sum to the threads, with ``unlinked_ns`` to the device events."""

    known_from: str
    nodes: list[Module]
    classes: list[ModuleClass]
    layers: list[Layers]
    outside: ModuleTime
    unlinked_ns: int
    unlinked_events: int
    backward_nodes: int
    unjoined_nodes: int


class Trace(Row, frozen=True):
    """One trace. ``host`` is the busiest thread's; one that failed has its ``error`` and nothing else.

    ``critical_path`` is null if it was not asked for.
    """

    path: str
    rank: int | None
    world_size: int | None
    events: int | None
    error: str | None
    issues: dict[str, int]
    window: Window | None
    host: list[Category]
    threads: list[Thread]
    devices: list[DeviceBudget] = field(name="device")
    steps: list[Step]
    operators: list[Cost] | UnsetType = UNSET
    kernels: list[Cost] | UnsetType = UNSET
    memory: list[DeviceMemory] | UnsetType = UNSET
    modules: Modules | None = None
    collective_costs: list[CollectiveCost] | UnsetType = field(name="collectives", default=UNSET)
    counters: Counters | UnsetType = UNSET
    critical_path: CriticalPath | None = None
    findings: list[Finding] | UnsetType = UNSET
    launch_figures: list[DeviceLaunches] | UnsetType = UNSET
    batch: InputBatch | UnsetType | None = UNSET
    sequences: list[RepeatedSequence] | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET


class Ranks(Row, frozen=True):
    """Ranks of one job compared, ns; ``straggler`` is what the slowest spends more time in than the median of the others.

    ``critical_path`` is null if it was not asked for.
    """

    slowest: str
    by_collectives: bool
    ranks: list[RankTime]
    spreads: list[Spread]
    straggler: list[Excess]
    notes: list[str]
    stragglers: Stragglers | None
    critical_path: PathOverRanks | None = None
    findings: list[Finding] | UnsetType = UNSET


class AnalysisDocument(Document, frozen=True, kw_only=True):
    """Where the time of recorded traces went, in the order in which they were named; ``ranks`` for several of a job.

    ``batches`` compares traces of which ``--batch-sizes`` said that they are of one model.
    """

    schema: Literal["overhead-lens/analysis/1"] = "overhead-lens/analysis/1"
    traces: list[Trace]
    ranks: Ranks | None = None
    batches: Batches | None = None


def job_document(job: ranks.Job) -> AnalysisDocument:
    """The document of analyses, and of the comparison of their ranks."""
    return fill(AnalysisDocument, job, traces=[_trace(result) for result in job.results])


def trace_document(analysis: model.TraceAnalysis) -> AnalysisDocument:
    """The document of one trace."""
    return AnalysisDocument(traces=[_trace(analysis)])


def _trace(result: model.TraceAnalysis | model.TraceFailure) -> Trace:
    if isinstance(result, model.TraceFailure):
        return Trace(result.path, None, None, None, result.error, {}, None, [], [], [], [])
    return fill(
        Trace,
        result,
        error=None,
        issues={**dict.fromkeys(ISSUES, 0), **result.issues},
        window=fill(Window, result.window, steps=len(result.steps)),
        host=_host(result.host),
        threads=[fill(Thread, thread, host=_host(thread.host)) for thread in result.threads[1:]],
        modules=_modules(result.modules),
        steps=[
            fill(Step, step.window, step=step.step, host=_host(step.host), devices=step.devices)
            for step in result.steps
        ],
    )


def _host(host: Sequence[HostCategory]) -> list[Category]:
    return [
        fill(Category, category, ci95_ns=category.ci95_ns if category.evidence == "estimate" else None)
        for category in host
    ]


def _modules(modules: ModuleBudgets | None) -> Modules | None:
    if modules is None:
        return None
    nodes = [fill(Module, node, path=modules.path(place)) for place, node in enumerate(modules.nodes)]
    return fill(Modules, modules, nodes=nodes)


class StructureDocument(Document, frozen=True, kw_only=True):
    """The difference of two traces; durations in whole ns, per step where both have steps."""

    schema: Literal["overhead-lens/structure/1"] = "overhead-lens/structure/1"
    same: bool
    base: Side
    new: Side
    per_step: bool
    changes: list[StructureChange]
    swaps: list[Swap]
    divided: list[Divided]


def structure_document(delta: StructureDelta) -> StructureDocument:
    """The document of a difference."""
    return fill(StructureDocument, delta, same=delta.is_same)
