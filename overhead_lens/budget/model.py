"""The budget of one measured call: frozen values whose constructors check that it closes.

All durations are integer nanoseconds per measured call unless a name says otherwise; intervals are (low, high) in
nanoseconds at 95 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from overhead_lens.errors import require
from overhead_lens.instruments.peaks.evidence import Peaks
from overhead_lens.result import Result
from overhead_lens.scenario import Published, Work
from overhead_lens.stats.values import Interval
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.host import HostCategory

Bound = Literal["upper", "lower"]


@dataclass(frozen=True, slots=True)
class Floor:
    """The least that a call's work takes at the machine's measured peaks.

    Attributes:
        ns: Per call.
        bound: Which peak binds: ``arithmetic`` or ``memory``.
        level: The memory level that holds the call's bytes: ``L2``, ``DRAM``, ``device memory``.
        flops_per_s: Arithmetic of a call that takes no longer; the measured peak where that binds.
        bytes_per_s: The same of its memory traffic.
    """

    ns: float
    bound: str
    level: str
    flops_per_s: float
    bytes_per_s: float

    def __post_init__(self) -> None:
        require(self.ns > 0, "a floor of no time")
        require(self.bound in ("arithmetic", "memory"), f"no bound {self.bound!r}")


@dataclass(frozen=True, slots=True)
class Wall:
    """The unprofiled wall time of one call.

    Attributes:
        ns: Median over processes of the per-process median block, per call.
        ci95_ns: 95 % interval over processes.
        processes: Fresh worker processes measured.
        blocks: Timed blocks in all of them.
        calls: Measured calls in all of them.
        floor_ns: Roofline floor of the call's work on this machine; 0 where the work is not known.
        floor: The same and what binds it.
    """

    ns: int
    ci95_ns: Interval
    processes: int
    blocks: int
    calls: int
    floor_ns: float
    floor: Floor | None = None

    def __post_init__(self) -> None:
        require(self.ns >= 0, "wall time is negative")
        require(self.floor is None or self.floor.ns == self.floor_ns, "the floor is given twice and differs")
        require(self.ci95_ns[0] <= self.ci95_ns[1], f"interval {self.ci95_ns} is reversed")


@dataclass(frozen=True, slots=True)
class Closure:
    """How the evidence adds up.

    Attributes:
        sum_ns: Sum of the host categories.
        residual_ns: Wall less that sum; 0 by construction.
        trace_sum_ns: Wall time of one call as torch.profiler's corrected events give it; None without a trace.
        trace_residual_share: (trace_sum_ns - wall) / wall.
        trace_bare_ns: Bare wall time of one call in the trace's own process, which processes differ in.
    """

    sum_ns: int
    residual_ns: int
    trace_sum_ns: int | None
    trace_residual_share: float | None
    trace_bare_ns: int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """What one instrument says of a category, in ns per call, with its 95 % interval."""

    ns: float
    ci95_ns: Interval


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """One category as independent instruments see it; None where an instrument is blind to it.

    Attributes:
        bound: What the reading by ablation is of the category: ``upper`` or ``lower`` bound; None where it is the category's own.
    """

    category: str
    samples: Reading | None
    trace: Reading | None
    ablation: Reading | None
    agree: bool
    bound: Bound | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard of the compiled call's cache entry, or a named part of looking the entry up.

    Attributes:
        guard: Its class and what it guards.
        sampled_ns: Its share of the call by samples, ns per call; these sum to the guard category. None without samples.
        warm_ns: A check in a loop, caches warm, median of repetitions; these sum to the guard tree's. None where not timed.
        warm_ci95_ns: Interval of that median.
        cold_ns: A check after a flush of the caches, median.
        cause: The source line that needed it.
    """

    guard: str
    sampled_ns: float | None
    warm_ns: float | None = None
    warm_ci95_ns: Interval | None = None
    cold_ns: float | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class GuardTree:
    """A check of the whole guard tree, timed in a loop and after a flush of the caches, in ns."""

    warm_ns: float
    warm_ci95_ns: Interval
    cold_ns: float | None


@dataclass(frozen=True, slots=True)
class CompileNote:
    """Why a frame was compiled again, or why a graph broke, and where."""

    kind: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Operator:
    """A node of the per-operator tree: an operator as called from its parent operator.

    Attributes:
        name: Operator with namespace, ``aten::add.Tensor``; the root is the measured call.
        total_ns: Time inside the operator, children included.
        self_ns: The same without the children.
        categories: Category to ns of the self time; sums to ``self_ns`` exactly.
        children: Operators called from it, largest first.
        called_from: The C++ function of the parent operator that called it; empty where its Python caller did.
    """

    name: str
    total_ns: int
    self_ns: int
    categories: Mapping[str, int]
    children: tuple[Operator, ...] = ()
    called_from: str = ""

    def __post_init__(self) -> None:
        require(sum(self.categories.values()) == self.self_ns, f"categories of {self.name} do not sum to its self time")
        children_ns = sum(child.total_ns for child in self.children)
        require(self.self_ns + children_ns == self.total_ns, f"children and self time of {self.name} do not sum")


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """A kernel or copy by name.

    Attributes:
        kind: ``compute``, ``communication`` or ``copy``.
        per_call: Events per measured call.
        ns: Their time per call.
    """

    name: str
    kind: str
    per_call: float
    ns: int


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """The device's partition of one unprofiled call: busy by the trace, idle the rest of the wall time.

    Attributes:
        device: Its number as text.
        kind: ``cuda``.
        events_per_call: Kernels and copies per call.
        busy_ns: Union of the device's events, per call.
        idle_ns: The bare wall time less that.
        compute_ns, communication_ns, copy_ns: Union per kind; ``overlap_ns``: communication and compute together.
        idle_blame: What the host was doing when it should have fed the device; sums to ``idle_ns``.
        launches_per_call: Launching calls per call.
        launch_median_ns, launch_p99_ns: From the start of the launching call to the start of its first device event.
        graph_launches_per_call: Of these, launches of a captured graph.
        top: Costliest first.
    """

    device: str
    kind: str
    events_per_call: float
    busy_ns: int
    idle_ns: int
    compute_ns: int
    communication_ns: int
    copy_ns: int
    overlap_ns: int
    idle_blame: Mapping[str, int]
    launches_per_call: float
    launch_median_ns: int
    launch_p99_ns: int
    graph_launches_per_call: float
    top: tuple[DeviceKernel, ...] = ()

    def __post_init__(self) -> None:
        require(self.busy_ns >= 0 and self.idle_ns >= 0, "device time is negative")
        require(sum(self.idle_blame.values()) == self.idle_ns, "the blame does not sum to the idle time")


