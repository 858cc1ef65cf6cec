"""Two budgets aligned: their difference by process, and both rescaled to walls that differ by just that.

Captures that were recorded in turns are compared round by round; others process by process, each side's times scaled by the
reference loop to one speed of the machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from overhead_lens.budget.make import Budget
from overhead_lens.budget.model import Breakdown, DeviceShare
from overhead_lens.stats.overdispersion import overdispersion
from overhead_lens.stats.shift import Shift, at, level, paired_shift, unpaired_shift
from overhead_lens.stats.values import Floats
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.host import HostCategory, Part
from overhead_lens.units import round_to_sum

# The reference loop itself differs from process to process: it does not correct less than this.
DRIFT_SHARE = 0.005

# How sure it must be that rare pieces differ before all pieces count.
_RARE_LEVEL = 0.99


@dataclass(frozen=True, slots=True)
class Aligned:
    """What two budgets are compared by.

    Attributes:
        base, new: The budgets' breakdowns, rescaled so that ``new`` less ``base`` is the estimated difference.
        wall: The difference of the wall time.
        host: The differences of the categories, in the taxonomy's order; the estimates sum to the wall's.
        drift: How much slower the reference loop was in the new capture, as a share; 0 for captures recorded in turns.
        rare_ns: Part of the wall's difference that only few pieces of a block have; 0 where it does not count.
    """

    base: Breakdown
    new: Breakdown
    wall: Shift
    host: tuple[Shift, ...]
    drift: float
    rare_ns: float = 0.0


def aligned_budgets(base: Budget, new: Budget) -> Aligned:
    """Compare two budgets; rounds are paired where both were recorded in turns."""
    if base.recorded_with is not None and base.recorded_with == new.recorded_with:
        (wall, host, levels, rare_ns), drift = _paired(base, new), 0.0
    else:
        (wall, host, levels, drift), rare_ns = _unpaired(base, new), 0.0
    total_ns = round(level(levels[0]) + level(levels[1]))
    # Swapped sides give the same two numbers.
    delta_ns = round(wall.ns)
    base_ns = max((total_ns - delta_ns) // 2, 0, -delta_ns)
    old, recent = rescaled(base.breakdown, base_ns), rescaled(new.breakdown, base_ns + delta_ns)
    deltas = [after.ns - before.ns for before, after in zip(old.host, recent.host, strict=True)]
    placed = tuple(at(shift, delta) for shift, delta in zip(host, deltas, strict=True))
    return Aligned(old, recent, at(wall, delta_ns), placed, drift, rare_ns)


def call_ns_per_process(budget: Budget) -> Floats:
    """Median block of each process, ns per call, shape ``(processes,)``."""
    per_process: Floats = _quiet(budget).groupby("process", sort=True)["call_ns"].median().to_numpy(np.float64)
    return per_process


def _quiet(budget: Budget) -> pd.DataFrame:
    blocks: pd.DataFrame = budget.blocks[budget.blocks["undisturbed"]]
    return blocks


def _paired(base: Budget, new: Budget) -> tuple[Shift, list[Shift], Sequence[Floats], float]:
    """From the steady time of blocks; with what few of their pieces take more, if the sides differ in that.

    A round is worth the mean of its compilations: they lie up to 2 % to either side, and a median of all blocks falls
    somewhere between two of them.

    Rare pieces are the machine's as a rule, and hit both sides alike. What a side does itself every now and then, as
    collecting garbage, is in the mean of all pieces only, which is known less well.
    """
    sides = ("base", "new")
    together = base.blocks.merge(new.blocks, on=["process", "block"], suffixes=("_base", "_new"))
    together["delta_ns"] = together["call_ns_new"] - together["call_ns_base"]
    for side in sides:
        together[f"rare_ns_{side}"] = together[f"mean_ns_{side}"] - together[f"call_ns_{side}"]
    columns = ["delta_ns", *(f"call_ns_{side}" for side in sides)]
    compilations = together.groupby(["process", "compilation_base"], sort=True)[columns].median()
    deltas, *levels = compilations.groupby(level="process").mean().to_numpy(np.float64).T
    rounds = together.groupby("process", sort=True)
    rares = [rounds[f"rare_ns_{side}"].mean().to_numpy(np.float64) for side in sides]
    rare = paired_shift(rares[1] - rares[0])
    low, high = rare.interval(_RARE_LEVEL)
    counts = low > 0 or high < 0
    if counts:
        deltas = deltas + rares[1] - rares[0]
        levels = [steady + more for steady, more in zip(levels, rares, strict=True)]
    wall = paired_shift(deltas)
    return wall, _categories(base, new, levels, wall, 0.0), levels, rare.ns if counts else 0.0


def _unpaired(base: Budget, new: Budget) -> tuple[Shift, list[Shift], Sequence[Floats], float]:
    log_drift, drift_error = _log_drift(base, new)
    walls = (call_ns_per_process(base) * math.exp(log_drift / 2), call_ns_per_process(new) * math.exp(-log_drift / 2))
    further_ns = drift_error * float(np.mean([np.median(wall) for wall in walls]))
    single = [float(np.std(budget.wall)) for budget, wall in zip((base, new), walls, strict=True) if len(wall) == 1]
    wall = unpaired_shift(*walls, math.hypot(further_ns, *sorted(single)))
    return wall, _categories(base, new, walls, wall, drift_error), walls, math.expm1(log_drift)


def _categories(base: Budget, new: Budget, walls: Sequence[Floats], wall: Shift, drift_error: float) -> list[Shift]:
    """Every category's difference from the stacks of several processes, or else from what is known of the pooled shares."""
    if all(len(budget.process_shares) > 1 and budget.process_stacks for budget in (base, new)):
        return _sampled(base, new, level(walls[0]) / 2 + level(walls[1]) / 2, wall)
    values, errors = [], []
    for budget, per_process in zip((base, new), walls, strict=True):
        call_ns = max(budget.breakdown.wall.ns, 1)
        shares = np.array([each.ns / call_ns for each in budget.breakdown.host])
        values.append(shares * per_process[:, None])
        errors.append(np.std(budget.host, axis=0) * shares.astype(bool))
    found = []
    for position in range(len(HOST_CATEGORIES)):
        old, recent = values[0][:, position], values[1][:, position]
        drifted_ns = drift_error * float(np.median(old) + np.median(recent)) / 2
        further_ns = math.hypot(drifted_ns, *sorted(float(error[position]) for error in errors))
        found.append(unpaired_shift(old, recent, further_ns))
    return found


