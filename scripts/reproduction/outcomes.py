"""What is measured, what became of it, and ratios of it."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """One measured call: a target of the command line, compiled or not, with parameters as texts."""

    name: str
    target: str
    compile: bool = False
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """Wall time of one call in ns with its 95 % interval; ``host_ns`` by category, and by category/part, where profiled.

    Attributes:
        trace_residual_share: The corrected trace's total over the wall time, less one; None without a trace.
        trace_bare_share: The same over the bare time of the trace's own process; None where that is not stored, too.
    """

    ns: float
    low_ns: float
    high_ns: float
    processes: int
    host_ns: Mapping[str, float] = field(default_factory=dict)
    trace_residual_share: float | None = None
    trace_bare_share: float | None = None

    def __post_init__(self) -> None:
        if not (0 <= self.low_ns <= self.ns <= self.high_ns and self.ns > 0):
            raise ValueError(f"an interval contains its estimate: {self.low_ns} {self.ns} {self.high_ns}")

    @property
    def is_disturbed(self) -> bool:
        """Whether the interval spans more than a factor of two: nothing is to be concluded from such a figure."""
        return self.high_ns > 2 * self.low_ns


# What became of a call: its figures, or why there are none.
Outcome = Measured | str
Outcomes = Mapping[str, Outcome]
NOT_YET = "not measured yet"


def outcome_of(outcomes: Outcomes, name: str) -> Outcome:
    """The outcome of ``UNIT/CALL``, or of the call whose unit has its name, measured or not."""
    return outcomes.get(name if "/" in name else f"{name}/{name}", NOT_YET)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A quotient with its 95 % interval."""

    value: float
    low: float
    high: float


def ratio(top: Measured, bottom: Measured) -> Ratio:
    """``top`` over ``bottom``, taken to be independent: their distances to the bounds add in quadrature, on a log scale."""
    value = top.ns / bottom.ns
    below = math.hypot(_log_distance(top.low_ns, top.ns), _log_distance(bottom.ns, bottom.high_ns))
    above = math.hypot(_log_distance(top.ns, top.high_ns), _log_distance(bottom.low_ns, bottom.ns))
    return Ratio(value, value * math.exp(-below), value * math.exp(above))


def _log_distance(low_ns: float, high_ns: float) -> float:
    return math.log(high_ns / low_ns) if low_ns > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Unit:
    """What is measured and stored in one go: ``measure`` gives each call's outcome by name."""

    name: str
    measure: Callable[[argparse.Namespace], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class TimeRow:
    """A published time of a call, None if there is none; ``here`` names the call as for ``outcome_of``."""

    label: str
    source: str
    published_ns: float | None
    here: str


@dataclass(frozen=True, slots=True)
class RatioRow:
    """How many times faster the call ``fast`` is than ``slow``, as published (None if nowhere); names as for ``outcome_of``."""

    label: str
    source: str
    published: float | None
    slow: str
    fast: str


@dataclass(frozen=True, slots=True)
class Part:
    """A workload: its units, its rows, and a function from the outcomes of its calls, by ``UNIT/CALL``, to notes."""

    name: str
    units: tuple[Unit, ...]
    times: Sequence[TimeRow] = ()
    ratios: Sequence[RatioRow] = ()
    notes: Callable[[Outcomes], list[str]] = lambda _: []
