"""Figures of device work from counters and arguments: frozen values whose constructors check that they close.

Durations are integer ns; a rate in GB/s or Gflop/s is bytes or flop per ns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from overhead_lens.errors import require


@dataclass(frozen=True, slots=True)
class CounterSeries:
    """Values over time, thinned to the mean of each interval over its covered part.

    Attributes:
        start_ns: Start of each interval, ascending.
        values: None for an interval without any value.
    """

    start_ns: tuple[int, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class CounterKernel:
    """A counter while the kernels of one name ran; concurrent kernels each get the full value.

    Attributes:
        total_ns: Sum of their durations.
        covered_ns: Of this, where the counter has a value.
        mean: Over that.
    """

    name: str
    total_ns: int
    covered_ns: int
    mean: float

    def __post_init__(self) -> None:
        require(0 < self.covered_ns <= self.total_ns, f"a counter covers more than {self.name} lasted")


@dataclass(frozen=True, slots=True)
class CounterTrack:
    """One counter over time.

    A value holds until the next one. Where values come at a period, and one is missing, it holds for a period, and the rest is a
    gap: nothing is known there, and nothing in it counts.

    Attributes:
        device: Number of the device as text; empty if the trace does not say.
        process: Process it stands at, as the file names it.
        name: The event's name, and after a slash the series where it has one.
        unit: As the metric's name tells; empty if it does not.
        samples: Values.
        period_ns: Median distance of values that come at a period; None for values that are written when they change.
        gaps, gap_ns: Distances of more than one and a half periods, and what no value holds of them.
        covered_ns: Time in which it has a value; with the gaps from the first value to where the last one ends.
        mean: Over the covered time.
        kernels: The most covered first.
    """

    device: str
    process: str
    name: str
    unit: str
    samples: int
    period_ns: int | None
    gaps: int
    gap_ns: int
    start_ns: int
    covered_ns: int
    min: float
    mean: float
    max: float
    kernels: tuple[CounterKernel, ...]
    over_time: CounterSeries

    def __post_init__(self) -> None:
        require(self.samples > 0 and self.covered_ns >= 0 and self.gap_ns >= 0, f"counter {self.name} covers nothing")
        require((self.gaps > 0) == (self.gap_ns > 0), f"counter {self.name}: gaps without length")
        require(self.min <= self.max, f"counter {self.name}: its least value is above its greatest")


@dataclass(frozen=True, slots=True)
class RangedKernel:
    """Kernels of one name that CUPTI's range profiler ran again to count (``cuda_profiler_range``).

    Attributes:
        name: As the trace spells it; ``__missing__`` where Kineto knew none.
        operators: Innermost operators around their launches, the most frequent first, at most three.
        ranges: Kernels.
        metrics: Sum over them per metric; of a share or an average their mean.
        flop: Of CUDA cores per precision: additions, multiplications and twice the fused ones; without tensor cores.
        timed, timed_ns: Ranges joined to a device event, and the durations of these events.
        gflop_s: All flop of these over that time; None without.
    """

    name: str
    operators: tuple[str, ...]
    ranges: int
    metrics: Mapping[str, float]
    flop: Mapping[str, float]
    timed: int
    timed_ns: int
    gflop_s: float | None


@dataclass(frozen=True, slots=True)
class KernelOccupancy:
    """Kernels of one name on a device, with what Kineto computed of them; means are weighted by duration.

    Attributes:
        occupancy_percent: Estimated share of the warps that an SM can hold; an estimate from the launch, not a measurement
            (libkineto/src/DeviceProperties.cpp, ``computeOccupancyMetrics``). None if the trace does not say.
        blocks_per_sm, warps_per_sm: Of the whole grid, over the number of SMs.
        unfilled_ns: Time of those with less than one block per SM: some SMs have nothing to do.
        uncomputed: Events for which Kineto says 0 % though their warps fill more: it does so where a kernel asks for more shared
            memory than by default. Their occupancy is unknown.
    """

    device: str
    name: str
    count: int
    total_ns: int
    occupancy_percent: float | None
    blocks_per_sm: float | None
    warps_per_sm: float | None
    unfilled_ns: int
    uncomputed: int

    def __post_init__(self) -> None:
        require(0 <= self.unfilled_ns <= self.total_ns, f"{self.name} is unfilled for longer than it lasts")


@dataclass(frozen=True, slots=True)
class DeviceOccupancy:
    """All kernels of a device whose occupancy is known; see ``KernelOccupancy``.

    Attributes:
        kernel_ns: Sum of all kernels' durations.
        known_ns: Of those whose occupancy is known.
        sms: Multiprocessors; None if the file does not say.
        warps_per_sm_most: Warps that one of them holds, from threads and the size of a warp; None if the file does not say.
    """

    device: str
    kernel_ns: int
    known_ns: int
    occupancy_percent: float | None
    unfilled_ns: int
    sms: int | None
    warps_per_sm_most: int | None


@dataclass(frozen=True, slots=True)
class CopyRate:
    """Copies of one kind on a device whose size the trace tells.

    Attributes:
        gb_s: Bytes over summed durations.
        best_gb_s: Of the fastest single one.
        unsized: Those that do not say their size, not counted in the rest.
    """

    device: str
    name: str
    count: int
    bytes: int
    total_ns: int
    gb_s: float | None
    best_gb_s: float | None
    unsized: int


@dataclass(frozen=True, slots=True)
class ProductRate:
    """Matrix products of one operator, shape and type, and the device time of what they launched.

    Attributes:
        shape: ``batch x m x k x n``; without a batch of 1.
        flop: Of all of them, 2 m n k each (torch/utils/flop_counter.py).
        device_ns: Sum of durations of the kernels that were launched in them.
    """

    operator: str
    shape: str
    dtype: str
    count: int
    flop: int
    device_ns: int
    gflop_s: float | None


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of a captured graph: the work it represents."""

    node: int
    name: str
    count: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class GraphWork:
    """Work of one executable graph on a device, where the trace numbers its nodes (``graph id``, ``graph node id``).

    Attributes:
        launches: Launches of it whose work is in the trace.
        nodes: Distinct nodes that ran.
        costliest: Nodes by time, thinned.
    """

    device: str
    graph: int
    launches: int
    nodes: int
    events: int
    total_ns: int
    costliest: tuple[GraphNode, ...]


@dataclass(frozen=True, slots=True)
class Counters:
    """All of it; each part is empty if the trace has nothing of the kind.

    Attributes:
        tracks: Counters over time.
        ranges: By flop, then by number.
        joined_by: How ranges were joined to launches: ``correlation``, ``order``, or empty for not at all.
        devices: Occupancy of every device that says it.
        occupancy: Kernels by time, thinned.
        copies: By time.
        products: By device time, thinned.
        graphs: By time, thinned.
        notes: What cannot be said, and why.
        peaks: Why rates are not set against a peak of the device; empty if there are none.
    """

    tracks: tuple[CounterTrack, ...]
    ranges: tuple[RangedKernel, ...]
    joined_by: str
    devices: tuple[DeviceOccupancy, ...]
    occupancy: tuple[KernelOccupancy, ...]
    copies: tuple[CopyRate, ...]
    products: tuple[ProductRate, ...]
    graphs: tuple[GraphWork, ...]
    notes: tuple[str, ...]
    peaks: str


NO_COUNTERS = Counters((), (), "", (), (), (), (), (), (), "")
"""For a trace without counters and arguments."""
