"""Compares a difference with limits on the increase of time or instructions; the outcome of a check.

A limit is broken if the whole 95 % interval of the difference lies above it, so that noise alone breaks it in at most one run of
forty. If only the estimate does, the limit is in doubt, which is reported and does not fail. So is a limit of a category where
stacks divide one side and a trace the other, which count differently. Instruction counts have no interval: their limits are kept
or broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from overhead_lens.comparison.instructions import InstructionDelta, signed_count, signed_share
from overhead_lens.comparison.model import Delta
from overhead_lens.errors import UsageError
from overhead_lens.stats.values import Interval
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.units import format_signed_ns

TOTAL = "total"
INSTRUCTIONS = "instructions"

KEPT, DOUBTFUL, BROKEN = "kept", "in doubt", "broken"

_LIMIT = re.compile(
    r"(?P<name>(?P<kind>[a-z]+)(\.(?P<category>[a-z]+))?)=(?P<number>\d+(\.\d+)?)(?P<unit>%|ns|us|µs|ms|)"
)
_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6}


@dataclass(frozen=True, slots=True)
class Limit:
    """The allowed increase of ``total``, a category, ``instructions`` or ``instructions.CATEGORY``.

    Attributes:
        amount: ns or instructions per call; None for a share.
        share: Of the base's wall time, or of its instructions; None for an amount.
    """

    name: str
    amount: float | None
    share: float | None

    @property
    def counts(self) -> bool:
        """Whether instructions are limited, and not time."""
        return self.name.partition(".")[0] == INSTRUCTIONS

    def allowed(self, base: int) -> float:
        """The limit in ns or instructions per call, from the wall time or the instructions of the base."""
        return self.amount if self.amount is not None else (self.share or 0.0) * base


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in time and in instructions; without any, a call may not become slower."""

    times: Sequence[Limit] = ()
    counts: Sequence[Limit] = ()

    @classmethod
    def of(cls, limits: Iterable[Limit]) -> Limits:
        """The limits of both kinds, in their order."""
        all_limits = list(limits)
        return cls([limit for limit in all_limits if not limit.counts], [limit for limit in all_limits if limit.counts])

    @property
    def only_counts(self) -> bool:
        """Whether nothing is timed."""
        return bool(self.counts) and not self.times


DEFAULT_COUNT_LIMIT = Limit(INSTRUCTIONS, None, 0.005)
"""The limit of a gate that only counts: more than twice the difference between two counts of the same call."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A limit and the measured difference, in ns or instructions per call; ``state`` is ``kept``, ``in doubt`` or ``broken``.

    Attributes:
        ci95_ns: None for instructions, which are exact.
        base_count: The base's instructions; 0 for a limit in time.
    """

    limit: Limit
    allowed: float
    delta: int
    state: str
    ci95_ns: Interval | None = None
    base_count: int = 0

    def __str__(self) -> str:
        interval = "" if self.ci95_ns is None else f" [{' .. '.join(map(format_signed_ns, self.ci95_ns))}]"
        figures = f"{self.text(self.delta)}{interval}, at most {self.text(self.allowed)} allowed"
        return f"{self.limit.name}: {figures}: {self.state}"

    def text(self, amount: float) -> str:
        """An amount with its unit."""
        if not self.limit.counts:
            return format_signed_ns(amount)
        share = signed_share(amount, self.base_count)
        return f"{signed_count(amount)} ({share})" if share else signed_count(amount)


def parse_limit(text: str) -> Limit:
    """Parse ``total=3%``, ``guard=100ns``, ``kernel=1.5us``; ``instructions=0.5%``, ``instructions.guard=100``.

    Raises:
        UsageError: The text is not a limit.
    """
    match = _LIMIT.fullmatch(text.strip())
    known = (TOTAL, *HOST_CATEGORIES)
    counts = match is not None and match["kind"] == INSTRUCTIONS and match["unit"] in ("", "%")
    if match is None or not (counts or (match["name"] in known and match["unit"])):
        raise UsageError(
            f"--max takes NAME=NUMBER and %, ns, us or ms (total=3%, guard=100ns), not {text!r}; names: {', '.join(known)}; "
            "in instructions: instructions=0.5%, instructions.guard=100"
        )
    if counts and match["category"] not in (None, *HOST_CATEGORIES):
        raise UsageError(f"--max {text!r} names no category of instructions; names: {', '.join(HOST_CATEGORIES)}")
    number = float(match["number"])
    if match["unit"] == "%":
        return Limit(match["name"], None, number / 100)
    return Limit(match["name"], number * _NS.get(match["unit"], 1.0), None)


def check_counts(delta: InstructionDelta, limits: Sequence[Limit]) -> tuple[Finding, ...]:
    """A finding for each limit in instructions, in their order."""
    by_name = {f"{INSTRUCTIONS}.{change.category}": change.delta_count for change in delta.host}
    by_name[INSTRUCTIONS] = delta.delta_count
    findings = []
    for limit in limits:
        count, allowed = by_name[limit.name], limit.allowed(delta.base_count)
        state = KEPT if count <= allowed else BROKEN
        findings.append(Finding(limit, allowed, count, state, base_count=delta.base_count))
    return tuple(findings)


def check_limits(delta: Delta, limits: Sequence[Limit]) -> tuple[Finding, ...]:
    """A finding for each limit in time, in their order."""
    by_name = {change.category: (change.delta_ns, change.ci95_ns) for change in delta.host}
    by_name[TOTAL] = (delta.wall_delta_ns, delta.wall_ci95_ns)
    is_like = delta.base.evidence == delta.new.evidence
    findings = []
    for limit in limits:
        (delta_ns, interval), allowed_ns = by_name[limit.name], limit.allowed(delta.base.wall.ns)
        # The interval is not rounded to whole ns, as the difference is.
        state = BROKEN if interval[0] > allowed_ns else KEPT if delta_ns <= allowed_ns else DOUBTFUL
        if limit.name != TOTAL and not is_like and delta_ns:
            state = DOUBTFUL
        findings.append(Finding(limit, allowed_ns, delta_ns, state, interval))
    return tuple(findings)


@dataclass(frozen=True, slots=True)
class TimeOutcome:
    """A new capture compared with a baseline.

    Attributes:
        findings: One per limit.
        regressed: Whether a limit is broken or, without limits, the call became slower.
    """

    delta: Delta
    findings: Sequence[Finding]
    regressed: bool

    @property
    def name(self) -> str:
        """Scenario and variant: ``add1:add1``."""
        return f"{self.delta.new.subject.name}:{self.delta.new.subject.variant}"


@dataclass(frozen=True, slots=True)
class CountOutcome:
    """New instruction counts compared with a baseline's.

    Attributes:
        calls: Counted calls of either side.
        findings: One per limit.
        regressed: Whether a limit is broken.
    """

    subject: Subject
    base: str
    new: str
    calls: int
    delta: InstructionDelta
    findings: Sequence[Finding]
    regressed: bool

    @property
    def name(self) -> str:
        """Scenario and variant: ``add1:add1``."""
        return f"{self.subject.name}:{self.subject.variant}"


Outcome = TimeOutcome | CountOutcome
