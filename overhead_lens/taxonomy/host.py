"""One category of a host budget, its parts and its frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from overhead_lens.errors import require
from overhead_lens.stats.values import Interval
from overhead_lens.taxonomy.categories import OTHER, PARTS
from overhead_lens.taxonomy.rules import Attribution
from overhead_lens.units import proportional


@dataclass(frozen=True, slots=True)
class Part:
    """A named share of a category; the parts of a category sum to it exactly."""

    name: str
    ns: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A Python function with file, or native symbol with module, and its self time."""

    frame: str
    ns: int


@dataclass(frozen=True, slots=True)
class HostCategory:
    """One category of the host budget.

    Attributes:
        evidence: ``samples``, ``trace``, ``clock`` (timed by itself), ``estimate`` (a trace, where operators' time is divided)
            or ``none`` (never observed).
        parts: Sum exactly to ``ns``; empty for a category without parts.
        top: Frames with the most self time in this category, largest first.
    """

    category: str
    ns: int
    ci95_ns: Interval
    share: float
    evidence: str
    parts: tuple[Part, ...] = ()
    top: tuple[Frame, ...] = ()

    def __post_init__(self) -> None:
        require(self.ns >= 0, f"{self.category} is negative")
        require(self.ci95_ns[0] <= self.ci95_ns[1], f"{self.category}: interval {self.ci95_ns} is reversed")
        closes = not self.parts or sum(part.ns for part in self.parts) == self.ns
        require(closes, f"parts of {self.category} do not sum")

    def part_ns(self, name: str) -> int:
        """Time of a part; 0 if it has none of that name."""
        return sum(part.ns for part in self.parts if part.name == name)


def parts_of(category: str, ns: int, weights: Mapping[Attribution, float]) -> tuple[Part, ...]:
    """The parts of a category that took ``ns``; none if no time has a part."""
    own = {part: weights.get(Attribution(category, part), 0) for part in PARTS.get(category, ())}
    if ns == 0 or not any(own.values()):
        return ()
    if without_part := weights.get(Attribution(category)):
        own[OTHER] = without_part
    return tuple(map(Part, own, proportional(list(own.values()), ns)))
