"""The verdict on one site at one cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

TOLERATED_SHARE = 0.1
TOLERATED_NS = 60.0


@dataclass(frozen=True, slots=True)
class Cell:
    """The verdict on one site at one cost; all in ns per call.

    Attributes:
        site: Its name.
        cost_ns: The requested cost.
        bare_ns: Difference of the bare wall times: the truth.
        bare_ci95_ns: Its interval.
        category: The right one.
        first: The one that moved most.
        moved_ns: How far the right category moved.
        sampling_ns: 95 % half-width of that from sampling: what processes differ by, or the number of stacks allows.
        other: Of the other categories, the one that moved most.
        other_ns: How far it moved.
        other_sampling_ns: 95 % half-width of that.
        samples: Stacks without the cost, and with it.
        blamed: The category that the product's comparison blames first; None if it blames none.
        blamed_ns: By how much this one moved according to it.
        blamed_besides_ns: The most by which another one that it blames moved, according to it.
    """

    site: str
    cost_ns: int
    bare_ns: float
    bare_ci95_ns: tuple[float, float]
    category: str
    first: str
    moved_ns: int
    sampling_ns: float
    other: str
    other_ns: int
    other_sampling_ns: float
    samples: tuple[int, int]
    blamed: str | None
    blamed_ns: int
    blamed_besides_ns: int

    @property
    def blame_passed(self) -> bool:
        """Whether the comparison blames the right category, by the right size, and no other for more than is tolerated."""
        off_ns = max(abs(self.blamed_ns - self.bare_ns), abs(self.blamed_besides_ns))
        return self.blamed == self.category and off_ns <= self.tolerated_ns

    @property
    def right(self) -> bool:
        """Whether the right category moved most."""
        return self.first == self.category

    @property
    def tolerated_ns(self) -> float:
        """How far a category may be off."""
        return max(TOLERATED_SHARE * self.bare_ns, TOLERATED_NS)

    @property
    def passed(self) -> bool:
        """Right, of the right size, and nothing else moved."""
        return self.right and max(abs(self.moved_ns - self.bare_ns), abs(self.other_ns)) <= self.tolerated_ns

    @property
    def explained(self) -> bool:
        """Whether what is not known explains by how much the right category and the other one are further off than tolerated.

        That is the sampling error of both, and of the right one also the interval of the bare difference it is compared with.
        """
        off_ns = self.moved_ns - self.bare_ns
        low_ns, high_ns = self.bare_ci95_ns
        bare_error_ns = high_ns - self.bare_ns if off_ns > 0 else self.bare_ns - low_ns
        return (
            abs(off_ns) <= self.tolerated_ns + math.hypot(self.sampling_ns, bare_error_ns)
            and abs(self.other_ns) <= self.tolerated_ns + self.other_sampling_ns
        )

    @property
    def verdict(self) -> str:
        """``pass``, ``unresolved`` (too much is unknown for a verdict) or ``FAIL``."""
        return "pass" if self.passed else "unresolved" if self.explained else "FAIL"
