"""What a trace says of the memory of its devices: frozen values whose constructors check that they close. Sizes are bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from overhead_lens.errors import require

KINDS = ("parameter", "gradient", "optimizer_state", "activation", "temporary", "unknown")
"""What a block holds.

``temporary``: released before the operator that allocated it, or the optimizer's step, had returned. ``parameter``: allocated
while a module was built or moved. ``optimizer_state``: allocated by an optimizer's step and kept beyond it. ``gradient``:
allocated by a node of the backward pass and kept beyond that node, or released by ``zero_grad``. ``activation``: released by a
node of the backward pass. ``unknown``: the trace does not tell.
"""

BEFORE = "(before the recording)"
SEGMENT_BYTES = 2 << 20
"""The least that the caching allocator gets from the driver (c10/core/AllocatorConfig.h, ``kSmallBuffer``)."""


@dataclass(frozen=True, slots=True)
class MemoryHolder:
    """Blocks that were allocated at one place.

    Attributes:
        operator: Innermost operator around the allocation that does more than allocate; empty if none was open.
        module: Innermost ``nn.Module``; empty if the trace has none.
        line: Innermost Python function, or line of a snapshot, outside of torch; empty if there is none.
        kind: One of ``KINDS``.
    """

    operator: str
    module: str
    line: str
    kind: str
    blocks: int
    bytes: int


@dataclass(frozen=True, slots=True)
class MemoryStep:
    """One step on one device.

    Attributes:
        start_bytes, end_bytes: Live at its start and at its end.
        allocated_bytes: Sum of what was allocated in it.
        churn_bytes, churn_blocks: Of this, what was released in it as well.
        kept_bytes: Of this, what was never released in the recording.
    """

    step: int
    start_bytes: int
    end_bytes: int
    peak_bytes: int
    allocated_bytes: int
    churn_bytes: int
    churn_blocks: int
    kept_bytes: int

    def __post_init__(self) -> None:
        require(min(self.start_bytes, self.end_bytes) >= 0, "live bytes are negative")
        require(self.churn_bytes + self.kept_bytes <= self.allocated_bytes, "more is released than was allocated")


@dataclass(frozen=True, slots=True)
class MemorySeries:
    """Live and reserved bytes over time, thinned to the maximum of each interval.

    Attributes:
        start_ns: Start of each interval, ascending.
        reserved_bytes: Empty if the trace does not say.
    """

    start_ns: tuple[int, ...]
    live_bytes: tuple[int, ...]
    reserved_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """The memory of one device, or of the host.

    Attributes:
        device: ``cpu``, ``cuda:0``, ...
        events: Allocations and releases.
        start_bytes, end_bytes: Live before the first and after the last of them.
        peak_ns: When most was live.
        reserved_peak_bytes: Most that the allocator held of the device; None if the trace does not say.
        before_bytes: Live at the peak and allocated before the recording.
        kinds: Every key of ``KINDS``: live at the peak; sums to ``peak_bytes``.
        holders: Holders of the rest at the peak, the largest first, thinned.
        others_bytes: Held by the holders that are left out, and by allocations without an address.
        churn: Places with the most memory released in the same step (without steps, in the recording).
        churn_bytes, churn_blocks: Of all of these.
        kept: Places with the most memory never released, allocated in steps other than the first (set-up) and the last.
        steps: In order.
        over_time: For drawing.
        repairs: Inconsistencies by kind; no zeros.
    """

    device: str
    events: int
    start_bytes: int
    end_bytes: int
    peak_bytes: int
    peak_ns: int
    reserved_peak_bytes: int | None
    before_bytes: int
    kinds: Mapping[str, int]
    holders: tuple[MemoryHolder, ...]
    others_bytes: int
    churn: tuple[MemoryHolder, ...]
    churn_bytes: int
    churn_blocks: int
    kept: tuple[MemoryHolder, ...]
    steps: tuple[MemoryStep, ...]
    over_time: MemorySeries
    repairs: Mapping[str, int]

    @property
    def grows(self) -> bool:
        """Whether every step begins with more live than the one before it, beyond the second by a segment or more."""
        starts = [step.start_bytes for step in self.steps]
        grown = len(starts) > 2 and all(after > before for before, after in pairwise(starts))
        # The first may set up what stays.
        return grown and starts[-1] - starts[1] >= SEGMENT_BYTES

    def __post_init__(self) -> None:
        held = self.before_bytes + self.others_bytes + sum(holder.bytes for holder in self.holders)
        require(tuple(self.kinds) == KINDS, f"{self.device}: kinds are out of order")
        require(sum(self.kinds.values()) == self.peak_bytes, f"{self.device}: kinds do not sum to the peak")
        require(held == self.peak_bytes, f"{self.device}: holders do not sum to the peak")
        require(
            min(self.start_bytes, self.end_bytes, self.before_bytes) >= 0, f"{self.device}: live bytes are negative"
        )
