"""What changed between two captures: wall and categories with intervals, a verdict, and who is to blame.

The verdict on the wall time, in the order in which they are tried; the margin is what counts as no difference::

                       -margin      0      +margin
    same                  [  ----|---  ]            the 90 % interval lies inside the margin (two one-sided tests of 5 %)
    slower                       |  [-----|----]    the 95 % interval lies above 0
    faster          [---|-----]  |                  below 0
    inconclusive       [---------|--------------]   anything else: more processes would decide

A category is ``slower`` or ``faster`` if it moved, whether beyond the margin or not: a regression may be made of several that are
small. That is known from its own difference, by Holm's procedure over all categories that were seen, or from its frames
(``frames.py``), by Holm's procedure over all frames; half of the 5 % goes to either. Else it is ``same`` or ``inconclusive`` by
the margin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overhead_lens.budget.make import Budget
from overhead_lens.budget.model import InstructionBudget
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.comparison.budgets import Aligned, aligned_budgets
from overhead_lens.comparison.contributors import count_in_words, more_guards, moves
from overhead_lens.comparison.factors import make_factors
from overhead_lens.comparison.frames import frame_shifts, net_shifts_ns
from overhead_lens.comparison.instructions import InstructionDelta, compare_instructions
from overhead_lens.comparison.model import CategoryChange, Delta, Move
from overhead_lens.stats.holm import holm
from overhead_lens.stats.shift import LEVEL, Shift
from overhead_lens.stats.values import Interval
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.units import format_ns, format_signed_ns

MARGIN_SHARE = 0.01

_GUARD_KINDS = 3
_FRAMES_NAMED = 2

# Either way of knowing that a category moved.
_HALF_LEVEL = (1 + LEVEL) / 2

# Of an interval that no category leaves by chance, with probability ``LEVEL`` (Bonferroni).
_EVERY_LEVEL = 1 - (1 - LEVEL) / len(HOST_CATEGORIES)


def compare_budgets(base: Budget, new: Budget, margin_share: float = MARGIN_SHARE) -> Delta:
    """The difference of two budgets of comparable captures."""
    aligned = aligned_budgets(base, new)
    margin_ns = margin_share * aligned.base.wall.ns
    wall = aligned.wall
    verdict = wall_verdict(wall, margin_ns)
    verdicts = category_verdicts(aligned.host, margin_ns)
    walls_ns = (aligned.base.wall.ns, aligned.new.wall.ns)
    shifts = frame_shifts(base, new, walls_ns, _HALF_LEVEL)
    nets_ns = net_shifts_ns(shifts)
    changes = tuple(
        _change(name, shift, found, nets_ns.get(name), moves(name, base, new, walls_ns, shifts))
        for name, shift, found in zip(HOST_CATEGORIES, aligned.host, verdicts, strict=True)
    )
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
        warnings=_warnings(base, new, aligned),
        factors=make_factors(aligned.base, aligned.new),
        instructions=_instructions(base.breakdown.instructions, new.breakdown.instructions),
    )


def wall_verdict(wall: Shift, margin_ns: float) -> str:
    """One of the four; see the module's drawing."""
    if wall.is_within(margin_ns):
        return "same"
    return _direction(wall.interval(), wall.ns)


def category_verdicts(host: Sequence[Shift], margin_ns: float) -> list[str]:
    """One of the four for each category by its own difference, corrected for looking at all of them."""
    seen = [shift for shift in host if shift.ns or shift.error_ns]
    adjusted = iter(holm([shift.p_value() for shift in seen]))
    verdicts = []
    for shift in host:
        if (shift.ns or shift.error_ns) and next(adjusted) <= 1 - _HALF_LEVEL:
            verdicts.append("slower" if shift.ns > 0 else "faster")
        else:
            verdicts.append("same" if shift.is_within(margin_ns) else "inconclusive")
    return verdicts


def blamed(changes: Sequence[CategoryChange], verdict: str) -> tuple[str, ...]:
    """The categories that moved in the verdict's direction by a nanosecond at least, largest first."""
    moved = [change for change in changes if change.size_ns and change.verdict == verdict]
    guilty = moved if verdict in ("slower", "faster") else []
    return tuple(change.category for change in sorted(guilty, key=lambda change: -abs(change.size_ns)))


