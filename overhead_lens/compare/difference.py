"""What changed between two captures: wall and categories with intervals, a verdict, and who is to blame.

Both budgets carry bootstrap replicates; the replicates of the difference are those of new less base, which are
independent. The verdict is an equivalence test against a margin::

    verdict        interval of the difference
    slower         entirely above 0, and the estimate beyond the margin
    faster         entirely below 0, and the estimate beyond the margin
    same           entirely inside [-margin, +margin], or the estimate is inside though clear of 0
    inconclusive   anything else: it holds 0 and reaches beyond the margin

Categories are looked at together, so their intervals are those of Holm's procedure at the smallest step (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from overhead_lens.analysis.breakdown import Budget
from overhead_lens.analysis.model import Interval
from overhead_lens.analysis.wall import Floats
from overhead_lens.categories import HOST_CATEGORIES
from overhead_lens.compare.factors import make_factors
from overhead_lens.compare.model import Change, Delta, Move
from overhead_lens.units import format_ns

MARGIN_SHARE = 0.01

_MOVED = 5
_QUANTILES = (0.025, 0.975)


def compare_budgets(base: Budget, new: Budget) -> Delta:
    """The difference of two budgets of comparable captures."""
    margin_ns = MARGIN_SHARE * base.breakdown.wall.ns
    wall_delta = new.breakdown.wall.ns - base.breakdown.wall.ns
    # The replicates of a seeded bootstrap come in the same order: shuffle one side, or they would be paired.
    order = np.random.default_rng(7).permutation(len(new.wall))
    wall_interval = _interval(new.wall[order] - base.wall, wall_delta, _QUANTILES)
    verdict = _verdict(wall_delta, wall_interval, margin_ns)
    changes = tuple(_change(name, base, new, order, margin_ns) for name in HOST_CATEGORIES)
    blame = _blame(changes, verdict)
    return Delta(
        base=base.breakdown,
        new=new.breakdown,
        verdict=verdict,
        margin_share=MARGIN_SHARE,
        wall_delta_ns=wall_delta,
        wall_ci95_ns=wall_interval,
        ratio=new.breakdown.wall.ns / base.breakdown.wall.ns if base.breakdown.wall.ns else None,
        host=changes,
        blame=blame,
        sentence=_sentence(wall_delta, verdict, changes, blame, wall_interval, margin_ns),
        detectable_share=(wall_interval[1] - wall_interval[0]) / 2 / max(base.breakdown.wall.ns, 1),
        warnings=_warnings(base, new),
        factors=make_factors(base.breakdown, new.breakdown),
    )


def differences(base: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """What makes two captures' ``meta.json`` incomparable: one line per point; empty where nothing does."""
    found = [
        f"{name}: {base.get(name)!r} against {new.get(name)!r}"
        for name in ("scenario", "device", "params")
        if base.get(name) != new.get(name)
    ]
    old, recent = base.get("environment"), new.get("environment")
    if isinstance(old, dict) and isinstance(recent, dict):
        keys = ("host", "cpu", "torch", "python", "threads")
        found += [
            f"{key}: {old.get(key)!r} against {recent.get(key)!r}" for key in keys if old.get(key) != recent.get(key)
        ]
    return found


def _verdict(delta_ns: float, interval: Interval, margin_ns: float) -> str:
    low, high = interval
    if abs(delta_ns) > margin_ns and not low <= 0 <= high:
        return "slower" if delta_ns > 0 else "faster"
    clear_of_zero = low > 0 or high < 0
    return "same" if clear_of_zero or (-margin_ns <= low and high <= margin_ns) else "inconclusive"


def _change(name: str, base: Budget, new: Budget, order: np.ndarray, margin_ns: float) -> Change:
    position = HOST_CATEGORIES.index(name)
    delta = new.breakdown.host[position].ns - base.breakdown.host[position].ns
    replicates = new.host[order, position] - base.host[:, position]
    tail = 0.025 / len(HOST_CATEGORIES)
    simultaneous = _interval(replicates, delta, (tail, 1 - tail))
    verdict = _verdict(delta, simultaneous, margin_ns)
    return Change(name, delta, _interval(replicates, delta, _QUANTILES), verdict, _moved(name, base, new))


def _interval(replicates: Floats, estimate: float, quantiles: tuple[float, float]) -> Interval:
    low, high = np.quantile(replicates, quantiles)
    return min(float(low), float(estimate)), max(float(high), float(estimate))


def _moved(name: str, base: Budget, new: Budget) -> tuple[Move, ...]:
    old, recent = base.frames.get(name, {}), new.frames.get(name, {})
    moves = [Move("frame", frame, round(recent.get(frame, 0.0) - old.get(frame, 0.0))) for frame in {*old, *recent}]
    if name == "guard":
        before = {guard.guard: guard.sampled_ns or 0.0 for guard in base.breakdown.guards}
        after = {guard.guard: guard.sampled_ns or 0.0 for guard in new.breakdown.guards}
        moves += [
            Move("guard", each, round(after.get(each, 0.0) - before.get(each, 0.0))) for each in {*before, *after}
        ]
    moves = [move for move in moves if move.delta_ns]
    return tuple(sorted(moves, key=lambda move: (-abs(move.delta_ns), move.name))[:_MOVED])


def _blame(changes: tuple[Change, ...], verdict: str) -> tuple[str, ...]:
    guilty = [change for change in changes if change.verdict == verdict and verdict in ("slower", "faster")]
    return tuple(change.category for change in sorted(guilty, key=lambda change: -abs(change.delta_ns)))


def _sentence(
    delta_ns: int,
    verdict: str,
    changes: tuple[Change, ...],
    blame: tuple[str, ...],
    interval: Interval,
    margin_ns: float,
) -> str:
    if verdict == "same":
        return f"no difference beyond the margin of {format_ns(margin_ns)}: {_signed(delta_ns)}"
    if verdict == "inconclusive":
        return f"inconclusive: {_signed(delta_ns)}, but the interval {_signed(interval[0])} .. {_signed(interval[1])} holds 0"
    by_name = {change.category: change for change in changes}
    reasons = [f"{name} {_signed(by_name[name].delta_ns)}" for name in blame]
    why = ", ".join(reasons) if reasons else "no single category moved clearly"
    return f"{format_ns(abs(delta_ns))} {verdict}: {why}"


def _signed(ns: float) -> str:
    return f"{'+' if ns >= 0 else '-'}{format_ns(abs(ns))}"


def _warnings(base: Budget, new: Budget) -> tuple[str, ...]:
    sides = (("base", base), ("new", new))
    return tuple(f"{side}: {warning}" for side, budget in sides for warning in budget.breakdown.warnings)
