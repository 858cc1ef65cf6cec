"""Factors the ratio of two variants of one scenario by category, per unit of work.

Where the scenario's work and the machine's peaks are known, ``kernel`` is split further, so that the parts sum to it exactly::

    kernel    |----------------------------------------------------------|
    arithmetic|-------|                 flops / matrix-product rate of all threads
    one thread        |-------|         the same at the rate of one thread, where units are processed one at a time
    re-read                   |------|  shared bytes x reads / rate of the level that holds them, beyond the arithmetic
    rest                             |-----------------------------------|  time beyond the roofline

Arithmetic and memory traffic overlap at best, so re-reading counts only beyond the arithmetic. The split is an estimate: nothing
counts a call's cache accesses or its threads. Shared bytes are read once per call of the costliest operator, by the trace; with
about one read per unit, every unit is taken to run on one thread, as a matrix-vector product does.
"""

from __future__ import annotations

from dataclasses import dataclass

from overhead_lens.budget.model import Breakdown
from overhead_lens.errors import require
from overhead_lens.scenario import Work
from overhead_lens.units import format_bytes, format_rate

KERNEL_PARTS = ("kernel: arithmetic", "kernel: on one thread", "kernel: re-reading shared data", "kernel: rest")

# With these alike, the peaks of either capture hold for both.
_MACHINE = ("host", "cpu", "threads")


@dataclass(frozen=True, slots=True)
class Factor:
    """One part of both calls, in ns per call.

    Attributes:
        name: A category, or one of ``KERNEL_PARTS``.
        estimate: Derived from peaks and work, not measured.
    """

    name: str
    base_ns: int
    new_ns: int
    estimate: bool = False

    @property
    def delta_ns(self) -> int:
        """New less base."""
        return self.new_ns - self.base_ns

    def __post_init__(self) -> None:
        require(min(self.base_ns, self.new_ns) >= 0, f"{self.name} is negative")


@dataclass(frozen=True, slots=True)
class KernelRates:
    """Rates that the kernel of one side achieved, per second of kernel time.

    Attributes:
        shared_reads: Reads of the shared bytes per call.
        one_by_one: Units are processed one at a time, on one thread.
        flops_per_byte: Arithmetic intensity; shared bytes count at every read.
    """

    shared_reads: float
    one_by_one: bool
    shared_bytes_per_s: float
    flops_per_s: float
    flops_per_byte: float


@dataclass(frozen=True, slots=True)
class KernelSplit:
    """Work, measured peaks and achieved rates that the kernel's parts are derived from.

    Attributes:
        flops: Arithmetic of one call.
        shared_bytes: Bytes that all units share.
        level: The memory level that holds them for one thread.
        level_bytes_per_s: Its measured peak, one thread.
        gemv_bytes_per_s: Read rate of a matrix-vector product from there; None where it was not measured.
        peak_flops_per_s: Rate of a matrix product, all threads.
    """

    flops: int
    shared_bytes: int
    level: str
    level_bytes_per_s: float
    gemv_bytes_per_s: float | None
    peak_flops_per_s: float
    one_thread_flops_per_s: float
    base: KernelRates
    new: KernelRates


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors of the ratio of two wall times, for the same number of units.

    Attributes:
        base_ns, new_ns: Wall times in ns per call; the sums of the parts.
        parts: In the taxonomy's order, zeros included.
        kernel: Basis of the split of ``kernel``; None where it is not split.
    """

    units: int
    base_ns: int
    new_ns: int
    parts: tuple[Factor, ...]
    kernel: KernelSplit | None

    def __post_init__(self) -> None:
        sums_ns = sum(part.base_ns for part in self.parts), sum(part.new_ns for part in self.parts)
        require(self.units >= 1, f"{self.units} units of work")
        require(sums_ns[0] == self.base_ns, "the factors of the base do not sum to its wall time")
        require(sums_ns[1] == self.new_ns, "the factors of the new side do not sum to its wall time")

    @property
    def delta_ns(self) -> int:
        """New less base, ns per call."""
        return self.new_ns - self.base_ns

    def share(self, part: Factor) -> float:
        """The part's share of the difference; negative where it changed the other way."""
        return part.delta_ns / self.delta_ns if part.delta_ns and self.delta_ns else 0.0

    def ratio_without(self, part: Factor) -> float | None:
        """Ratio of slower to faster side if this part were equal; None for a wall of 0."""
        slow, fast = max(self.base_ns, self.new_ns), min(self.base_ns, self.new_ns)
        excess = part.delta_ns if self.new_ns == slow else -part.delta_ns
        return (slow - excess) / fast if fast else None


