"""Budgets of a window's threads, devices and steps, whose constructors check that they close; durations are integer ns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from overhead_lens.contract import derive
from overhead_lens.errors import require
from overhead_lens.result import Result
from overhead_lens.taxonomy.categories import BLAME, HOST_CATEGORIES
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.traces.window import Window


@dataclass(frozen=True, slots=True)
class ThreadBudget:
    """One host thread over a window.

    Attributes:
        name: The thread's name; empty if the file gives none.
        covered_ns: Time covered by its events.
        host: Every host category in the taxonomy's order; sums to the window exactly.
    """

    pid: str
    tid: str
    name: str
    covered_ns: int
    host: tuple[HostCategory, ...]

    def __post_init__(self) -> None:
        require(
            tuple(category.category for category in self.host) == HOST_CATEGORIES, "host categories are out of order"
        )


@dataclass(frozen=True, slots=True)
class Kinds:
    """Time per kind of device work, each the union of its events; they overlap, so they need not sum to busy.

    Attributes:
        overlap_ns: Time in which communication and compute run together.
    """

    compute_ns: int = 0
    communication_ns: int = 0
    copy_ns: int = 0
    overlap_ns: int = 0


@dataclass(frozen=True, slots=True)
class Launches:
    """Statistics of the launches of device work.

    Latency is from the start of the launching call to the start of its first device event.

    Attributes:
        count: Launching calls whose first device event starts in the device's span, or in the step.
        median_ns, p99_ns, max_ns: Of the latencies; negative ones (clock skew) count as 0.
        graph_launches: Of these, launches of a captured graph.
        graph_events: Device events that graph launches started.
        repaired: Latencies that were negative.
        unlinked: Device events whose launch is not in the trace.
        queue_depth_max: Most launches at one time in the span that had been called and had not started on the device.
        queue_depth_mean: Their average number over the span.
    """

    count: int = 0
    median_ns: int = 0
    p99_ns: int = 0
    max_ns: int = 0
    graph_launches: int = 0
    graph_events: int = 0
    repaired: int = 0
    unlinked: int = 0
    queue_depth_max: int = 0
    queue_depth_mean: float = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.median_ns <= self.max_ns and 0 <= self.p99_ns <= self.max_ns, "a latency is negative")


@dataclass(frozen=True, slots=True)
class DeviceBudget:
    """A device: busy and idle partition its span, ``idle_blame`` the idle time."""

    device: str  # Its number.
    name: str  # Its model; empty where the file does not say.
    events: int
    span_ns: int  # From its first event's start to its last event's end; within a step, the step.
    busy_ns: int  # Union of its events.
    idle_ns: int = field(init=False)
    kinds: Kinds
    # Every key of ``BLAME``: what the host was doing when it should have fed the device; ``queue`` is time after the launch.
    idle_blame: Mapping[str, int]
    launch: Launches

    def __post_init__(self) -> None:
        derive(self, idle_ns=self.span_ns - self.busy_ns)
        require(0 <= self.busy_ns <= self.span_ns, f"device {self.device} is busier than its span")
        require(tuple(self.idle_blame) == BLAME, f"device {self.device}: blame has other keys")
        require(sum(self.idle_blame.values()) == self.idle_ns, f"device {self.device}: blame does not sum to idle")


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One ``ProfilerStep#N`` window.

    Attributes:
        host: Budget of the thread that is the busiest of the whole window.
    """

    step: int
    window: Window
    host: tuple[HostCategory, ...]
    devices: tuple[DeviceBudget, ...]

    def __post_init__(self) -> None:
        require(
            sum(category.ns for category in self.host) == self.window.wall_ns, "host categories do not sum to the step"
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """An operator or a kernel by name.

    Attributes:
        name: As the trace spells it; ``(others)`` for the sum of all behind the 50 costliest.
        category: Host category of an operator; ``compute``, ``communication`` or ``copy`` of a kernel; else empty.
        count: Events.
        self_ns: Sum of self times (operators), of durations (kernels).
        total_ns: Sum of durations.
        kernel_ns: Of an operator's self time what is estimated to be kernels on the host.
    """

    name: str
    category: str
    count: int
    self_ns: int
    total_ns: int
    kernel_ns: int = 0

    @property
    def dispatch_ns(self) -> int:
        """Self time minus the estimate for kernels."""
        return self.self_ns - self.kernel_ns


@dataclass(frozen=True, slots=True)
class TraceBudgets(Result):
    """The budgets of one trace.

    Attributes:
        rank, world_size: None if the file does not say.
        events: Entries of the file's ``traceEvents``.
        window: From the first to the last instant of host and device work.
        threads: Host threads, the busiest first; each sums to the window exactly.
        devices: By number.
        steps: In order.
        operators, kernels: Costliest first.
    """

    path: str
    rank: int | None
    world_size: int | None
    events: int
    window: Window
    threads: tuple[ThreadBudget, ...]
    devices: tuple[DeviceBudget, ...]
    steps: tuple[TraceStep, ...] = ()
    operators: tuple[Cost, ...] = ()
    kernels: tuple[Cost, ...] = ()

    def __post_init__(self) -> None:
        for thread in self.threads:
            closes = sum(category.ns for category in thread.host) == self.window.wall_ns
            require(closes, f"thread {thread.tid}: host categories do not sum to the window")

    @property
    def host(self) -> tuple[HostCategory, ...]:
        """Budget of the busiest thread; empty for a trace without host events."""
        return self.threads[0].host if self.threads else ()
