"""``overhead-lens/delta/2``: the difference of two budgets; durations in ns per call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from overhead_lens.comparison import factors as factoring
from overhead_lens.comparison import instructions as counting
from overhead_lens.comparison import model
from overhead_lens.comparison.factors import KernelSplit
from overhead_lens.comparison.instructions import InstructionContributor
from overhead_lens.documents.breakdown import BreakdownDocument, breakdown_document
from overhead_lens.documents.common import Document, Interval, rounded, tenths
from overhead_lens.studies.check.limits import CountFinding, LimitFinding
from overhead_lens.studies.check.outcome import TimeOutcome


class WallDelta(Struct, frozen=True, forbid_unknown_fields=True):
    """The wall times and their difference, ns per call; ``ratio`` is new over base."""

    base_ns: float
    new_ns: float
    delta_ns: float
    ci95_ns: Interval
    ratio: float | None


class Move(Struct, frozen=True, forbid_unknown_fields=True):
    """A frame, guard, operator or kernel whose cost changed, ns per call."""

    kind: str
    name: str
    delta_ns: float
    ci95_ns: Interval | None
    verdict: str | None


class CategoryDelta(Struct, frozen=True, forbid_unknown_fields=True):
    """A category's difference, ns per call; ``in_frames_ns`` is the sum of its frames that changed significantly."""

    category: str
    delta_ns: float
    ci95_ns: Interval
    verdict: str
    in_frames_ns: float | None
    moved: list[Move]


class Factor(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the difference of two variants that do the same work; the parts sum to the walls."""

    name: str
    base_ns: int
    new_ns: int
    delta_ns: int
    per_unit_ns: float
    share: float
    ratio_without: float | None
    estimate: bool


class Factors(Struct, frozen=True, forbid_unknown_fields=True):
    """What the ratio of two variants is made of, ns per call; ``per_unit_ns`` is per unit of work."""

    units: int
    base_ns: int
    new_ns: int
    delta_ns: int
    parts: list[Factor]
    kernel: KernelSplit | None


class CountCategoryDelta(Struct, frozen=True, forbid_unknown_fields=True):
    """A category's difference in instructions per call."""

    category: str
    base_count: int
    new_count: int
    moved: list[InstructionContributor]
    delta_count: int


class CountDelta(Struct, frozen=True, forbid_unknown_fields=True):
    """The difference in instructions per call."""

    base_count: int
    new_count: int
    delta_count: int
    ratio: float | None
    verdict: str
    host: list[CountCategoryDelta]
    blame: list[str]
    sentence: str


class Limit(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the call or a category may take more, and what was found: in ns, or in instructions, per call."""

    name: str
    allowed_ns: float | UnsetType = UNSET
    delta_ns: float | UnsetType = UNSET
    ci95_ns: Interval | UnsetType = UNSET
    allowed_count: float | UnsetType = UNSET
    delta_count: int | UnsetType = UNSET
    state: str


class DeltaDocument(Document, frozen=True, kw_only=True):
    """What changed between two captures. The categories' differences sum to the wall's.

    ``blame`` lists the categories that moved in the verdict's direction, largest first. ``limits`` and ``regressed`` are there
    where a baseline was checked.
    """

    schema: Literal["overhead-lens/delta/2"] = "overhead-lens/delta/2"
    base: BreakdownDocument
    new: BreakdownDocument
    verdict: str
    margin_share: float
    wall: WallDelta
    host: list[CategoryDelta]
    blame: list[str]
    sentence: str
    detectable_share: float
    factors: Factors | None
    instructions: CountDelta | None
    warnings: list[str]
    limits: list[Limit] | UnsetType = UNSET
    regressed: bool | UnsetType = UNSET


def delta_document(
    delta: model.Delta, limits: Sequence[Limit] | None = None, *, regressed: bool | None = None
) -> DeltaDocument:
    """The document of a difference; of a checked baseline with its limits."""
    return DeltaDocument(
        base=breakdown_document(delta.base),
        new=breakdown_document(delta.new),
        verdict=delta.verdict,
        margin_share=delta.margin_share,
        wall=WallDelta(
            float(delta.base.wall.ns),
            float(delta.new.wall.ns),
            float(delta.wall_delta_ns),
            tenths(delta.wall_ci95_ns),
            rounded(delta.ratio, 4),
        ),
        host=[_category(change) for change in delta.host],
        blame=list(delta.blame),
        sentence=delta.sentence,
        detectable_share=round(delta.detectable_share, 5),
        factors=None if delta.factors is None else _factors(delta.factors),
        instructions=None if delta.instructions is None else count_delta(delta.instructions),
        warnings=list(delta.warnings),
        limits=UNSET if limits is None else list(limits),
        regressed=UNSET if regressed is None else regressed,
    )


def checked_document(outcome: TimeOutcome) -> DeltaDocument:
    """The document of a checked baseline."""
    return delta_document(outcome.delta, [limit(each) for each in outcome.findings], regressed=outcome.regressed)


def limit(finding: LimitFinding | CountFinding) -> Limit:
    """A limit and what was found."""
    if isinstance(finding, LimitFinding):
        return Limit(
            name=finding.limit.name,
            allowed_ns=round(finding.allowed_ns, 1),
            delta_ns=float(finding.delta_ns),
            ci95_ns=tenths(finding.ci95_ns),
            state=finding.state,
        )
    return Limit(
        name=finding.limit.name,
        allowed_count=round(finding.allowed_count, 1),
        delta_count=finding.delta_count,
        state=finding.state,
    )


def count_delta(delta: counting.InstructionDelta) -> CountDelta:
    """A difference in whole instructions per call."""
    return CountDelta(
        delta.base_count,
        delta.new_count,
        delta.delta_count,
        rounded(delta.new_count / delta.base_count, 6) if delta.base_count else None,
        delta.verdict,
        [
            CountCategoryDelta(
                each.category, each.base_count, each.new_count, list(each.contributors), each.delta_count
            )
            for each in delta.host
        ],
        list(delta.blame),
        delta.sentence,
    )


def _category(change: model.CategoryChange) -> CategoryDelta:
    return CategoryDelta(
        change.category,
        float(change.delta_ns),
        tenths(change.ci95_ns),
        change.verdict,
        None if change.in_frames_ns is None else float(change.in_frames_ns),
        [_move(each) for each in change.contributors],
    )


def _move(move: model.Contributor) -> Move:
    interval = None if move.ci95_ns is None else tenths(move.ci95_ns)
    return Move(move.kind, move.name, float(move.delta_ns), interval, move.verdict)


def _factors(factors: factoring.Factors) -> Factors:
    parts = [
        Factor(
            part.name,
            part.base_ns,
            part.new_ns,
            part.delta_ns,
            round(part.delta_ns / factors.units, 3),
            round(factors.share(part), 5),
            rounded(factors.ratio_without(part), 4),
            part.estimate,
        )
        for part in factors.parts
    ]
    return Factors(factors.units, factors.base_ns, factors.new_ns, factors.delta_ns, parts, factors.kernel)
