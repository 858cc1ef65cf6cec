"""The difference of two budgets: frozen values whose constructor checks that the categories account for all of it."""

from __future__ import annotations

from dataclasses import dataclass

from overhead_lens.budget.model import Breakdown
from overhead_lens.comparison.factors import Factors
from overhead_lens.comparison.instructions import InstructionDelta
from overhead_lens.errors import InvariantError
from overhead_lens.result import Result
from overhead_lens.stats.values import Interval
from overhead_lens.taxonomy.categories import HOST_CATEGORIES

VERDICTS = ("slower", "faster", "same", "inconclusive")


@dataclass(frozen=True, slots=True)
class Move:
    """What moved inside a category.

    Attributes:
        kind: ``frame``, ``guard`` (all of one kind), ``operator`` or ``kernel``.
        ci95_ns: Of frames whose stacks were counted in several processes of both sides; None of others.
        verdict: ``slower`` or ``faster`` for such a frame if it moved, corrected for looking at all; else ``inconclusive``.
    """

    kind: str
    name: str
    delta_ns: int
    ci95_ns: Interval | None = None
    verdict: str = "inconclusive"

    @property
    def clear(self) -> bool:
        """Whether it is known to have moved."""
        return self.verdict != "inconclusive"


@dataclass(frozen=True, slots=True)
class CategoryChange:
    """How one category changed, in ns per call, new less base.

    Attributes:
        verdict: One of ``VERDICTS``, from the category's own difference or from its frames.
        moved: What moved in it, what is known to have moved first.
        in_frames_ns: Sum of its frames that are known to have moved, None if there are none. It is known much better than
            ``delta_ns``, in which every frame has its sampling error, and may leave out what moved too little to be known.
        in_frames: Whether that sum may be all of the change: it agrees with the category's own difference.
    """

    category: str
    delta_ns: int
    ci95_ns: Interval
    verdict: str
    moved: tuple[Move, ...] = ()
    in_frames_ns: int | None = None
    in_frames: bool = False

    @property
    def size_ns(self) -> int:
        """The change as it is known best."""
        return self.in_frames_ns if self.in_frames and self.in_frames_ns is not None else self.delta_ns

    @property
    def only_in_frames(self) -> bool:
        """Whether its frames show the verdict, and its own interval, which holds 0, does not."""
        low, high = self.ci95_ns
        return self.in_frames_ns is not None and self.verdict in ("slower", "faster") and low <= 0 <= high


@dataclass(frozen=True, slots=True)
class Delta(Result):
    """The difference of two budgets, in ns per call, new less base.

    Attributes:
        verdict: One of ``VERDICTS``, for the wall time.
        margin_share: Differences within this share of the base count as the same.
        host: Every category of the taxonomy, in its order.
        blame: Categories that moved significantly in the verdict's direction, largest first.
        detectable_share: Half the width of the wall difference's interval, as a share of the base.
        instructions: The difference in instructions; None where one side has none.
        factors: What the ratio is made of, for two variants of one scenario that do the same work; None otherwise.
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
        if tuple(change.category for change in self.host) != HOST_CATEGORIES:
            raise InvariantError("a difference lists every category once, in order")
        if sum(change.delta_ns for change in self.host) != self.wall_delta_ns:
            raise InvariantError("the categories' differences do not sum to the wall's")
        if self.verdict not in VERDICTS:
            raise InvariantError(f"no verdict {self.verdict!r}")
        if self.factors is not None and self.factors.delta_ns != self.wall_delta_ns:
            raise InvariantError("the factors do not sum to the wall's difference")