def _change(name: str, shift: Shift, verdict: str, net_ns: float | None, moved: tuple[Move, ...]) -> CategoryChange:
    """A category's change; what its own difference does not show, its frames may."""
    if net_ns is None or not round(net_ns):
        return CategoryChange(name, round(shift.ns), shift.interval(), verdict, moved)
    of_frames = "slower" if net_ns > 0 else "faster"
    shown = verdict if verdict in ("slower", "faster") else of_frames
    low, high = shift.interval(_EVERY_LEVEL)
    return CategoryChange(name, round(shift.ns), shift.interval(), shown, moved, round(net_ns), low <= net_ns <= high)


def differences(base: CaptureMeta, new: CaptureMeta) -> list[str]:
    """What makes two captures incomparable: one line per point; empty where nothing does."""
    return [*_different(_same_call(base.subject), _same_call(new.subject)), *_different(_machine(base), _machine(new))]


def _same_call(subject: Subject) -> dict[str, object]:
    return {subject.kind: subject.name, "device": subject.device, "params": dict(subject.params)}


def _machine(meta: CaptureMeta) -> dict[str, object]:
    return {key: meta.environment.get(key) for key in ("host", "cpu", "torch", "python", "threads")}


def _different(base: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    names = dict.fromkeys((*base, *new))
    return [
        f"{name}: {base.get(name)!r} against {new.get(name)!r}" for name in names if base.get(name) != new.get(name)
    ]


def _direction(interval: Interval, ns: float) -> str:
    low, high = interval
    if low <= 0 <= high:
        return "inconclusive"
    return "slower" if ns > 0 else "faster"


def _sentence(
    aligned: Aligned, verdict: str, changes: Sequence[CategoryChange], blame: Sequence[str], margin_ns: float
) -> str:
    wall = aligned.wall
    if verdict == "same":
        return f"no difference beyond the margin of {format_ns(margin_ns)}: {format_signed_ns(wall.ns)}"
    if verdict == "inconclusive":
        low, high = wall.interval()
        more = wall.more_needed(margin_ns)
        needed = "no number of processes" if more is None else f"about {max(1, more)} more processes a side"
        between = f"{format_signed_ns(low)} .. {format_signed_ns(high)}"
        return f"inconclusive: {format_signed_ns(wall.ns)}, interval {between}; {needed} would decide"
    by_name = {change.category: change for change in changes}
    reasons = [
        f"{name} {format_signed_ns(by_name[name].size_ns)}{_guards(name, verdict, aligned) or _frames(by_name[name])}"
        for name in blame
    ]
    why = ", ".join(reasons) if reasons else "no single category moved clearly"
    return f"{format_ns(abs(wall.ns))} {verdict}: {why}"


def _frames(change: CategoryChange) -> str:
    """`` in spin, free``: where the size comes from."""
    frames = [move.name for move in change.moved if move.clear]
    if not change.in_frames or not frames:
        return ""
    return f" in {', '.join(frames[:_FRAMES_NAMED])}{', ...' if len(frames) > _FRAMES_NAMED else ''}"


def _guards(category: str, verdict: str, aligned: Aligned) -> str:
    """`` (36 more TENSOR_MATCH)``: kinds whose number changed in the verdict's direction."""
    if category != "guard":
        return ""
    sign = 1 if verdict == "slower" else -1
    kinds = [count_in_words(*change) for change in more_guards(aligned.base, aligned.new) if sign * change[1] > 0]
    return f" ({', '.join(kinds[:_GUARD_KINDS])})" if kinds else ""


def _instructions(base: InstructionBudget | None, new: InstructionBudget | None) -> InstructionDelta | None:
    return None if base is None or new is None else compare_instructions(base, new)


def _warnings(base: Budget, new: Budget, aligned: Aligned) -> tuple[str, ...]:
    sides = (("base", base), ("new", new))
    own = tuple(f"{side}: {warning}" for side, budget in sides for warning in budget.breakdown.warnings)
    if aligned.rare_ns:
        rare = f"{format_signed_ns(aligned.rare_ns)} of the difference are of calls that take longer every now and then"
        own = (f"{rare}: the means of blocks are compared, not their steady time", *own)
    if len({budget.breakdown.environment.get("reference") for budget in (base, new)}) > 1:
        return (
            "the two captures timed different reference loops: what the machine's speed changed is not taken out",
            *own,
        )
    if not aligned.drift:
        return own
    how = "slower" if aligned.drift > 0 else "faster"
    speed = f"the reference loop ran {abs(aligned.drift):.1%} {how} beside the new capture"
    return (f"{speed}: both sides are taken to one speed of the machine", *own)
