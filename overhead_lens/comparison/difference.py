"""Compares two captures: differences of wall and categories with intervals, a verdict, and the blame.

Verdicts on the wall time, in the order in which they are tried; differences within the margin count as none::

                       -margin      0      +margin
    same                  [  ----|---  ]            the 90 % interval lies inside the margin (two one-sided tests of 5 %)
    slower                       |  [-----|----]    the 95 % interval lies above 0
    faster          [---|-----]  |                  below 0
    inconclusive       [---------|--------------]   anything else: more processes would decide

A category is ``slower`` or ``faster`` if it changed significantly, even within the margin: a regression can consist of several
small changes. Two tests share the 5 %: of its own difference, by Holm's procedure over all categories, and of its frames
(``frames.py``), by Holm's procedure over all frames. Else it is ``same`` or ``inconclusive`` by the margin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.budget.make import Budget
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.comparison.budgets import Aligned, aligned_budgets
from overhead_lens.comparison.contributors import contributors, count_in_words, more_guards
from overhead_lens.comparison.factors import make_factors
from overhead_lens.comparison.frames import frame_shifts, net_shifts_ns
from overhead_lens.comparison.instructions import compare_instructions, mismatches
from overhead_lens.comparison.model import CategoryChange, Contributor, Delta
from overhead_lens.stats.distributions import holm
from overhead_lens.stats.shift import LEVEL, Shift
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.units import format_ns, format_signed_ns

MARGIN_SHARE = 0.01
MACHINE = ("host", "cpu", "torch", "python", "threads")

# Additional waiting for a core beside one side, as a share of the time, from which on it is reported.
_BUSIER_SHARE = 0.01

_GUARD_KINDS = 3
_FRAMES_NAMED = 2

# Level of either test of a category.
_HALF_LEVEL = (1 + LEVEL) / 2

# Level of simultaneous intervals of all categories (Bonferroni).
_EVERY_LEVEL = 1 - (1 - LEVEL) / len(HOST_CATEGORIES)


def compare_budgets(base: Budget, new: Budget, margin_share: float = MARGIN_SHARE) -> Delta:
    """The difference of two budgets of comparable captures."""
    aligned = aligned_budgets(base, new)
    base, new = aligned.budgets
    margin_ns = margin_share * aligned.base.wall.ns
    wall = aligned.wall
    verdict = wall_verdict(wall, margin_ns)
    # Stacks and a trace count differently: what differs between them may be no change of the call.
    is_like = base.breakdown.evidence == new.breakdown.evidence
    verdicts = category_verdicts(aligned.host, margin_ns) if is_like else ["inconclusive"] * len(HOST_CATEGORIES)
    walls_ns = (aligned.base.wall.ns, aligned.new.wall.ns)
    shifts = frame_shifts(base, new, walls_ns, _HALF_LEVEL) if is_like else {}
    nets_ns = net_shifts_ns(shifts)
    deltas_ns = [after.ns - before.ns for before, after in zip(aligned.base.host, aligned.new.host, strict=True)]
    changes = tuple(
        _change(name, delta_ns, shift, own_verdict, nets_ns.get(name), contributors(name, base, new, walls_ns, shifts))
        for name, delta_ns, shift, own_verdict in zip(HOST_CATEGORIES, deltas_ns, aligned.host, verdicts, strict=True)
    )
    counts = base.breakdown.instructions, new.breakdown.instructions
    blame = blamed(changes, verdict)
    low, high = wall.interval()
    return Delta(
        base=aligned.base,
        new=aligned.new,
        verdict=verdict,
        margin_share=margin_share,
        wall_delta_ns=round(wall.ns),
        wall_ci95_ns=(low, high),
        ratio=walls_ns[1] / walls_ns[0] if walls_ns[0] else None,
        host=changes,
        blame=blame,
        sentence=_sentence(aligned, verdict, changes, blame, margin_ns),
        detectable_share=(high - low) / 2 / max(walls_ns[0], 1),
        warnings=tuple(_warnings(base, new, aligned)),
        factors=make_factors(aligned.base, aligned.new),
        instructions=None if counts[0] is None or counts[1] is None else compare_instructions(counts[0], counts[1]),
    )


def wall_verdict(wall: Shift, margin_ns: float) -> str:
    """The verdict on the wall time, as the module's docstring draws it."""
    if wall.is_within(margin_ns):
        return "same"
    low, high = wall.interval()
    if low <= 0 <= high:
        return "inconclusive"
    return "slower" if wall.ns > 0 else "faster"


def category_verdicts(host: Sequence[Shift], margin_ns: float) -> list[str]:
    """Verdicts on the categories by their own differences, corrected for multiple tests."""
    adjusted = iter(holm([shift.p_value() for shift in host if shift.ns or shift.error_ns]))
    verdicts = []
    for shift in host:
        if (shift.ns or shift.error_ns) and next(adjusted) <= 1 - _HALF_LEVEL:
            verdicts.append("slower" if shift.ns > 0 else "faster")
        else:
            verdicts.append("same" if shift.is_within(margin_ns) else "inconclusive")
    return verdicts


def blamed(changes: Sequence[CategoryChange], verdict: str) -> tuple[str, ...]:
    """Categories that changed in the verdict's direction by at least a nanosecond, largest first."""
    if verdict not in ("slower", "faster"):
        return ()
    sign = 1 if verdict == "slower" else -1
    guilty = [change for change in changes if change.verdict == verdict and sign * change.size_ns > 0]
    return tuple(change.category for change in sorted(guilty, key=lambda change: -abs(change.size_ns)))


