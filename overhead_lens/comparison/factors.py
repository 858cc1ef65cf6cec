"""Factors the ratio of two variants of one scenario by category, per unit of work."""

from __future__ import annotations

from dataclasses import dataclass

from overhead_lens.budget.model import Breakdown
from overhead_lens.errors import require


@dataclass(frozen=True, slots=True)
class Factor:
    """A category of both calls, in ns per call."""

    name: str
    base_ns: int
    new_ns: int

    @property
    def delta_ns(self) -> int:
        """New less base."""
        return self.new_ns - self.base_ns

    def __post_init__(self) -> None:
        require(min(self.base_ns, self.new_ns) >= 0, f"{self.name} is negative")


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors of the ratio of two wall times, for the same number of units.

    Attributes:
        base_ns, new_ns: Wall times in ns per call; the sums of the parts.
        parts: In the taxonomy's order, zeros included.
    """

    units: int
    base_ns: int
    new_ns: int
    parts: tuple[Factor, ...]

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
    work = [(side.subject.name, side.units, side.work) for side in (base, new)]
    variants = [(side.subject.variant, side.subject.compile) for side in (base, new)]
    if work[0] != work[1] or base.units == 1 or variants[0] == variants[1]:
        return None
    parts = [Factor(old.category, old.ns, recent.ns) for old, recent in zip(base.host, new.host, strict=True)]
    return Factors(base.units, base.wall.ns, new.wall.ns, tuple(parts))
