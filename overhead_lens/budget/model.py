"""The budget of one measured call; its constructors check that it closes.

Durations are nanoseconds per measured call, intervals (low, high) in nanoseconds at 95 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from overhead_lens.contract import Ratio, Rounded, Tenths, TenthsInterval, Thousandths, Whole
from overhead_lens.errors import require
from overhead_lens.result import Result
from overhead_lens.scenario import Work
from overhead_lens.stats.estimate import Measured
from overhead_lens.stats.values import Interval
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.host import HostCategory

Bound = Literal["upper", "lower"]
GroupedBy = Literal["kind", "place", "module", "layer", "filter"]


@dataclass(frozen=True, slots=True)
class Floor:
    """The least that the work takes at the machine's peaks: ns per call, what binds it and in which memory level."""

    ns: Thousandths
    bound: str  # ``arithmetic`` or ``memory``.
    level: str  # ``L2``, ``DRAM``, ``device memory``.
    # Rates of a call at the floor; the measured peak for the bound.
    flops_per_s: Annotated[float, Rounded(None)]
    bytes_per_s: Annotated[float, Rounded(None)]

    def __post_init__(self) -> None:
        require(self.ns > 0, "a floor of no time")
        require(self.bound in ("arithmetic", "memory"), f"no bound {self.bound!r}")


@dataclass(frozen=True, slots=True)
class Wall(Measured):
    """The unprofiled wall time of one call: the median over processes of their median block.

    Attributes:
        processes: Fresh worker processes measured.
        blocks, calls: Timed blocks and measured calls in all processes.
        floor_ns: ``floor.ns``; 0 without a floor.
        floor: Roofline floor on this machine; None if the work is not known.
    """

    ns: int
    processes: int
    blocks: int
    calls: int
    floor_ns: float
    floor: Floor | None = None

    def __post_init__(self) -> None:
        Measured.__post_init__(self)
        require(self.ns >= 0, "wall time is negative")
        require(self.floor is None or self.floor.ns == self.floor_ns, "the floor is given twice and differs")


@dataclass(frozen=True, slots=True)
class Closure:
    """Sums of the evidence, ns per call; ``trace_bare_ns`` is the bare call in the traced process."""

    sum_ns: Whole
    residual_ns: Whole  # 0 by construction.
    trace_sum_ns: Whole | None  # Wall time by torch.profiler's corrected events.
    trace_residual_share: Ratio | None  # (trace_sum_ns - wall) / wall.
    trace_bare_ns: Whole | None


@dataclass(frozen=True, slots=True)
class Reading(Measured):
    """A category's time by one instrument."""


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """Readings of one category by independent instruments; None for an instrument that cannot see it.

    Attributes:
        bound: Which bound of the category ablation gives; None if it measures the category itself.
    """

    category: str
    samples: Reading | None
    trace: Reading | None
    ablation: Reading | None
    agree: bool
    bound: Bound | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard of the compiled call, or a named part of the cache lookup.

    Attributes:
        guard: Its class and what it guards.
        sampled_ns: Time in the call by samples; the rows sum to the guard category. None without samples.
        warm_ns: Median time of a check with warm caches; the rows sum to the guard tree's. None where not timed.
        cold_ns: Median time of a check after the caches were flushed.
    """

    guard: str
    sampled_ns: float | None
    warm_ns: float | None = None
    warm_ci95_ns: Interval | None = None
    cold_ns: float | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class GuardGroup:
    """Guards put together ``by`` kind, place, module, layer (each of ``layers``) or filter (what it leaves out), ns."""

    # A place is ``root`` of the tree, ``inside`` or ``python``: a Python function is called at each check.
    by: GroupedBy
    name: str
    count: int  # Of a layer the mean.
    sampled_ns: Tenths | None  # Time in the call by samples.
    warm_ns: Tenths  # Sum of the checks with warm caches, without the walk of their tree.
    layers: int  # 0 but for a layer.


@dataclass(frozen=True, slots=True)
class GuardTree:
    """A check of the whole guard tree, ns."""

    warm_ns: Tenths
    warm_ci95_ns: TenthsInterval
    cold_ns: Tenths | None


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
        total_ns: Time inside the operator, children included; ``self_ns`` excludes them.
        categories: Category to ns of the self time; sums to ``self_ns`` exactly.
        children: Operators called from it, largest first.
        called_from: The C++ function of the parent operator that called it; empty for a call from Python.
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
    """

    name: str
    kind: str
    per_call: float
    ns: int


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """The device's partition of one unprofiled call into busy and idle time.

    Attributes:
        events_per_call: Kernels and copies that start.
        busy_ns: Union of the device's events.
        idle_ns: Bare wall time less busy time.
        compute_ns, communication_ns, copy_ns: Union per kind.
        overlap_ns: Communication and compute at the same time.
        idle_blame: Activity of the host while the device was idle; sums to ``idle_ns``.
        launch_median_ns, launch_p99_ns: From the start of the launching call to the start of its first device event.
        graph_launches_per_call: Launches of a captured graph among ``launches_per_call``.
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
    """Instructions of one category.

    Attributes:
        parts: Sum exactly to ``count``; empty for a category without parts.
        frames: Functions with at least one instruction of their own per call, largest first.
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
    """Instructions of one measured call by category; the categories sum to ``count`` exactly.

    Attributes:
        count: Instructions per call.
        counted: Instructions of all ``calls``.
        host: Every category in the taxonomy's order, zeros included.
    """

    count: int
    counted: int
    calls: int
    host: tuple[InstructionCategory, ...]

    def __post_init__(self) -> None:
        names = tuple(category.category for category in self.host)
        require(names == HOST_CATEGORIES, f"categories of instructions are {names}")
        require(sum(category.count for category in self.host) == self.count, "instructions by category do not sum")
        require(self.count == per_call(self.counted, self.calls), f"{self.count} is not {self.counted} / {self.calls}")

    def category(self, name: str) -> InstructionCategory:
        """The category called ``name``."""
        return self.host[HOST_CATEGORIES.index(name)]


