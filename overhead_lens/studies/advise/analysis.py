"""From tried remedies to advice: what saves how much, how sure that is, what goes together (pure but for reading).

A remedy is compared with the unchanged call in the same processes, or in the same round if it needs a process of its own.
Each process gives one difference as a share of its own call as it is, since a process that is slow is slow with a remedy, too;
Holm's procedure over all remedies keeps the chance that any useless one is called faster below 2.5 %.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from overhead_lens.budget.model import Breakdown
from overhead_lens.budget.wall import undisturbed
from overhead_lens.comparison.difference import MARGIN_SHARE, category_verdicts, compare_budgets
from overhead_lens.comparison.model import Delta
from overhead_lens.contract import Ratio, Tenths, TenthsInterval, derive
from overhead_lens.result import Result
from overhead_lens.stats.shift import Shift, paired_shift
from overhead_lens.stats.values import Floats
from overhead_lens.stored import breakdown_of, budgets_of
from overhead_lens.studies.advise.stored import BASE, TOGETHER, AdviceMeta, Tried, folder_of, read_advice
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import format_ns, proportional

# Shares of kernels and waiting: from the first on nothing but faster kernels helps, below the second it is all overhead.
_MOSTLY_WORK, _LITTLE_WORK = 0.7, 0.3
_WORK = ("kernel", "wait")

# A category below this share of the call is not worth a remedy.
LEAST_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Saving:
    """The call as it is and with remedies, ns per call; ``delta_ns`` is below 0 if they save time."""

    base_ns: Tenths
    new_ns: Tenths
    delta_ns: Tenths
    ci95_ns: TenthsInterval
    ratio: Ratio = field(init=False)

    def __post_init__(self) -> None:
        derive(self, ratio=self.new_ns / self.base_ns if self.base_ns else 1.0)


@dataclass(frozen=True, slots=True)
class TriedRemedy:
    """One remedy and its outcome.

    Attributes:
        safety: ``safe``, ``changes_semantics`` or ``unsafe``; never ``safe`` where the output differs or is unknown.
        output: ``equal``, ``close``, ``differs`` or ``unknown``.
        status: ``measured``, ``not_applicable`` or ``failed``; ``reason`` says why it was not measured.
        wall: None if it was not measured.
        verdict: ``faster``, ``slower``, ``same`` or ``inconclusive``; None if it was not measured.
        host: What each category changed by, ns; sums to ``wall.delta_ns`` rounded. Empty without a capture of its own.
    """

    remedy: str
    summary: str
    how: str
    source: str
    safety: str
    output: str
    status: str
    reason: str | None
    wall: Saving | None = None
    verdict: str | None = None
    host: tuple[tuple[str, int], ...] = ()

    @property
    def helps(self) -> bool:
        """Whether it is known to make the call faster."""
        return self.verdict == "faster"


@dataclass(frozen=True, slots=True)
class Together:
    """The best remedies that go together, by ``compare``'s rule."""

    remedies: tuple[str, ...]
    delta: Delta

    @property
    def wall(self) -> Saving:
        """Their joint saving."""
        delta = self.delta
        return Saving(delta.base.wall.ns, delta.new.wall.ns, delta.wall_delta_ns, delta.wall_ci95_ns)


@dataclass(frozen=True, slots=True)
class Advice(Result):
    """Remedies for a call with their savings.

    Attributes:
        base: The budget of the call as it is.
        verdict: ``overhead``, ``work`` (kernels dominate) or ``mixed``.
        overhead_share: Share of the call that is neither the work of kernels nor waiting.
        remedies: In the order of ``ranked``.
        together: None where nothing helps.
    """

    subject: Subject
    base: Breakdown
    verdict: str
    overhead_share: float
    sentence: str
    remedies: tuple[TriedRemedy, ...]
    together: Together | None
    warnings: tuple[str, ...]
    directory: str

    def remedy(self, name: str) -> TriedRemedy:
        """The remedy called ``name``."""
        return next(each for each in self.remedies if each.remedy == name)


def advice_of(path: Path, classifier: Classifier) -> Advice:
    """The advice stored in a directory.

    Raises:
        UsageError: It holds none, or damaged one.
    """
    meta, rows = read_advice(path)
    base = breakdown_of(path / BASE, classifier)
    captured = {name: breakdown_of(folder_of(path, name), classifier) for name in meta.captured}
    together = _together(path, meta, classifier)
    return make_advice(meta, rows, base, captured, together, str(path))