def _sampled(base: Budget, new: Budget, level_ns: float, wall: Shift) -> list[Shift]:
    """From counts of stacks: a category moves as its share of the call does, and with the wall by that share.

    A share's error is that of counts as they scatter from process to process; half a stack is added to the counts that it
    is computed from, since a category that was seen on one side only has an error too (Jeffreys).

    Args:
        base, new: Both with the stacks of several processes.
        level_ns: The walls' mean, at which a difference of shares is taken to ns.
        wall: The wall's difference.
    """
    sides = [
        budget.process_shares.T * sum(budget.process_stacks.values(), np.zeros(len(budget.process_shares)))
        for budget in (base, new)
    ]
    totals = [float(counts.sum()) for counts in sides]
    degrees_of_freedom = sum(counts.shape[1] - 1 for counts in sides)
    found = []
    for *rows, clump in zip(*sides, overdispersion(sides), strict=True):
        own = [float(row.sum()) for row in rows]
        if not any(own):
            found.append(Shift(0.0, 0.0, 1.0, wall.count))
            continue
        shares = [(count + 0.5) / (total + 1.0) for count, total in zip(own, totals, strict=True)]
        of_counts = clump * sum(sorted(p * (1 - p) / total for p, total in zip(shares, totals, strict=True)))
        share = sum(sorted(shares)) / 2
        variances = of_counts * level_ns**2, (share * wall.error_ns) ** 2
        error_freedom = sum(variances) ** 2 / (
            variances[0] ** 2 / degrees_of_freedom + variances[1] ** 2 / wall.degrees_of_freedom
        )
        ns = level_ns * (own[1] / totals[1] - own[0] / totals[0]) + share * wall.ns
        found.append(Shift(ns, math.sqrt(sum(variances)), max(1.0, error_freedom), wall.count))
    return found


def _log_drift(base: Budget, new: Budget) -> tuple[float, float]:
    """Logarithm of how much longer the reference loop took for the new capture, and its error.

    Nothing where it is too little to be told from the loop's own spread, where two interpreters ran it, and where the loops were
    different ones.
    """
    loops = {
        tuple(budget.breakdown.environment.get(name) for name in ("python", "reference")) for budget in (base, new)
    }
    old, recent = (
        _quiet(budget).groupby("process")["reference_ns"].median().to_numpy(np.float64) for budget in (base, new)
    )
    shift = unpaired_shift(np.log(old), np.log(recent))
    if len(loops) > 1 or abs(shift.ns) < max(DRIFT_SHARE, 2 * shift.error_ns):
        return 0.0, 0.0
    return shift.ns, shift.error_ns


def rescaled(breakdown: Breakdown, wall_ns: int) -> Breakdown:
    """The same budget for a wall time of ``wall_ns``: every category in proportion, to whole ns that sum."""
    scale = wall_ns / breakdown.wall.ns if breakdown.wall.ns else 0.0
    if scale == 1.0 or (breakdown.wall.ns == 0 and wall_ns == 0):
        return breakdown
    weights = [each.ns * scale for each in breakdown.host]
    if not breakdown.wall.ns:
        weights[-1] = float(wall_ns)
    sizes = round_to_sum(weights, wall_ns)
    low, high = breakdown.wall.ci95_ns
    return replace(
        breakdown,
        wall=replace(breakdown.wall, ns=wall_ns, ci95_ns=(low * scale, high * scale)),
        host=tuple(_stretched_category(each, ns, scale) for each, ns in zip(breakdown.host, sizes, strict=True)),
        closure=replace(breakdown.closure, sum_ns=wall_ns),
        device=None if breakdown.device is None else _stretched_device(breakdown.device, wall_ns),
    )


def _stretched_category(category: HostCategory, ns: int, scale: float) -> HostCategory:
    low, high = (bound * scale for bound in category.ci95_ns)
    own = ns / category.ns if category.ns else 0.0
    sizes = round_to_sum([part.ns * own for part in category.parts], ns) if category.parts else []
    return replace(
        category,
        ns=ns,
        ci95_ns=(min(low, ns), max(high, ns)),
        parts=tuple(Part(part.name, size) for part, size in zip(category.parts, sizes, strict=True)),
        top=tuple(replace(frame, ns=round(frame.ns * scale)) for frame in category.top),
    )


def _stretched_device(device: DeviceShare, wall_ns: int) -> DeviceShare:
    """The device works as long as before; what changes is its idle time."""
    busy_ns = min(device.busy_ns, wall_ns)
    idle_ns = wall_ns - busy_ns
    scale = idle_ns / device.idle_ns if device.idle_ns else 0.0
    causes = list(device.idle_blame)
    sizes = round_to_sum([device.idle_blame[cause] * scale for cause in causes], idle_ns) if device.idle_ns else []
    blame = dict(zip(causes, sizes, strict=True)) if sizes else {"unattributed": idle_ns}
    return replace(device, busy_ns=busy_ns, idle_ns=idle_ns, idle_blame=blame)
