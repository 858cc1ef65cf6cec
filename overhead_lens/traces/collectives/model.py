"""Communication of a trace: frozen values whose constructors check that they close. Durations are integer ns, sizes bytes."""

from __future__ import annotations

from dataclasses import dataclass

from overhead_lens.errors import require
from overhead_lens.traces.collectives.definitions import bus_factor


@dataclass(frozen=True, slots=True)
class Collective:
    """One communication kernel on one rank, in the order in which the device ran them.

    Attributes:
        group: Process group; empty if the trace does not say.
        index: Which one of this group and name, from 0.
        kind: ``all_reduce``, ``send``, ... (``definitions.kind_of``); empty if the trace does not say.
        dtype: As the trace spells it; empty if it does not say.
        elements, bytes: Size S as NCCL-tests define it for the kind; None if the trace does not say.
        group_size: Ranks that take part; None if the trace does not say.
        device: Number of the device.
        hidden_ns: Time in which compute runs on the same device.
        step: ``ProfilerStep#N`` in which it was launched; None outside of steps, and where its launch is not in the trace.
        sequence: Its number in the group (``Seq``); None if the trace does not say.
    """

    name: str
    group: str
    index: int
    start_ns: int
    dur_ns: int
    kind: str = ""
    dtype: str = ""
    elements: int | None = None
    bytes: int | None = None
    group_size: int | None = None
    device: int = 0
    hidden_ns: int = 0
    step: int | None = None
    sequence: int | None = None

    def __post_init__(self) -> None:
        require(0 <= self.hidden_ns <= self.dur_ns, f"{self.name} is hidden for longer than it lasts")

    @property
    def end_ns(self) -> int:
        """When it ended."""
        return self.start_ns + self.dur_ns

    @property
    def exposed_ns(self) -> int:
        """Time in which no compute runs on the same device."""
        return self.dur_ns - self.hidden_ns


@dataclass(frozen=True, slots=True)
class CollectiveCost:
    """Collectives of one kind, group, type and size on one rank.

    Bandwidths are those of NCCL-tests (doc/PERFORMANCE.md), in GB/s = bytes/ns; None if size or group are unknown. A kernel's
    duration holds the wait for the other ranks, so that they are lower bounds; the shortest comes nearest.

    Attributes:
        name: As the trace spells it, of the first.
        min_ns, median_ns, max_ns: Durations; the median is the lower one.
        algorithm_gb_s, bus_gb_s: Of all of them: bytes over summed durations.
        best_bus_gb_s: Of the shortest.
    """

    name: str
    kind: str
    group: str
    group_size: int | None
    dtype: str
    elements: int | None
    bytes: int | None
    count: int
    total_ns: int
    hidden_ns: int
    exposed_ns: int
    min_ns: int
    median_ns: int
    max_ns: int
    algorithm_gb_s: float | None
    bus_gb_s: float | None
    best_bus_gb_s: float | None

    def __post_init__(self) -> None:
        require(
            self.hidden_ns + self.exposed_ns == self.total_ns, f"{self.name}: hidden and exposed do not sum to its time"
        )


def bandwidths(kind: str, size_bytes: int | None, group_size: int | None, ns: int) -> tuple[float | None, float | None]:
    """Algorithm and bus bandwidth in GB/s; None if unknown."""
    if size_bytes is None or ns <= 0:
        return None, None
    factor = bus_factor(kind, group_size)
    algorithm = size_bytes / ns
    return algorithm, None if factor is None else algorithm * factor
