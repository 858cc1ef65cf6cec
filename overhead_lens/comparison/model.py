"""The difference of two budgets; its constructor checks that the categories sum to it."""

from __future__ import annotations

from dataclasses import dataclass

from overhead_lens.budget.model import Breakdown
from overhead_lens.comparison.factors import Factors
from overhead_lens.comparison.instructions import InstructionDelta
from overhead_lens.errors import require
from overhead_lens.result import Result
from overhead_lens.stats.values import Interval
from overhead_lens.taxonomy.categories import HOST_CATEGORIES

VERDICTS = ("slower", "faster", "same", "inconclusive")


@dataclass(frozen=True, slots=True)
class Contributor:
    """A part of a category's difference.

    Attributes:
        kind: ``frame``, ``guard`` (all of one kind), ``operator`` or ``kernel``.
        ci95_ns: Interval of a frame that several processes of both sides sampled; None of others.
        verdict: ``slower`` or ``faster`` for a frame with a significant difference; else ``inconclusive``.
    """

    kind: str
    name: str
    delta_ns: int
    ci95_ns: Interval | None = None
    verdict: str = "inconclusive"

    @property
    def clear(self) -> bool:
        """Whether its difference is significant."""
        return self.verdict != "inconclusive"


@dataclass(frozen=True, slots=True)
class CategoryChange:
    """The difference of one category, in ns per call, new less base.

    Attributes:
        verdict: One of ``VERDICTS``, from the category's own difference or from its frames.
        contributors: Significant ones first.
        in_frames_ns: Sum of its significant frames; None without any. It is more precise than ``delta_ns``, which has the
            sampling error of every frame, and may leave out small changes.
        in_frames: Whether that sum can be the whole change: it lies in the category's simultaneous 95 % interval.
    """

    category: str
    delta_ns: int
    ci95_ns: Interval
    verdict: str
    contributors: tuple[Contributor, ...] = ()
    in_frames_ns: int | None = None
    in_frames: bool = False

    @property
    def size_ns(self) -> int:
        """The most precise estimate of the change."""
        return self.in_frames_ns if self.in_frames and self.in_frames_ns is not None else self.delta_ns

    @property
    def only_in_frames(self) -> bool:
        """Whether its frames show the verdict and its own interval contains 0."""
        low, high = self.ci95_ns
        return self.in_frames_ns is not None and self.verdict in ("slower", "faster") and low <= 0 <= high


@dataclass(frozen=True, slots=True)
class Delta(Result):
    """The difference of two budgets, in ns per call, new less base.

    Attributes:
        verdict: One of ``VERDICTS``, for the wall time.
        margin_share: Differences within this share of the base count as none.
        host: Every category in the taxonomy's order.
        blame: Categories that changed significantly in the verdict's direction, largest first.
        detectable_share: Half the width of the wall difference's interval, as a share of the base.
        factors: Factors of the ratio of two variants of one scenario with the same work; None of other sides.
        instructions: The difference in instructions; None if one side has none.
    """

    base: Breakdown
    new: Breakdown
    verdict: str
    margin_share: float
    wall_delta_ns: int
    wall_ci95_ns: Interval
    ratio: float | None
    host: tuple[CategoryChange, ...]
    blame: tuple[str, ...]
    sentence: str
    detectable_share: float
    warnings: tuple[str, ...]
    factors: Factors | None = None
    instructions: InstructionDelta | None = None

    def __post_init__(self) -> None:
        names = tuple(change.category for change in self.host)
        require(names == HOST_CATEGORIES, "a difference lists every category once, in order")
        closes = sum(change.delta_ns for change in self.host) == self.wall_delta_ns
        require(closes, "the categories' differences do not sum to the wall's")
        require(self.verdict in VERDICTS, f"no verdict {self.verdict!r}")
        factored = self.factors is None or self.factors.delta_ns == self.wall_delta_ns
        require(factored, "the factors do not sum to the wall's difference")
