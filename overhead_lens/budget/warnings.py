"""What a reader must know before believing a budget: warnings, each one line that gives a figure and what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from overhead_lens.budget.floor import DEVICE_MEMORY
from overhead_lens.budget.model import Wall
from overhead_lens.budget.shares import Shares
from overhead_lens.instruments.peaks.evidence import Level, Peaks
from overhead_lens.instruments.samples.evidence import Sampled
from overhead_lens.scenario import Work
from overhead_lens.units import format_bytes, format_ns, format_rate

_DISTURBED_SHARE = 0.25
_LEAST_SAMPLES = 2_500
_UNATTRIBUTED_SHARE = 0.02
_LOST_SHARE = 0.01
# One function that sets operators up takes some 10 to 300 ns for each.
_SET_UP_SHARE = 0.03
_MOST_SET_UP_NS = 3_000
_FAULT_SHARE = 0.01
_DRIFT_SHARE = 0.05
# What the correction reaches in calls that it was not calibrated with (docs/methodology/correction.md).
_TRACE_SHARE = 0.05
_LEAST_FAULT_NS = 100
# Peaks differ by so much from one measurement to the next on a machine that others use.
_ABOVE_PEAK = 1.25
# Less of the call than this, and how its bytes are read is not what it is about.
_BYTES_MATTER_SHARE = 0.1


def clock_warnings(clock: pd.DataFrame, kept: int, *, in_turns: bool) -> list[str]:
    """Recompiles inside the window, a disturbed machine, a drifting clock, few processes; ``kept`` blocks counted."""
    found = []
    if "compiles" in clock and clock["compiles"].any():
        found.append(
            f"{int(clock['compiles'].sum())} compilations fell into the measured window: the wall time holds them"
        )
    disturbed = 1 - kept / len(clock)
    if disturbed > _DISTURBED_SHARE:
        found.append(
            f"{disturbed:.0%} of the blocks were left out: the reference loop beside them shows a disturbed machine"
        )
    drift = _drift(clock)
    if abs(drift) > _DRIFT_SHARE:
        found.append(f"the machine's clock drifted by {drift:+.0%} from the first process to the last (reference loop)")
    processes = clock["process"].nunique()
    if processes < 5:
        remedy = "raise --rounds" if in_turns else "leave --quick out"
        found.append(f"only {processes} clock processes: intervals are wider than they need be ({remedy})")
    return found


def trace_warnings(corrected_ns: float, bare_ns: float) -> list[str]:
    """A corrected trace that is far from the bare call timed in the same process."""
    away = corrected_ns / bare_ns - 1 if bare_ns else 0.0
    if abs(away) <= _TRACE_SHARE:
        return []
    why = "one of the two was disturbed, or recording this call costs something else than its events do elsewhere"
    far = f"the corrected trace is {away:+.0%} away from the bare call in its own process"
    return [f"{far}: what it says of times may be off by as much ({why})"]


def _drift(clock: pd.DataFrame) -> float:
    """Relative difference of the reference loop's lower quartile between the first process and the last."""
    usual = clock.groupby("process")["reference_ns"].quantile(0.25)
    return float(usual.iloc[-1] / usual.iloc[0] - 1)


def share_warnings(shares: Shares, wall_ns: float, taken: Sampled) -> list[str]:
    """Few samples, no samples, samples that could not be read, much unattributed."""
    found = []
    lost = taken.errors
    if lost > _LOST_SHARE * (taken.samples + lost) and shares.evidence == "samples":
        found.append(
            f"{lost} of {taken.samples + lost} stacks could not be read: the shares are of the others, and what runs where the"
            " sampler finds no way back to Python is missing from them"
        )
    if shares.evidence == "trace":
        reason = taken.reason or "none were taken"
        found.append(f"no samples ({reason}): shares come from the corrected trace")
        found.append("evidence: trace, so the split of an operator into dispatcher, allocation and kernel is estimated")
    elif shares.weight < _LEAST_SAMPLES:
        points = 196 * (0.01 * 0.99 / shares.weight) ** 0.5
        found.append(f"only {shares.weight:.0f} samples: a category of 1 % is uncertain by {points:.1f} points")
    if shares.share("unattributed") > _UNATTRIBUTED_SHARE:
        share = shares.share("unattributed")
        found.append(
            f"{share:.1%} ({share * wall_ns:.0f} ns) is unattributed: no rule claims the frames listed under it"
        )
    return found


