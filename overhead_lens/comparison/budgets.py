"""Estimates the difference of two budgets, and rescales both to differ by exactly that.

Captures recorded in turns are compared round by round. Others are compared process by process, with what the processor decides
of both sides' times scaled to one speed of the machine by the reference loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead_lens.budget.make import Budget
from overhead_lens.budget.model import Breakdown, DeviceShare
from overhead_lens.budget.shares import PAGE_FAULT
from overhead_lens.stats.overdispersion import overdispersion
from overhead_lens.stats.shift import Shift, level, paired_shift, unpaired_shift
from overhead_lens.stats.values import Floats
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.host import HostCategory, Part
from overhead_lens.units import proportional, round_to_sum

# Smaller drifts are not corrected: the reference loop itself differs between processes.
DRIFT_SHARE = 0.005

# Confidence that rare pieces differ from which on all pieces count.
_RARE_LEVEL = 0.99

# A call that other programs keep off its core all the time may be slower by this share of it. Seen: 9 % where they did so 65 % of
# the time. How threads of a call slow each other has no such bound.
_SLOWED_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Aligned:
    """Two budgets and their difference.

    Attributes:
        base, new: Breakdowns, rescaled so that ``new`` less ``base`` is the estimated difference in whole ns.
        budgets: What was compared: of captures recorded apart, with their categories taken to one speed of the machine.
        wall: The difference, not rounded: 1 % of a short call is less than a nanosecond.
        host: Differences of the categories, in the taxonomy's order; the estimates sum to the wall's.
        drift: Relative slowdown of the reference loop in the new capture; 0 for captures recorded in turns.
        rare_ns: Part of the wall's difference that comes from few slow pieces of blocks; 0 if it does not count.
    """

    base: Breakdown
    new: Breakdown
    budgets: tuple[Budget, Budget]
    wall: Shift
    host: tuple[Shift, ...]
    drift: float
    rare_ns: float = 0.0


def aligned_budgets(base: Budget, new: Budget) -> Aligned:
    """Compare two budgets; rounds are paired where both were recorded in turns."""
    if base.recorded_with is not None and base.recorded_with == new.recorded_with:
        (wall, host, levels, rare_ns), drift = _paired(base, new), 0.0
    else:
        log_drift, drift_error = _log_drift(base, new)
        decided = (_decided_by_processor(base.breakdown) + _decided_by_processor(new.breakdown)) / 2
        base, new = (_at_speed(side, sign * log_drift / 2, decided) for side, sign in ((base, 1), (new, -1)))
        wall, host, levels = _unpaired(base, new, decided * log_drift, decided * drift_error)
        drift, rare_ns = math.expm1(log_drift), 0.0
    total_ns = level(levels[0]) + level(levels[1])
    # Floor division of the total gives the same two walls for swapped sides.
    delta_ns = round(wall.ns)
    base_ns = max((round(total_ns) - delta_ns) // 2, 0, -delta_ns)
    old, recent = rescaled(base.breakdown, base_ns), rescaled(new.breakdown, base_ns + delta_ns)
    exact_ns = max((total_ns - wall.ns) / 2, 0.0, -wall.ns)
    shifts = tuple(
        replace(shift, ns=after.share * (exact_ns + wall.ns) - before.share * exact_ns)
        for shift, before, after in zip(host, old.host, recent.host, strict=True)
    )
    return Aligned(old, recent, (base, new), wall, shifts, drift, rare_ns)


def median_per_process(budget: Budget, column: str) -> Floats:
    """Median block of each process, shape ``(processes,)``."""
    blocks = budget.blocks[budget.blocks["undisturbed"]]
    medians: Floats = blocks.groupby("process", sort=True)[column].median().to_numpy(np.float64)
    return medians


def _paired(base: Budget, new: Budget) -> tuple[Shift, list[Shift], Sequence[Floats], float]:
    """Shifts of wall and categories, walls per round, and the shift by rare pieces.

    Compilations of a call differ, and a median of all blocks would fall between two of them: a round is the mean of its
    compilations.

    Steady times are compared: rare slow pieces are usually the machine's and hit both sides alike. If the sides differ in them,
    a side causes them itself (garbage collection), and means of all pieces are compared, which are less precise.
    """
    sides = ("base", "new")
    blocks = base.blocks.merge(new.blocks, on=["process", "block"], suffixes=("_base", "_new"))
    blocks["delta_ns"] = blocks["call_ns_new"] - blocks["call_ns_base"]
    for side in sides:
        blocks[f"rare_ns_{side}"] = blocks[f"mean_ns_{side}"] - blocks[f"call_ns_{side}"]
    columns = ["delta_ns", *(f"call_ns_{side}" for side in sides)]
    compilations = blocks.groupby(["process", "compilation_base"], sort=True)[columns].median()
    deltas, *levels = compilations.groupby(level="process").mean().to_numpy(np.float64).T
    rounds = blocks.groupby("process", sort=True)
    rare_ns = [rounds[f"rare_ns_{side}"].mean().to_numpy(np.float64) for side in sides]
    rare = paired_shift(rare_ns[1] - rare_ns[0])
    low, high = rare.interval(_RARE_LEVEL)
    counts = low > 0 or high < 0
    if counts:
        deltas = deltas + rare_ns[1] - rare_ns[0]
        levels = [steady_ns + more_ns for steady_ns, more_ns in zip(levels, rare_ns, strict=True)]
    wall = paired_shift(deltas)
    return wall, _categories(base, new, levels, wall, 0.0), levels, rare.ns if counts else 0.0


def _unpaired(
    base: Budget, new: Budget, log_scale: float, drift_error: float
) -> tuple[Shift, list[Shift], Sequence[Floats]]:
    """Shifts of wall and categories, and walls per process.

    The time that calls waited for a core is taken out. A busy machine slows them in other ways, too: programs share caches, and
    the threads of a call wait for each other. ``_busyness`` is the standard error that this adds.

    Blocks that were timed as a whole have no steady time. If only one side has it, means are compared.

    Args:
        log_scale, drift_error: Log ratio of the walls by the machine's speed, and its error.
    """
    column = "call_ns" if _has_steady_times(base) == _has_steady_times(new) else "mean_ns"
    old_ns, recent_ns = (median_per_process(budget, column) for budget in (base, new))
    walls = (old_ns * math.exp(log_scale / 2), recent_ns * math.exp(-log_scale / 2))
    level_ns = float(np.mean([np.median(wall) for wall in walls]))
    busy_error = _busyness(base, new) * max(map(level, walls)) / max(level_ns, 1.0)
    drift_error = math.hypot(drift_error, busy_error)
    further_ns = drift_error * level_ns
    single = [float(np.std(budget.wall)) for budget, wall in zip((base, new), walls, strict=True) if len(wall) == 1]
    wall = unpaired_shift(*walls, math.hypot(further_ns, *sorted(single)), busy_error * level_ns)
    return wall, _categories(base, new, walls, wall, drift_error), walls


def _at_speed(budget: Budget, log_scale: float, decided: float) -> Budget:
    """The budget with its categories as on a machine of another speed, in proportion to the wall's ``decided * log_scale``.

    A processor that takes longer delays its own work by all of it; the wait for a device or for I/O is what remains of the call.
    """
    breakdown, wait = budget.breakdown, HOST_CATEGORIES.index("wait")
    own_ns = np.array([category.ns for category in breakdown.host], dtype=np.float64)
    rest_ns = float(own_ns.sum() - own_ns[wait])
    if not log_scale or decided == 1.0 or not rest_ns or not own_ns[wait]:
        return budget
    factor = min(math.exp((1 - decided) * log_scale), breakdown.wall.ns / rest_ns)
    factors = np.full(len(own_ns), factor)
    factors[wait] = max(breakdown.wall.ns - factor * rest_ns, 0.0) / own_ns[wait]
    by_name = dict(zip(HOST_CATEGORIES, factors.tolist(), strict=True))
    sizes = round_to_sum((own_ns * factors).tolist(), breakdown.wall.ns)
    own_shares = np.array([category.share for category in breakdown.host]) * factors
    each = zip(breakdown.host, sizes, factors.tolist(), (own_shares / own_shares.sum()).tolist(), strict=True)
    host = tuple(replace(_rescaled_category(old, ns, scale), share=share) for old, ns, scale, share in each)
    shares = budget.process_shares * factors
    return replace(
        budget,
        breakdown=replace(breakdown, host=host),
        host=budget.host * factors,
        frames={
            name: {frame: ns * by_name[name] for frame, ns in frames.items()} for name, frames in budget.frames.items()
        },
        process_shares=shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300),
        process_stacks={key: counts * by_name[key[0]] for key, counts in budget.process_stacks.items()},
    )


def _decided_by_processor(breakdown: Breakdown) -> float:
    """Share of the call that the processor's speed decides: all but I/O and a device that the host waits for.

    While host and device both work, it decides as much as it does while only one of them works.
    """
    wait = breakdown.category("wait")
    device_ns = wait.part_ns("device")
    host_ns = breakdown.wall.ns - device_ns if breakdown.device is None else breakdown.device.idle_ns
    return max(host_ns - wait.part_ns("io"), 0) / max(host_ns + device_ns, 1)


def _has_steady_times(budget: Budget) -> bool:
    """Whether slow pieces of blocks do not count in ``call_ns``; where there are none, both times are the same."""
    return not budget.blocks["call_ns"].equals(budget.blocks["mean_ns"])


def _busyness(base: Budget, new: Budget) -> float:
    """Additional standard error because the machine was busier during one side, as a share of the longer call."""
    delayed, contended = new.waited.delayed - base.waited.delayed, new.waited.contended - base.waited.contended
    return _SLOWED_SHARE * abs(delayed) + abs(contended)


def _categories(base: Budget, new: Budget, walls: Sequence[Floats], wall: Shift, drift_error: float) -> list[Shift]:
    """The categories' shifts from the stacks of several processes, or else from the pooled shares."""
    if all(len(budget.process_shares) > 1 and budget.process_stacks for budget in (base, new)):
        return _sampled(base, new, level(walls[0]) / 2 + level(walls[1]) / 2, wall)
    values, errors = [], []
    for budget, per_process in zip((base, new), walls, strict=True):
        call_ns = max(budget.breakdown.wall.ns, 1)
        shares = np.array([category.ns / call_ns for category in budget.breakdown.host])
        values.append(shares * per_process[:, None])
        errors.append(np.std(budget.host, axis=0) * shares.astype(bool))
    shifts = []
    for position in range(len(HOST_CATEGORIES)):
        old, recent = values[0][:, position], values[1][:, position]
        drift_ns = drift_error * float(np.median(old) + np.median(recent)) / 2
        further_ns = math.hypot(drift_ns, *sorted(float(error[position]) for error in errors))
        shifts.append(unpaired_shift(old, recent, further_ns))
    return shifts


