"""``overhead-lens/delta/3`` and ``overhead-lens/counts-delta/2``: the difference of two budgets; durations in ns per call."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType, field

from overhead_lens.comparison import model
from overhead_lens.comparison.factors import Factors
from overhead_lens.comparison.instructions import InstructionDelta
from overhead_lens.contract import Ratio, ShareOfTime, Tenths, TenthsInterval
from overhead_lens.documents.breakdown import BreakdownDocument, breakdown_document
from overhead_lens.documents.common import Document, Row, fill
from overhead_lens.studies.check.limits import CountOutcome, Finding, TimeOutcome
from overhead_lens.subject import Subject


class WallDelta(Row, frozen=True):
    """The wall times and their difference, ns per call; ``ratio`` is new over base."""

    base_ns: float
    new_ns: float
    delta_ns: float
    ci95_ns: TenthsInterval
    ratio: Ratio | None


class Move(Row, frozen=True):
    """A frame, guard, operator or kernel whose cost changed, ns per call."""

    kind: str
    name: str
    delta_ns: float
    ci95_ns: TenthsInterval | None
    verdict: str | None


class CategoryDelta(Row, frozen=True):
    """A category's difference, ns per call; ``in_frames_ns`` is the sum of its frames that changed significantly."""

    category: str
    delta_ns: float
    ci95_ns: TenthsInterval
    verdict: str
    in_frames_ns: float | None
    contributors: list[Move] = field(name="moved")


class Limit(Row, frozen=True, kw_only=True):
    """What the call or a category may take more, and what it took more: ns or instructions per call."""

    name: str
    allowed_ns: Tenths | UnsetType = UNSET
    delta_ns: float | UnsetType = UNSET
    ci95_ns: TenthsInterval | UnsetType = UNSET
    allowed_count: Tenths | UnsetType = UNSET
    delta_count: int | UnsetType = UNSET
    state: str


class DeltaDocument(Document, frozen=True, kw_only=True):
    """What changed between two captures. The categories' differences sum to the wall's.

    ``blame`` lists the categories that moved in the verdict's direction, largest first. ``limits`` and ``regressed`` are there
    where a baseline was checked.
    """

    schema: Literal["overhead-lens/delta/3"] = "overhead-lens/delta/3"
    base: BreakdownDocument
    new: BreakdownDocument
    verdict: str
    margin_share: float
    wall: WallDelta
    host: list[CategoryDelta]
    blame: list[str]
    sentence: str
    detectable_share: ShareOfTime
    factors: Factors | None
    instructions: InstructionDelta | None
    warnings: list[str]
    limits: list[Limit] | UnsetType = UNSET
    regressed: bool | UnsetType = UNSET


def delta_document(delta: model.Delta, **check: Any) -> DeltaDocument:
    """The document of a difference; ``check`` holds the ``limits`` of a checked baseline and whether it ``regressed``."""
    return fill(
        DeltaDocument,
        delta,
        base=breakdown_document(delta.base),
        new=breakdown_document(delta.new),
        wall={
            "base_ns": delta.base.wall.ns,
            "new_ns": delta.new.wall.ns,
            "delta_ns": delta.wall_delta_ns,
            "ci95_ns": delta.wall_ci95_ns,
            "ratio": delta.ratio,
        },
        **check,
    )


def checked_document(outcome: TimeOutcome) -> DeltaDocument:
    """The document of a checked baseline."""
    limits = [limit(finding) for finding in outcome.findings]
    return delta_document(outcome.delta, limits=limits, regressed=outcome.regressed)


def limit(finding: Finding) -> Limit:
    """A limit and the difference compared with it."""
    amounts: dict[str, Any] = {"allowed_count": finding.allowed, "delta_count": finding.delta}
    if not finding.limit.counts:
        amounts = {"allowed_ns": finding.allowed, "delta_ns": finding.delta, "ci95_ns": finding.ci95_ns}
    return msgspec.convert({"name": finding.limit.name, **amounts, "state": finding.state}, Limit)


class CountsDocument(Document, frozen=True, kw_only=True):
    """The outcome of a check in instructions: ``base`` and ``new`` are directories, ``calls`` were counted on either side."""

    schema: Literal["overhead-lens/counts-delta/2"] = "overhead-lens/counts-delta/2"
    subject: Subject
    base: str
    new: str
    calls: int
    delta: InstructionDelta = field(name="instructions")
    limits: list[Limit]
    regressed: bool


def counts_document(outcome: CountOutcome) -> CountsDocument:
    """The document of a check in instructions."""
    return fill(CountsDocument, outcome, limits=[limit(finding) for finding in outcome.findings])