def per_call(counted: int, calls: int) -> int:
    """Whole instructions per call, halves upwards."""
    return (2 * counted + calls) // (2 * calls)


@dataclass(frozen=True, slots=True)
class Breakdown(Result):
    """The closed budget of one measured call: host categories sum exactly to the wall time.

    ``operators``, ``units`` and ``work`` are not part of the JSON contract.

    Attributes:
        host: Every category in the taxonomy's order, zeros included.
        device: The device's own partition of the call; None for a call that uses no device.
        instructions: The same call in instructions; None if they were not counted.
        operators: Per-operator tree; None without samples, or if the CPU clock contradicts them.
        units: Units of work per call, for figures per unit.
        work: None if the scenario does not say.
        compile_notes: Recompilations and graph breaks of the traced worker.
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
    guard_tree: GuardTree | None = None
    guard_groups: tuple[GuardGroup, ...] = ()
    compile_notes: tuple[CompileNote, ...] = ()

    def __post_init__(self) -> None:
        names = tuple(category.category for category in self.host)
        require(names == HOST_CATEGORIES, f"host categories are {names}")
        host_ns = sum(category.ns for category in self.host)
        require(host_ns == self.wall.ns, "host categories do not sum to the wall time")
        closes = self.device is None or self.device.busy_ns + self.device.idle_ns == self.wall.ns
        require(closes, "busy and idle time of the device do not sum to the wall time")

    def category(self, name: str) -> HostCategory:
        """The host category called ``name``."""
        return self.host[HOST_CATEGORIES.index(name)]

    @property
    def mode(self) -> str:
        """``compiled``, ``with compiled code`` of a call that was compiled before it was measured, or ``eager``."""
        return "compiled" if self.subject.compile else "with compiled code" if self.guards else "eager"

    @property
    def evidence(self) -> str:
        """What divides the wall time: ``samples`` or ``trace``; ``none`` for a wall of 0."""
        return next((category.evidence for category in self.host if category.evidence != "none"), "none")

    @property
    def precision_share(self) -> float:
        """Half the width of the 95 % interval as a share of its value, of the wall or of the largest category: the wider one.

        A wall of few processes has none. The largest category's holds what the wall may be off by.
        """
        largest = max(self.host, key=lambda category: category.ns)
        known = [(largest.ns, largest.ci95_ns), *([(self.wall.ns, self.wall.ci95_ns)] if self.wall.has_level else [])]
        return max((high - low) / 2 / max(1, ns) for ns, (low, high) in known)