@dataclass(frozen=True, slots=True)
class InstructionPart:
    """A named share of a category; the parts of a category sum to it exactly."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class InstructionFrame:
    """A function and its own instructions in a category."""

    frame: str
    count: int


@dataclass(frozen=True, slots=True)
class InstructionCategory:
    """One category of the budget.

    Attributes:
        parts: Sum exactly to ``count``; empty for a category without parts. Python code is ``interpreter``: callgrind sees no
            Python function.
        frames: Functions with instructions of their own in this category, at least one per call, largest first.
    """

    category: str
    count: int
    parts: tuple[InstructionPart, ...] = ()
    frames: tuple[InstructionFrame, ...] = ()

    def __post_init__(self) -> None:
        require(self.count >= 0, f"instructions of {self.category} are negative")
        closes = not self.parts or sum(part.count for part in self.parts) == self.count
        require(closes, f"instructions of the parts of {self.category} do not sum")


@dataclass(frozen=True, slots=True)
class InstructionBudget:
    """Instructions of one measured call by category, which sum to all of them exactly.

    Attributes:
        count: Per call.
        counted: Instructions that were counted in all.
        calls: Measured calls in them.
        host: Every category of the taxonomy in its order, zeros included.
    """

    count: int
    counted: int
    calls: int
    host: tuple[InstructionCategory, ...]

    def __post_init__(self) -> None:
        names = tuple(each.category for each in self.host)
        require(names == HOST_CATEGORIES, f"categories of instructions are {names}")
        require(sum(each.count for each in self.host) == self.count, "instructions by category do not sum")
        require(self.count == per_call(self.counted, self.calls), f"{self.count} is not {self.counted} / {self.calls}")

    def category(self, name: str) -> InstructionCategory:
        """The category called ``name``."""
        return self.host[HOST_CATEGORIES.index(name)]


def per_call(counted: int, calls: int) -> int:
    """Whole instructions per call, halves upwards."""
    return (2 * counted + calls) // (2 * calls)


@dataclass(frozen=True, slots=True)
class Breakdown(Result):
    """The closed budget of one measured call: host categories that sum to the unprofiled wall time exactly.

    Attributes:
        host: Every category of the taxonomy in its order, zeros included.
        device: The device's own partition of the same window; None for a call that uses no device.
        instructions: The same call in instructions; None where they were not counted.
        operators: Per-operator tree from the samples; None without samples. Not part of the JSON contract.
        units: Units of work per call, for figures per unit. Not part of the JSON contract.
        work: The work of one call; None where the scenario does not say. Not part of the JSON contract.
        shared_reads: How often one call reads what its units share: calls of the operator whose kernels take most, by the
            trace, at most once per unit; None without a trace. Not part of the JSON contract.
        peaks: The machine's measured peaks ; None where they were not measured. Not part of the JSON contract.
        published: Reference figures that fit this variant. Not part of the JSON contract.
        guard_tree: A timed check of the whole guard tree; None where it was not timed.
        compile_notes: Recompilations and graph breaks of the worker that was traced.
    """

    subject: Subject
    wall: Wall
    host: tuple[HostCategory, ...]
    closure: Closure
    cross_checks: tuple[CrossCheck, ...] = ()
    guards: tuple[Guard, ...] = ()
    warnings: tuple[str, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    capture: str = ""
    device: DeviceShare | None = None
    instructions: InstructionBudget | None = None
    operators: Operator | None = None
    units: int = 1
    work: Work | None = None
    shared_reads: float | None = None
    peaks: Peaks | None = None
    published: tuple[Published, ...] = ()
    guard_tree: GuardTree | None = None
    compile_notes: tuple[CompileNote, ...] = ()

    def __post_init__(self) -> None:
        names = tuple(each.category for each in self.host)
        require(names == HOST_CATEGORIES, f"host categories are {names}")
        require(sum(each.ns for each in self.host) == self.wall.ns, "host categories do not sum to the wall time")
        closes = self.device is None or self.device.busy_ns + self.device.idle_ns == self.wall.ns
        require(closes, "busy and idle time of the device do not sum to the wall time")

    def category(self, name: str) -> HostCategory:
        """The host category called ``name``."""
        return self.host[HOST_CATEGORIES.index(name)]