def _sampled(base: Budget, new: Budget, level_ns: float, wall: Shift) -> list[Shift]:
    """The categories' shifts from counts of stacks, and from the wall's shift by their shares.

    A share's error is that of overdispersed counts, with half a stack added to each, so that a category without samples on one
    side has an error, too (Jeffreys). Page faults, taken out of the kernels, add their own. ``level_ns``, the mean of both walls,
    converts shares to ns.
    """
    sides = [
        budget.process_shares.T * sum(budget.process_stacks.values(), np.zeros(len(budget.process_shares)))
        for budget in (base, new)
    ]
    totals = [float(counts.sum()) for counts in sides]
    degrees_of_freedom = sum(counts.shape[1] - 1 for counts in sides)
    shifts = []
    faults = sum(sorted(budget.fault_error**2 for budget in (base, new)))
    for name, *rows, dispersion in zip(HOST_CATEGORIES, *sides, overdispersion(sides), strict=True):
        own = [float(row.sum()) for row in rows]
        if not any(own):
            shifts.append(Shift(0.0, 0.0, 1.0, wall.count))
            continue
        shares = [(count + 0.5) / (total + 1.0) for count, total in zip(own, totals, strict=True)]
        share_variance = dispersion * sum(sorted(p * (1 - p) / total for p, total in zip(shares, totals, strict=True)))
        share = sum(sorted(shares)) / 2
        share_variance += faults * (name in ("kernel", PAGE_FAULT.category))
        variances = share_variance * level_ns**2, (share * wall.error_ns) ** 2
        # Welch and Satterthwaite.
        pooled_degrees = sum(variances) ** 2 / (
            variances[0] ** 2 / degrees_of_freedom + variances[1] ** 2 / wall.degrees_of_freedom
        )
        ns = level_ns * (own[1] / totals[1] - own[0] / totals[0]) + share * wall.ns
        shifts.append(Shift(ns, math.sqrt(sum(variances)), max(1.0, pooled_degrees), wall.count))
    return shifts


