"""The analysis of a recorded trace: frozen values whose constructors check that they close. Durations are integer ns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from overhead_lens.errors import require
from overhead_lens.traces.budgets import TraceBudgets
from overhead_lens.traces.collectives.model import Collective, CollectiveCost
from overhead_lens.traces.counters.model import NO_COUNTERS, Counters
from overhead_lens.traces.critical_path.fragments import PathFragments
from overhead_lens.traces.critical_path.model import CriticalPath
from overhead_lens.traces.findings.model import Finding
from overhead_lens.traces.launch_figures.model import DeviceLaunches, InputBatch
from overhead_lens.traces.memory.model import DeviceMemory
from overhead_lens.traces.modules.model import ModuleBudgets
from overhead_lens.traces.sequences.model import RepeatedSequence


@dataclass(frozen=True, slots=True)
class Lane:
    """A thread or a device over time.

    Attributes:
        device: Its number as text; empty for the busiest thread.
        ns: Time per bucket of each category that takes any.
    """

    device: str
    ns: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class OverTime:
    """The window in buckets.

    Attributes:
        edges_ns: Where they begin, and where the last one ends.
    """

    edges_ns: tuple[int, ...]
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class TraceAnalysis(TraceBudgets):
    """The budgets of one trace and its further parts.

    Attributes:
        collectives: Communication kernels in order of start.
        collective_costs: The same by kind, group, type and size, the most exposed first.
        memory: Every device whose allocations were recorded; the host last.
        modules: The budget per module; None if the trace names no module.
        counters: Figures of device work from counters and arguments.
        critical_path: For each step, or for the window without steps; None if it was not requested.
        chains: What a path over several ranks takes of this one; None if it was not asked for.
        findings: What bounds each step, then possible savings, the largest bound first; they overlap and must not be added.
        launch_figures: Every device: time from calls to kernels, kernels per step, what bounds.
        batch: The batch size that its shapes say; None for a trace without events.
        sequences: What repeats in the same order on streams and threads, the largest possible saving first; not to be added up.
        over_time: The busiest thread and the devices in buckets of time, for a picture.
        issues: What was dropped, repaired or looks wrong, in events; no zeros.
        notes: What a reader of the numbers must know, one sentence each.
    """

    collectives: tuple[Collective, ...] = ()
    collective_costs: tuple[CollectiveCost, ...] = ()
    memory: tuple[DeviceMemory, ...] = ()
    modules: ModuleBudgets | None = None
    counters: Counters = NO_COUNTERS
    critical_path: CriticalPath | None = None
    chains: PathFragments | None = field(default=None, compare=False, repr=False)
    findings: tuple[Finding, ...] = ()
    launch_figures: tuple[DeviceLaunches, ...] = ()
    batch: InputBatch | None = None
    sequences: tuple[RepeatedSequence, ...] = ()
    over_time: OverTime | None = field(default=None, compare=False, repr=False)
    issues: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        TraceBudgets.__post_init__(self)
        if self.modules is not None:
            spent = {category.category: category.ns for category in self.host if category.ns}
            require(dict(self.modules.whole.host) == spent, "modules do not sum to the thread's budget")


@dataclass(frozen=True, slots=True)
class TraceFailure:
    """A trace that could not be analyzed.

    Attributes:
        error: One line that says why.
    """

    path: str
    error: str
