"""Compares a difference with limits on the increase of time or instructions.

A limit is broken if the whole 95 % interval of the difference lies above it, so that noise alone breaks it in at most one run of
forty. If only the estimate does, the limit is in doubt, which is reported and does not fail. Instruction counts have no interval:
their limits are kept or broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from overhead_lens.comparison.instructions import InstructionDelta, signed_count, signed_share
from overhead_lens.comparison.model import Delta
from overhead_lens.errors import UsageError
from overhead_lens.stats.values import Interval
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.units import format_ns, format_signed_ns

TOTAL = "total"
INSTRUCTIONS = "instructions"

KEPT, DOUBTFUL, BROKEN = "kept", "in doubt", "broken"

_LIMIT = re.compile(r"(?P<name>[a-z]+)=(?P<number>\d+(\.\d+)?)(?P<unit>%|ns|us|µs|ms)")
_COUNT_LIMIT = re.compile(rf"{INSTRUCTIONS}(\.(?P<category>[a-z]+))?=(?P<number>\d+(\.\d+)?)(?P<unit>%?)")
_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6}


@dataclass(frozen=True, slots=True)
class Limit:
    """The allowed increase of ``total`` or a category: ns per call, or share of the base's wall time."""

    name: str
    ns: float | None
    share: float | None

    def allowed_ns(self, base_wall_ns: int) -> float:
        """The limit in ns per call."""
        return self.ns if self.ns is not None else (self.share or 0.0) * base_wall_ns

    def __str__(self) -> str:
        return f"{self.name} at most +{format_ns(self.ns) if self.ns is not None else f'{self.share:.4g}'}"


@dataclass(frozen=True, slots=True)
class CountLimit:
    """The allowed increase in instructions per call of all or a category: a count, or share of the base's."""

    category: str | None
    count: float | None
    share: float | None

    @property
    def name(self) -> str:
        """``instructions``, ``instructions.guard``."""
        return INSTRUCTIONS if self.category is None else f"{INSTRUCTIONS}.{self.category}"

    def allowed_count(self, base_count: int) -> float:
        """The limit in instructions per call."""
        return self.count if self.count is not None else (self.share or 0.0) * base_count


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in time and in instructions; without any, a call may not become slower."""

    times: Sequence[Limit] = ()
    counts: Sequence[CountLimit] = ()

    @classmethod
    def of(cls, limits: Iterable[Limit | CountLimit]) -> Limits:
        """The limits of both kinds, in their order."""
        found = list(limits)
        times = [limit for limit in found if isinstance(limit, Limit)]
        return cls(times, [limit for limit in found if isinstance(limit, CountLimit)])

    @property
    def only_counts(self) -> bool:
        """Whether nothing is timed."""
        return bool(self.counts) and not self.times


DEFAULT_COUNT_LIMIT = CountLimit(None, None, 0.005)
"""The limit of a gate that only counts: five times the difference between two counts of the same call."""


@dataclass(frozen=True, slots=True)
class LimitFinding:
    """A limit and the measured difference; ``state`` is ``kept``, ``in doubt`` or ``broken``."""

    limit: Limit
    allowed_ns: float
    delta_ns: int
    ci95_ns: Interval
    state: str

    def __str__(self) -> str:
        low, high = self.ci95_ns
        figures = f"{self.delta} [{format_signed_ns(low)} .. {format_signed_ns(high)}]"
        return f"{self.limit.name}: {figures}, at most {self.allowed} allowed: {self.state}"

    @property
    def allowed(self) -> str:
        """The limit as text."""
        return format_signed_ns(self.allowed_ns)

    @property
    def delta(self) -> str:
        """The difference as text."""
        return format_signed_ns(self.delta_ns)


@dataclass(frozen=True, slots=True)
class CountFinding:
    """A limit and the difference in instructions per call; ``state`` is ``kept`` or ``broken``."""

    limit: CountLimit
    allowed_count: float
    delta_count: int
    base_count: int
    state: str

    def __str__(self) -> str:
        return f"{self.limit.name}: {self.delta}, at most {self.allowed} allowed: {self.state}"

    @property
    def allowed(self) -> str:
        """The limit as text."""
        return self._text(self.allowed_count)

    @property
    def delta(self) -> str:
        """The difference as text."""
        return self._text(self.delta_count)

    def _text(self, count: float) -> str:
        share = signed_share(count, self.base_count)
        return f"{signed_count(count)} ({share})" if share else signed_count(count)


def parse_limit(text: str) -> Limit | CountLimit:
    """Parse ``total=3%``, ``guard=100ns``, ``kernel=1.5us``; ``instructions=0.5%``, ``instructions.guard=100``.

    Raises:
        UsageError: The text is not a limit.
    """
    if count_match := _COUNT_LIMIT.fullmatch(text.strip()):
        return _count_limit(text, count_match)
    match = _LIMIT.fullmatch(text.strip())
    known = (TOTAL, *HOST_CATEGORIES)
    if match is None or match["name"] not in known:
        raise UsageError(
            f"--max takes NAME=NUMBER and %, ns, us or ms (total=3%, guard=100ns), not {text!r}; names: {', '.join(known)}; "
            "in instructions: instructions=0.5%, instructions.guard=100"
        )
    number = float(match["number"])
    if match["unit"] == "%":
        return Limit(match["name"], None, number / 100)
    return Limit(match["name"], number * _NS[match["unit"]], None)


def check_counts(delta: InstructionDelta, limits: Sequence[CountLimit]) -> tuple[CountFinding, ...]:
    """A finding for each limit in instructions, in their order."""
    return tuple(_count_finding(delta, limit) for limit in limits)


def check_limits(delta: Delta, limits: Sequence[Limit]) -> tuple[LimitFinding, ...]:
    """A finding for each limit in time, in their order."""
    return tuple(_finding(delta, limit) for limit in limits)


def _count_limit(text: str, match: re.Match[str]) -> CountLimit:
    if match["category"] not in (None, *HOST_CATEGORIES):
        raise UsageError(f"--max {text!r} names no category of instructions; names: {', '.join(HOST_CATEGORIES)}")
    number = float(match["number"])
    return CountLimit(match["category"], *((None, number / 100) if match["unit"] else (number, None)))


def _count_finding(delta: InstructionDelta, limit: CountLimit) -> CountFinding:
    count = delta.delta_count if limit.category is None else delta.change(limit.category).delta_count
    allowed = limit.allowed_count(delta.base_count)
    return CountFinding(limit, allowed, count, delta.base_count, KEPT if count <= allowed else BROKEN)


def _finding(delta: Delta, limit: Limit) -> LimitFinding:
    by_name = {change.category: (change.delta_ns, change.ci95_ns) for change in delta.host}
    by_name[TOTAL] = (delta.wall_delta_ns, delta.wall_ci95_ns)
    delta_ns, interval = by_name[limit.name]
    allowed_ns = limit.allowed_ns(delta.base.wall.ns)
    state = KEPT if delta_ns <= allowed_ns else BROKEN if interval[0] > allowed_ns else DOUBTFUL
    return LimitFinding(limit, allowed_ns, delta_ns, interval, state)
