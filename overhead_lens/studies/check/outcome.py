"""Outcomes of a check: in time (and instructions), or in instructions alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from overhead_lens.comparison.instructions import InstructionDelta
from overhead_lens.comparison.model import Delta
from overhead_lens.studies.check.limits import CountFinding, Finding
from overhead_lens.subject import Subject


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
    findings: Sequence[CountFinding]
    regressed: bool

    @property
    def name(self) -> str:
        """Scenario and variant: ``add1:add1``."""
        return f"{self.subject.name}:{self.subject.variant}"


Outcome = TimeOutcome | CountOutcome
