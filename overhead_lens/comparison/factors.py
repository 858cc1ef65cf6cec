"""Factors the ratio of two variants of one scenario by category, per unit of work."""

from __future__ import annotations

from dataclasses import dataclass, field

from overhead_lens.budget.model import Breakdown
from overhead_lens.contract import Ratio, ShareOfTime, Thousandths, derive
from overhead_lens.errors import require


@dataclass(frozen=True, slots=True)
class Factor:
    """A part of the difference of two variants that do the same work; the parts sum to the walls."""

    name: str
    base_ns: int
    new_ns: int
    delta_ns: int = field(init=False)
    per_unit_ns: Thousandths
    share: ShareOfTime  # Of the difference; negative where the part changed the other way.
    ratio_without: Ratio | None  # Of slower to faster side if this part were equal; None for a wall of 0.

    def __post_init__(self) -> None:
        derive(self, delta_ns=self.new_ns - self.base_ns)
        require(min(self.base_ns, self.new_ns) >= 0, f"{self.name} is negative")


@dataclass(frozen=True, slots=True)
class Factors:
    """What the ratio of two variants is made of, ns per call; ``per_unit_ns`` is per unit of work."""

    units: int
    base_ns: int
    new_ns: int
    delta_ns: int = field(init=False)
    parts: tuple[Factor, ...]  # In the taxonomy's order, zeros included.

    def __post_init__(self) -> None:
        derive(self, delta_ns=self.new_ns - self.base_ns)
        sums_ns = sum(part.base_ns for part in self.parts), sum(part.new_ns for part in self.parts)
        require(self.units >= 1, f"{self.units} units of work")
        require(sums_ns[0] == self.base_ns, "the factors of the base do not sum to its wall time")
        require(sums_ns[1] == self.new_ns, "the factors of the new side do not sum to its wall time")


def make_factors(base: Breakdown, new: Breakdown) -> Factors | None:
    """The factors of two variants of one scenario with several units of the same work; None of other sides."""
    work = [(side.subject.name, side.units, side.work) for side in (base, new)]
    variants = [(side.subject.variant, side.subject.compile) for side in (base, new)]
    if work[0] != work[1] or base.units == 1 or variants[0] == variants[1]:
        return None
    walls_ns = base.wall.ns, new.wall.ns
    parts = [
        _factor(old.category, old.ns, recent.ns, walls_ns, base.units)
        for old, recent in zip(base.host, new.host, strict=True)
    ]
    return Factors(base.units, *walls_ns, tuple(parts))


def _factor(name: str, base_ns: int, new_ns: int, walls_ns: tuple[int, int], units: int) -> Factor:
    delta_ns, whole_ns, fast_ns = new_ns - base_ns, walls_ns[1] - walls_ns[0], min(walls_ns)
    without_ns = max(walls_ns) - (delta_ns if whole_ns >= 0 else -delta_ns)
    share = delta_ns / whole_ns if delta_ns and whole_ns else 0.0
    return Factor(name, base_ns, new_ns, delta_ns / units, share, without_ns / fast_ns if fast_ns else None)
