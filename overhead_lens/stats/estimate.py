"""A time with its 95 % interval, and how that interval was made."""

from __future__ import annotations

from dataclasses import dataclass, field

from overhead_lens.errors import require
from overhead_lens.stats.values import Interval

OVER_PROCESSES = "bootstrap over processes"
OVER_BLOCKS = "bootstrap over blocks"
T_OVER_BLOCKS = "t over blocks"
NO_INTERVAL = "none"

FEWEST_PROCESSES = 4
"""Fewer say nothing that one could believe about processes in general: a report gives their range."""

_RANGE = "range of "


def range_of(processes: int) -> str:
    """The way of an interval that is the range of so few processes."""
    return f"{_RANGE}{processes} processes"


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured time, ns.

    Attributes:
        ci95_ns: Its interval; the estimate twice where it has none.
        interval: How the interval was made: ``bootstrap over processes``, ``bootstrap over blocks``, ``t over blocks``,
            ``range of N processes``, which is not a 95 % interval, or ``none``.
    """

    ns: float
    ci95_ns: Interval
    interval: str = field(default=OVER_PROCESSES, kw_only=True)

    def __post_init__(self) -> None:
        require(self.ci95_ns[0] <= self.ci95_ns[1], f"interval {self.ci95_ns} is reversed")

    @property
    def is_range(self) -> bool:
        """Whether the interval is the range of few processes."""
        return self.interval.startswith(_RANGE)

    @property
    def has_level(self) -> bool:
        """Whether the interval covers the truth in 95 % of all measurements."""
        return self.interval != NO_INTERVAL and not self.is_range

    def scaled(self, factor: float) -> Interval:
        """The interval in proportion."""
        low, high = self.ci95_ns
        return low * factor, high * factor