def make_advice(
    meta: AdviceMeta,
    rows: pd.DataFrame,
    base: Breakdown,
    captured: Mapping[str, Breakdown],
    together: Together | None,
    directory: str,
) -> Advice:
    """Advice from budgets and timed blocks.

    ``rows``: ``process``, ``rung``, ``block``, ``calls``, ``wall_ns``, ``reference_ns``; ``collected_ns`` where it was measured.
    """
    tried = [
        replace(each, host=_moved(each, base, captured.get(each.remedy)))
        for each in ranked(tried_remedies(meta.tried, rows))
    ]
    verdict, share = verdict_of(base)
    sentence = _sentence(base, verdict, share, tried, together)
    warnings = tuple(_warnings(meta, base, captured))
    return Advice(meta.subject, base, verdict, share, sentence, tuple(tried), together, warnings, directory)


def verdict_of(base: Breakdown) -> tuple[str, float]:
    """Whether there is overhead to save: ``overhead``, ``work`` or ``mixed``, and its share of the call."""
    work_ns = sum(category.ns for category in base.host if category.category in _WORK)
    work_share = work_ns / base.wall.ns if base.wall.ns else 1.0
    verdict = "work" if work_share >= _MOSTLY_WORK else "overhead" if work_share < _LITTLE_WORK else "mixed"
    return verdict, 1 - work_share


def not_worth_it(shrinks: Sequence[str], base: Breakdown) -> str:
    """Why a remedy for these categories is not tried; empty if it is."""
    share = sum(category.share for category in base.host if category.category in shrinks)
    if share >= LEAST_SHARE:
        return ""
    return f"{', '.join(shrinks)} take{'s' if len(shrinks) == 1 else ''} {share:.1%} of the call"


def tried_remedies(tried: Sequence[Tried], rows: pd.DataFrame) -> list[TriedRemedy]:
    """Every remedy with its saving and verdict, in the order in which they were tried."""
    per_call = _per_call(undisturbed(rows, ("process", "rung")) if len(rows) else rows)
    walls = {str(name): values.droplevel(0) for name, values in per_call.groupby(level=0)}
    pairs = {each.remedy.name: _pairs(walls, each.remedy.name) for each in tried if each.trial.status == "measured"}
    # In ns at the median of ``base``, from the differences as shares of each process's own call as it is.
    shifts = {
        name: paired_shift((new / base - 1) * float(np.median(base)))
        for name, (base, new) in pairs.items()
        if len(base) > 1
    }
    base_ns = float(np.median(walls[BASE])) if BASE in walls else 0.0
    verdicts = dict(zip(shifts, category_verdicts(list(shifts.values()), MARGIN_SHARE * base_ns), strict=True))
    return [_tried(each, pairs, shifts, verdicts) for each in tried]


def _per_call(rows: pd.DataFrame) -> pd.Series[float]:
    """Time of a call by rung and process, ns: the median block, and the mean of what garbage collections took.

    A full collection is rare and long: it falls into few blocks, which a median leaves out.
    """
    collected_ns = rows["collected_ns"] if "collected_ns" in rows else 0 * rows["wall_ns"]
    by = [rows["rung"], rows["process"]]
    steady = ((rows["wall_ns"] - collected_ns) / rows["calls"]).groupby(by).median()
    return steady + collected_ns.groupby(by).sum() / rows["calls"].groupby(by).sum()


def _pairs(walls: Mapping[str, pd.Series[float]], name: str) -> tuple[Floats, Floats]:
    """Medians of the processes that timed both the call as it is and the remedy."""
    if name not in walls or BASE not in walls:
        return np.empty(0), np.empty(0)
    both = walls[BASE].index.intersection(walls[name].index)
    return walls[BASE][both].to_numpy(np.float64), walls[name][both].to_numpy(np.float64)