def _log_drift(base: Budget, new: Budget) -> tuple[float, float]:
    """Log ratio of the reference loop's times, new over base, and its error.

    Both are 0 if the ratio is within the loop's own spread, and where interpreters or loops differ.
    """
    loops = {
        tuple(budget.breakdown.environment.get(name) for name in ("python", "reference")) for budget in (base, new)
    }
    old, recent = (median_per_process(budget, "reference_ns") for budget in (base, new))
    shift = unpaired_shift(np.log(old), np.log(recent))
    if len(loops) > 1 or abs(shift.ns) < max(DRIFT_SHARE, 2 * shift.error_ns):
        return 0.0, 0.0
    return shift.ns, shift.error_ns


def rescaled(breakdown: Breakdown, wall_ns: int) -> Breakdown:
    """The budget in proportion to a wall time of ``wall_ns``, in whole ns that sum."""
    scale = wall_ns / breakdown.wall.ns if breakdown.wall.ns else 0.0
    if scale == 1.0 or (breakdown.wall.ns == 0 and wall_ns == 0):
        return breakdown
    *weights, last = [category.ns for category in breakdown.host]
    sizes = proportional([*weights, last if breakdown.wall.ns else 1], wall_ns)
    return replace(
        breakdown,
        wall=replace(breakdown.wall, ns=wall_ns, ci95_ns=breakdown.wall.scaled(scale)),
        host=tuple(_rescaled_category(old, ns, scale) for old, ns in zip(breakdown.host, sizes, strict=True)),
        closure=replace(breakdown.closure, sum_ns=wall_ns),
        device=None if breakdown.device is None else _rescaled_device(breakdown.device, wall_ns),
    )


def _rescaled_category(category: HostCategory, ns: int, scale: float) -> HostCategory:
    low, high = (bound * scale for bound in category.ci95_ns)
    sizes = proportional([part.ns for part in category.parts], ns)
    return replace(
        category,
        ns=ns,
        ci95_ns=(min(low, ns), max(high, ns)),
        parts=tuple(Part(part.name, size) for part, size in zip(category.parts, sizes, strict=True)),
        top=tuple(replace(frame, ns=round(frame.ns * scale)) for frame in category.top),
    )


def _rescaled_device(device: DeviceShare, wall_ns: int) -> DeviceShare:
    """The device with the same busy time; its idle time changes."""
    busy_ns = min(device.busy_ns, wall_ns)
    idle_ns = wall_ns - busy_ns
    blame = {**device.idle_blame, "unattributed": idle_ns}
    if device.idle_ns:
        blame = dict(zip(device.idle_blame, proportional(list(device.idle_blame.values()), idle_ns), strict=True))
    return replace(device, busy_ns=busy_ns, idle_ns=idle_ns, idle_blame=blame)