def _change(
    name: str, delta_ns: int, shift: Shift, verdict: str, net_ns: float | None, largest: tuple[Contributor, ...]
) -> CategoryChange:
    """A category's change, significant by its own difference or by its frames; the interval holds ``delta_ns``, too."""
    low, high = shift.interval()
    interval = (min(low, delta_ns), max(high, delta_ns))
    if net_ns is None or not round(net_ns):
        return CategoryChange(name, delta_ns, interval, verdict, largest)
    if verdict not in ("slower", "faster"):
        verdict = "slower" if net_ns > 0 else "faster"
    low, high = shift.interval(_EVERY_LEVEL)
    return CategoryChange(name, delta_ns, interval, verdict, largest, round(net_ns), low <= net_ns <= high)


def differences(base: CaptureMeta, new: CaptureMeta, machine: Sequence[str] = MACHINE) -> list[str]:
    """Reasons why two captures cannot be compared, one line each; empty if they can."""
    return mismatches(_context(base, machine), _context(new, machine))


def _context(meta: CaptureMeta, names: Sequence[str]) -> dict[str, object]:
    subject = meta.subject
    machine = {key: meta.environment.get(key) for key in names}
    # Two callables of a notebook are compared as two variants of a scenario are.
    named: dict[str, object] = {} if subject.kind == "callable" else {subject.kind: subject.name}
    how = {"device": subject.device, "params": dict(subject.params), "caches": meta.caches}
    return {**named, **how, **machine, "gpu": meta.gpu}


def _sentence(
    aligned: Aligned, verdict: str, changes: Sequence[CategoryChange], blame: Sequence[str], margin_ns: float
) -> str:
    more = aligned.wall.more_needed(margin_ns)
    processes = "1 more process" if more in (0, 1) else f"{more} more processes"
    needed = "no number of processes" if more is None else f"about {processes} a side"
    by_name = {change.category: change for change in changes}
    reasons = [
        f"{name} {format_signed_ns(by_name[name].size_ns)}{_guards(name, verdict, aligned) or _frames(by_name[name])}"
        for name in blame
    ]
    return difference_in_words(aligned.wall, verdict, margin_ns, reasons, f"{needed} would decide")


def difference_in_words(wall: Shift, verdict: str, margin_ns: float, reasons: Sequence[str], deciding: str) -> str:
    """The difference of two walls as a sentence; ``deciding`` says what would settle an ``inconclusive`` verdict."""
    if verdict == "same":
        return f"no difference beyond the margin of {format_ns(margin_ns)}: {format_signed_ns(wall.ns)}"
    if verdict == "inconclusive":
        between = " .. ".join(map(format_signed_ns, wall.interval()))
        return f"inconclusive: {format_signed_ns(wall.ns)}, interval {between}; {deciding}"
    return f"{format_ns(abs(wall.ns))} {verdict}: {', '.join(reasons) or 'no single category moved clearly'}"


def _frames(change: CategoryChange) -> str:
    """The frames of the change: `` in spin, free``."""
    frames = [contributor.name for contributor in change.contributors if contributor.clear]
    if not change.in_frames or not frames:
        return ""
    return f" in {', '.join(frames[:_FRAMES_NAMED])}{', ...' if len(frames) > _FRAMES_NAMED else ''}"


def _guards(category: str, verdict: str, aligned: Aligned) -> str:
    """Kinds of guards whose number changed in the verdict's direction: `` (36 more TENSOR_MATCH)``."""
    if category != "guard":
        return ""
    sign = 1 if verdict == "slower" else -1
    kinds = [count_in_words(*change) for change in more_guards(aligned.base, aligned.new) if sign * change[1] > 0]
    return f" ({', '.join(kinds[:_GUARD_KINDS])})" if kinds else ""


def _settings(budget: Budget) -> dict[str, object]:
    environment = budget.breakdown.environment
    return {"float32_matmul": environment.get("float32_matmul"), **environment.get("settings", {})}


def _warnings(base: Budget, new: Budget, aligned: Aligned) -> Iterator[str]:
    old, recent = _settings(base), _settings(new)
    both = [name for name in old if None not in (old[name], recent.get(name))]
    if differing := mismatches({name: old[name] for name in both}, {name: recent[name] for name in both}):
        yield f"torch's settings differ: {'; '.join(differing)}"
    if len({budget.breakdown.environment.get("reference") for budget in (base, new)}) > 1:
        yield "the two captures timed different reference loops: what the machine's speed changed is not taken out"
    elif aligned.drift:
        how = "slower" if aligned.drift > 0 else "faster"
        speed = f"the reference loop ran {abs(aligned.drift):.1%} {how} beside the new capture"
        yield f"{speed}: both sides are taken to one speed of the machine"
    shares = [budget.waited.delayed + budget.waited.contended for budget in (base, new)]
    if abs(shares[1] - shares[0]) > _BUSIER_SHARE and base.recorded_with is None:
        busier, calmer = ("new", "base") if shares[1] > shares[0] else ("base", "new")
        beside = f"{max(shares):.0%} of the time beside the {busier} capture, {min(shares):.0%} beside the {calmer}"
        yield f"the machine was busier: threads waited for a core {beside}; the intervals are wider for it"
    if aligned.rare_ns:
        rare = f"{format_signed_ns(aligned.rare_ns)} of the difference comes from calls that take longer now and then"
        yield f"{rare}: the means of blocks are compared, not their steady time"
    if (before := base.breakdown.evidence) != (after := new.breakdown.evidence):
        yield f"the base's categories are divided by {before}, the new capture's by {after}: no category can be blamed"
    for side, budget in (("base", base), ("new", new)):
        yield from (f"{side}: {warning}" for warning in budget.breakdown.warnings)