def _tried(
    tried: Tried, pairs: Mapping[str, tuple[Floats, Floats]], shifts: Mapping[str, Shift], verdicts: Mapping[str, str]
) -> TriedRemedy:
    remedy, trial = tried.remedy, tried.trial
    status, reason, wall = trial.status, trial.reason, None
    if remedy.name in shifts:
        shift, base_ns = shifts[remedy.name], float(np.median(pairs[remedy.name][0]))
        wall = Saving(base_ns, base_ns + shift.ns, shift.ns, shift.interval())
    elif status == "measured":
        status, reason = "failed", "fewer than two processes could time it"
    described = (remedy.name, remedy.summary, remedy.how, remedy.source)
    same = trial.output in ("equal", "close") and not trial.loses_gradient
    safety = "changes_semantics" if status == "measured" and remedy.safety == "safe" and not same else remedy.safety
    return TriedRemedy(*described, safety, trial.output, status, reason, wall, verdicts.get(remedy.name))


def ranked(tried: Sequence[TriedRemedy]) -> list[TriedRemedy]:
    """Remedies that help, the largest saving first; then the other measured remedies; then those that were not measured."""

    def place(each: TriedRemedy) -> tuple[int, float, str]:
        if each.wall is None:
            return (3 if each.status == "failed" else 4), 0.0, each.remedy
        return (0 if each.helps else 1 if each.verdict != "slower" else 2), each.wall.delta_ns, each.remedy

    return sorted(tried, key=place)


def _moved(tried: TriedRemedy, base: Breakdown, new: Breakdown | None) -> tuple[tuple[str, int], ...]:
    """The change of each category: the shares of both budgets applied to the walls timed in turns."""
    if new is None or tried.wall is None or new.evidence != base.evidence:
        return ()
    sides = ((base, tried.wall.base_ns), (new, tried.wall.base_ns + tried.wall.delta_ns))
    before, after = (proportional([category.ns for category in side.host], round(wall_ns)) for side, wall_ns in sides)
    return tuple((name, new_ns - old_ns) for name, old_ns, new_ns in zip(HOST_CATEGORIES, before, after, strict=True))


def _together(path: Path, meta: AdviceMeta, classifier: Classifier) -> Together | None:
    if not meta.together:
        return None
    base, new = budgets_of((path / TOGETHER / "base", path / TOGETHER / "new"), classifier)
    return Together(tuple(meta.together), compare_budgets(base, new))


def go_together(tried: Sequence[TriedRemedy], groups: Mapping[str, str]) -> list[str]:
    """The best remedies of which no two are of one group, the best first; none that is unsafe or changes the output."""
    chosen: dict[str, str] = {}
    for each in ranked(tried):
        if each.helps and each.safety != "unsafe" and each.output != "differs":
            chosen.setdefault(groups.get(each.remedy) or each.remedy, each.remedy)
    return list(chosen.values())


def _sentence(
    base: Breakdown, verdict: str, share: float, tried: Sequence[TriedRemedy], together: Together | None
) -> str:
    waits = any(category.share >= LEAST_SHARE for category in base.host if category.category == "wait")
    rest = f"the kernels' own work{' and waiting' if waits else ''}"
    diagnosis = {
        "overhead": f"{share:.0%} of the call is overhead",
        "work": f"not overhead: {1 - share:.0%} of the call is {rest}{_bound(base)}",
        "mixed": f"{share:.0%} of the call is overhead, the rest {rest}",
    }[verdict]
    best = next((each for each in tried if each.helps), None)
    if best is None or best.wall is None:
        return f"{diagnosis}; nothing that was tried makes it faster beyond doubt."
    saved_ns = -best.wall.delta_ns
    text = f"{diagnosis}; {best.remedy} saves {format_ns(saved_ns)} ({saved_ns / best.wall.base_ns:.0%})"
    if together is not None and len(together.remedies) > 1 and together.delta.verdict == "faster":
        text += f", {' + '.join(together.remedies)} together {format_ns(-together.wall.delta_ns)}"
    return f"{text}."


def _bound(base: Breakdown) -> str:
    floor = base.wall.floor
    if floor is None:
        return ""
    by = "arithmetic" if floor.bound == "arithmetic" else f"reading and writing {floor.level}"
    return f", bound by {by} (at least {format_ns(floor.ns)})"


def _warnings(meta: AdviceMeta, base: Breakdown, captured: Mapping[str, Breakdown]) -> Iterator[str]:
    yield from meta.warnings
    if not meta.repeats:
        why = meta.unknown or "called twice, it gives another answer"
        yield f"outputs are unknown: {why}; what a remedy changes is unknown"
    for name, new in captured.items():
        if new.evidence != base.evidence:
            yield f"no categories of {name}: its {new.evidence} cannot be compared with the call's {base.evidence}"