def make_factors(base: Breakdown, new: Breakdown) -> Factors | None:
    """The factors of two variants of one scenario with several units of the same work; None of other sides."""
    work, variants = (
        [(side.subject.name, side.units, side.work) for side in (base, new)],
        [(side.subject.variant, side.subject.compile) for side in (base, new)],
    )
    if work[0] != work[1] or base.units == 1 or variants[0] == variants[1]:
        return None
    split = _split_basis(base, new)
    parts: list[Factor] = []
    for old, recent in zip(base.host, new.host, strict=True):
        if old.category == "kernel" and split is not None:
            before, after = _kernel(old.ns, split, split.base), _kernel(recent.ns, split, split.new)
            parts += [Factor(*row, True) for row in zip(KERNEL_PARTS, before, after, strict=True)]
        else:
            parts.append(Factor(old.category, old.ns, recent.ns))
    return Factors(base.units, base.wall.ns, new.wall.ns, tuple(parts), split)


def _kernel(kernel_ns: int, split: KernelSplit, rates: KernelRates) -> tuple[int, ...]:
    """``KERNEL_PARTS`` of one side's kernel time; they sum to it."""
    own_flops_per_s = split.one_thread_flops_per_s if rates.one_by_one else split.peak_flops_per_s
    steps_ns = (
        split.flops / split.peak_flops_per_s * 1e9,
        split.flops / own_flops_per_s * 1e9,
        split.shared_bytes * rates.shared_reads / split.level_bytes_per_s * 1e9,
    )
    parts: list[int] = []
    for step_ns in steps_ns:
        parts.append(max(min(round(step_ns), kernel_ns) - sum(parts), 0))
    return (*parts, kernel_ns - sum(parts))


def _split_basis(base: Breakdown, new: Breakdown) -> KernelSplit | None:
    """Rates of both sides and the larger peaks of the two captures; None where one is unknown."""
    work, machines = base.work, [[side.environment.get(key) for key in _MACHINE] for side in (base, new)]
    if work is None or not work.flops or not work.shared_bytes or machines[0] != machines[1]:
        return None
    rates = [_rates(side, work) for side in (base, new) if side.subject.device == "cpu"]
    peaks = [side.peaks for side in (base, new) if side.peaks is not None]
    levels = [machine.level_of_one_thread(work.shared_bytes) for machine in peaks]
    known_rates = [side_rates for side_rates in rates if side_rates is not None]
    known_levels = [level for level in levels if level is not None]
    if len(known_rates) < 2 or len(known_levels) < 2:
        return None
    name = known_levels[0][0].name
    gemv = [row.bytes_per_s for machine in peaks for row in machine.gemv if row.level == name]
    return KernelSplit(
        work.flops,
        work.shared_bytes,
        name,
        max(one_thread.bytes_per_s for _, one_thread in known_levels),
        max(gemv, default=None),
        max(machine.flops_per_s for machine in peaks),
        max(machine.one_thread_flops_per_s or 0.0 for machine in peaks),
        *known_rates,
    )


def _rates(side: Breakdown, work: Work) -> KernelRates | None:
    kernel_ns, reads = side.category("kernel").ns, side.shared_reads
    if reads is None or kernel_ns == 0:
        return None
    traffic = work.bytes + work.shared_bytes * (reads - 1)
    per_s = 1e9 / kernel_ns
    one_by_one = reads > work.units / 2
    return KernelRates(reads, one_by_one, work.shared_bytes * reads * per_s, work.flops * per_s, work.flops / traffic)


def describe_kernel(split: KernelSplit) -> list[str]:
    """Lines that say how the kernel's parts are derived and which rates either side achieved."""
    peak = f"{format_rate(split.level_bytes_per_s)} measured there (one thread)"
    gemv = (
        f"; a matrix-vector product alone reads {format_rate(split.gemv_bytes_per_s)}" if split.gemv_bytes_per_s else ""
    )
    lines = [
        (
            f"estimate: {format_bytes(split.shared_bytes)} that all units share lie in {split.level}, {peak}{gemv};"
            f" arithmetic at the {format_rate(split.peak_flops_per_s, 'FLOP')} of a matrix product"
            f" ({format_rate(split.one_thread_flops_per_s, 'FLOP')} on one thread)"
        )
    ]
    for name, rates in (("base", split.base), ("new", split.new)):
        speed = f"{format_rate(rates.flops_per_s, 'FLOP')} ({rates.flops_per_s / split.peak_flops_per_s:.0%} of that)"
        lines.append(f"kernel of {name}: {_reading(rates, split)}, {speed}, {rates.flops_per_byte:.3g} FLOP per byte")
        if rates.shared_bytes_per_s > split.level_bytes_per_s:
            lines.append(
                f"kernel of {name} reads faster than {split.level} was measured: its share of the call is too small"
                " (see its interval), or the peak is; do not believe the split"
            )
    return lines


def _reading(rates: KernelRates, split: KernelSplit) -> str:
    if rates.shared_reads <= 1:
        return "shared data read once"
    share = rates.shared_bytes_per_s / split.level_bytes_per_s
    return f"shared data read {rates.shared_reads:,.0f} times at {format_rate(rates.shared_bytes_per_s)} ({share:.0%} of that)"
