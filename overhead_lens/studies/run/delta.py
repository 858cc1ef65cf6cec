"""What changed between two runs of a program, per step (pure).

Each side is one process, and processes of one program differ by where their code and data lie, whatever is measured inside
them. So each side's error is that of its own interval and ``_PROCESS_SHARE`` of the time together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from overhead_lens.comparison.difference import blamed, category_verdicts, difference_in_words, wall_verdict
from overhead_lens.comparison.instructions import changed
from overhead_lens.comparison.model import VERDICTS, CategoryChange, Contributor
from overhead_lens.errors import UsageError, require
from overhead_lens.result import Result
from overhead_lens.stats.shift import Shift
from overhead_lens.stats.values import Interval
from overhead_lens.studies.run.analysis import RunBudget, StepWall
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.units import format_signed_ns

# Standard deviation over processes of one program's step (docs/results/run-cost.json, the column "step outside").
_PROCESS_SHARE = 0.01
_HALF_WIDTHS = 1.96
_MANY = 1e6
_CONTRIBUTORS = 5
_ENVIRONMENT = ("host", "cpu")


@dataclass(frozen=True, slots=True)
class RunDelta(Result):
    """The difference of two runs, ns per step (per run where both have no steps), new less base.

    Attributes:
        verdict: ``slower``, ``faster``, ``same`` or ``inconclusive``.
        margin_share: Differences within this share of the base count as none.
        host: Every category in the taxonomy's order; the differences sum to the wall's.
        blame: Categories that changed significantly in the verdict's direction, largest first.
    """

    base: RunBudget
    new: RunBudget
    verdict: str
    margin_share: float
    wall_delta_ns: int
    wall_ci95_ns: Interval
    ratio: float | None
    host: tuple[CategoryChange, ...]
    blame: tuple[str, ...]
    sentence: str
    warnings: tuple[str, ...]

    def __post_init__(self) -> None:
        closes = sum(change.delta_ns for change in self.host) == self.wall_delta_ns
        require(closes, "the categories' differences do not sum to the wall's")
        require(self.verdict in VERDICTS, f"no verdict {self.verdict!r}")

    @property
    def per(self) -> str:
        """``step`` or ``run``."""
        return self.new.per


def compare_runs(base: RunBudget, new: RunBudget, margin_share: float) -> RunDelta:
    """The difference of two runs.

    Raises:
        UsageError: One has steps and the other none.
    """
    if base.per != new.per:
        raise UsageError("cannot compare: only one of the runs has steps; rerun the other for longer, or with --step")
    wall = _shift(base.wall, new.wall)
    margin_ns = margin_share * base.wall.ns
    verdict = wall_verdict(wall, margin_ns)
    pairs = list(zip(base.host, new.host, strict=True))
    shifts = [_shift(old, recent) for old, recent in pairs]
    verdicts = category_verdicts(shifts, margin_ns)
    changes = tuple(
        CategoryChange(old.category, recent.ns - old.ns, shift.interval(), its, _frames(old, recent))
        for (old, recent), shift, its in zip(pairs, shifts, verdicts, strict=True)
    )
    blame = blamed(changes, verdict)
    deltas_ns = {change.category: change.delta_ns for change in changes}
    reasons = [f"{name} {format_signed_ns(deltas_ns[name])}" for name in blame]
    sentence = difference_in_words(wall, verdict, margin_ns, reasons, "`compare` of the step decides")
    delta_ns, interval = new.wall.ns - base.wall.ns, wall.interval()
    ratio = new.wall.ns / base.wall.ns if base.wall.ns else None
    warnings = tuple(_warnings(base, new))
    return RunDelta(base, new, verdict, margin_share, delta_ns, interval, ratio, changes, blame, sentence, warnings)


def _shift(base: StepWall | HostCategory, new: StepWall | HostCategory) -> Shift:
    error_ns = math.hypot(*(error for time in (base, new) for error in _errors(time)))
    return Shift(new.ns - base.ns, error_ns, _MANY, 1)


def _errors(time: StepWall | HostCategory) -> tuple[float, float]:
    """Errors of a time: inside its process, and by what its process is like."""
    low, high = time.ci95_ns
    return (high - low) / 2 / _HALF_WIDTHS, _PROCESS_SHARE * time.ns


def _frames(base: HostCategory, new: HostCategory) -> tuple[Contributor, ...]:
    """The frames whose self time changed most, among the costliest of both sides."""
    before, after = ({frame.frame: frame.ns for frame in side.top} for side in (base, new))
    return tuple(Contributor("frame", *change) for change in changed(before, after)[:_CONTRIBUTORS])


def _warnings(base: RunBudget, new: RunBudget) -> Iterator[str]:
    steps = (base.steps, new.steps)
    if (steps[0].found_by, steps[0].where) != (steps[1].found_by, steps[1].where):
        places = " and ".join(f"{each.where or 'an unknown place'} ({each.found_by})" for each in steps)
        yield f"steps were found in different ways: {places}"
    for name in _ENVIRONMENT:
        old, recent = base.environment.get(name), new.environment.get(name)
        if old != recent:
            yield f"{name} differs: {old} and {recent}"
    if base.per == "run":
        yield (
            "single runs have no interval: the difference's is how much processes of one program usually differ"
            f" ({_PROCESS_SHARE:.0%} each)"
        )
    yield from (f"{side}: {warning}" for side, run in (("base", base), ("new", new)) for warning in run.warnings)