def set_up_warnings(dispatcher: Mapping[str, float], wall_ns: float, operator_calls: float) -> list[str]:
    """The function of PyTorch that takes more than setting up so many operators can: perhaps a kernel that no rule knows.

    Args:
        dispatcher: ns per call of what counts as dispatcher, per frame.
        wall_ns: Time of one call.
        operator_calls: Operators in one call.
    """
    functions = {frame: ns for frame, ns in dispatcher.items() if frame.startswith("at::native::")}
    frame = max(functions, key=lambda each: functions[each], default=None)
    if frame is None or functions[frame] <= max(_SET_UP_SHARE * wall_ns, _MOST_SET_UP_NS * max(1.0, operator_calls)):
        return []
    return [
        (
            f"{frame} takes {format_ns(functions[frame])} by itself, more than setting up {max(1.0, operator_calls):,.0f}"
            " operators can, and counts as dispatcher: it may be a kernel that no rule knows (--rules can name it), or be called"
            " over and over from inside one"
        )
    ]


def fault_warnings(faults: float, faults_ns: float, wall_ns: float) -> list[str]:
    """Page faults that take part of each call.

    Args:
        faults: Minor page faults per call.
        faults_ns: Their time per call as measured; 0 where it was not.
        wall_ns: Time of one call.
    """
    cost_ns = faults_ns or faults * _LEAST_FAULT_NS
    if cost_ns <= _FAULT_SHARE * wall_ns:
        return []
    cost = f"take {format_ns(faults_ns)}" if faults_ns else f"take at least {format_ns(cost_ns)}"
    return [
        (
            f"{faults:,.0f} page faults per call {cost} ({cost_ns / wall_ns:.0%} of it): the call gets fresh memory every time;"
            " give it an output to write to, or keep malloc from returning its pages"
        )
    ]


def memory_warnings(work: Work | None, wall: Wall, peaks: Peaks | None, device: str) -> list[str]:
    """Bytes per second that memory cannot deliver, and bytes that never leave a cache."""
    if work is None or peaks is None or work.bytes == 0 or wall.floor is None or wall.ns == 0:
        return []
    if device != "cpu":
        if peaks.device is None or work.bytes <= peaks.device.cache_bytes:
            return []
        return _above_peak(work.bytes, wall.ns, peaks.device.bytes_per_s, DEVICE_MEMORY)
    holding = peaks.level_of(work.bytes)
    too_fast = _above_peak(work.bytes, wall.ns, holding.bytes_per_s, holding.name)
    return too_fast or _cached(work.bytes, wall, peaks.copy, holding)


def _above_peak(size_bytes: int, wall_ns: int, peak: float, level: str) -> list[str]:
    achieved = size_bytes / wall_ns * 1e9
    if achieved <= _ABOVE_PEAK * peak:
        return []
    return [
        (
            f"the call's {format_bytes(size_bytes)} in {format_ns(wall_ns)} are {format_rate(achieved)}, more than the"
            f" {format_rate(peak)} measured in {level}: the clock stops before the work is done (a device that is not"
            " synchronized?), the scenario's work() counts too many bytes, or other programs held the peak down"
        )
    ]


def _cached(size_bytes: int, wall: Wall, levels: Sequence[Level], holding: Level) -> list[str]:
    matters = size_bytes / holding.bytes_per_s * 1e9 >= _BYTES_MATTER_SHARE * wall.ns
    capacity, memory = holding.holds_bytes, levels[-1]
    if not matters or holding.level is None or capacity is None:
        return []
    return [
        (
            f"the call's {format_bytes(size_bytes)} fit in {holding.name} ({format_bytes(capacity)}): repeated calls"
            f" read cache (up to {format_rate(holding.bytes_per_s)}), not {memory.name}"
            f" ({format_rate(memory.bytes_per_s)}); enlarge the inputs to measure that"
        )
    ]
