"""Words the warnings of a budget: one line each, with the figure and its consequence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from overhead_lens.budget import thresholds
from overhead_lens.budget.asleep import why_unattributed
from overhead_lens.budget.backward import waiting_share
from overhead_lens.budget.model import Floor, Wall
from overhead_lens.budget.shares import Shares
from overhead_lens.budget.trace import TraceBudget
from overhead_lens.budget.wall import DEVICE_MEMORY, compiles_at_times, waited
from overhead_lens.instruments.peaks.record import Level, Peaks
from overhead_lens.instruments.samples.record import Sampled
from overhead_lens.scenario import Work
from overhead_lens.stats import estimate
from overhead_lens.subject import Kind
from overhead_lens.taxonomy import torch_names
from overhead_lens.units import format_bytes, format_ns, format_rate


def compile_warnings(clock: pd.DataFrame, shares: Shares) -> Iterator[str]:
    """Recompilations in the timed blocks."""
    if "compiles" in clock and clock["compiles"].any():
        is_held = shares.share("compile") or not compiles_at_times(clock)
        wall = "the wall time holds them" if is_held else "the wall time leaves them out"
        yield f"compilations within the timed blocks: {int(clock['compiles'].sum())}; {wall}"


def clock_warnings(clock: pd.DataFrame, used_count: int, *, in_turns: bool, kind: Kind = "scenario") -> Iterator[str]:
    """A disturbed machine (``used_count`` blocks remain), clock drift, few processes."""
    disturbed = 1 - used_count / len(clock)
    if disturbed > thresholds.DISTURBED_BLOCKS_SHARE:
        yield f"{disturbed:.0%} of the blocks were left out: the reference loop beside them shows a disturbed machine"
    delayed = waited(clock).delayed
    if delayed > thresholds.DELAYED_SHARE:
        yield (
            f"the machine was busy: calls waited {delayed:.0%} of the time for a core, which is taken out; what is left"
            " is slower than on a quiet machine"
        )
    usual = clock.groupby("process")["reference_ns"].quantile(0.25)
    drift = float(usual.iloc[-1] / usual.iloc[0] - 1)
    if abs(drift) > thresholds.CLOCK_DRIFT_SHARE:
        took = f"the reference loop took {abs(drift):.0%} {'more' if drift > 0 else 'less'} time"
        yield f"the machine's clock drifted: {took} beside the last process than beside the first"
    processes = clock["process"].nunique()
    if kind == "callable":
        yield (
            "measured in one process: what processes differ by is not in the intervals (ol.profile with fresh=True measures in"
            " several, or says why it cannot)"
        )
    elif processes < thresholds.FEWEST_PROCESSES:
        remedy = "raise --rounds" if in_turns else "measure to the end, without --quick"
        counted = "1 clock process" if processes == 1 else f"{processes} clock processes"
        yield f"only {counted}: {_cost_of_few(processes)} ({remedy})"


def _cost_of_few(processes: int) -> str:
    """The cost of so few processes, in words."""
    if processes == 1:
        return "what processes differ by is not in the intervals"
    if processes < estimate.FEWEST_PROCESSES:
        return "the wall time has their range, no interval; those of the categories are wide"
    return "intervals are wider than they need be"


def trace_warnings(corrected_ns: float, bare_ns: float) -> Iterator[str]:
    """A corrected trace that is far from the bare call timed in the same process."""
    residual = corrected_ns / bare_ns - 1 if bare_ns else 0.0
    if abs(residual) <= thresholds.CORRECTED_TRACE_SHARE:
        return
    why = "one of the two was disturbed, or recording this call costs something else than its events do elsewhere"
    far = f"the corrected trace is {residual:+.0%} away from the bare call in its own process"
    yield f"{far}: what it says of times may be off by as much ({why})"


def share_warnings(
    shares: Shares, wall_ns: float, taken: Sampled, traced: TraceBudget | None, *, has_stacks: bool
) -> Iterator[str]:
    """Few, no or ignored samples, unreadable stacks, much unattributed time."""
    unreadable, stacks = taken.errors, taken.samples + taken.errors
    if unreadable > thresholds.UNREADABLE_STACKS_SHARE * stacks and shares.evidence == "samples":
        yield (
            f"{unreadable} of {stacks} stacks could not be read: the shares are of the others, and what runs where the"
            " sampler finds no way back to Python is missing from them"
        )
    hides_kernels = False
    if shares.evidence == "trace" and traced is not None:
        hides_kernels = traced.hides_kernels
        reason = f"no samples ({taken.reason or 'none were taken'})"
        if has_stacks:
            reason = "the call waits for a backward pass on another thread, and stacks overstate that wait"
        yield f"{reason}: shares come from the corrected trace"
        estimated = ["the split of an operator into dispatcher, allocation and kernel is estimated"]
        if traced.compiled_ns and not hides_kernels:
            estimated.append("kernels of compiled code are taken to last as long as when they are called alone")
        estimated.append("code that records no event, such as NumPy's, counts as python")
        yield f"evidence: trace, so {', '.join(estimated[:-1])}, and {estimated[-1]}"
    elif shares.weight < thresholds.FEWEST_SAMPLES:
        points = 196 * (0.01 * 0.99 / shares.weight) ** 0.5
        yield f"only {shares.weight:.0f} samples: a category of 1 % is uncertain by {points:.1f} points"
    if shares.evidence == "samples" and (waits := waiting_share(shares)) > thresholds.BACKWARD_SHARE:
        yield f"{waits:.0%} is waiting for a backward pass on another thread: stacks overstate it, and no trace tells by how much"
    share = shares.share("unattributed")
    if share > thresholds.UNATTRIBUTED_SHARE:
        frames = shares.frames.get("unattributed", {})
        reason = why_unattributed(max(frames, key=frames.__getitem__, default=""))
        if hides_kernels:
            reason = "the trace does not tell the kernels of compiled code from its Python, and they could not be called alone"
        yield f"{share:.1%} ({share * wall_ns:.0f} ns) is unattributed: {reason}"


def set_up_warnings(dispatcher: Mapping[str, float], wall_ns: float, operator_calls: float) -> Iterator[str]:
    """A PyTorch function too slow for operator set-up, perhaps a kernel without a rule; ``dispatcher``: ns per call by frame."""
    functions = {frame: ns for frame, ns in dispatcher.items() if frame.startswith(torch_names.NATIVE_FUNCTION_PREFIX)}
    frame, ns = max(functions.items(), key=lambda item: item[1], default=("", 0.0))
    operators = max(1.0, operator_calls)
    if ns <= max(thresholds.SET_UP_SHARE * wall_ns, thresholds.SET_UP_NS * operators):
        return
    yield (
        f"{frame} takes {format_ns(ns)} by itself, more than setting up {operators:,.0f} operators can, and counts as"
        " dispatcher: it may be a kernel that no rule knows (--rules can name it), or be called over and over from inside one"
    )


def fault_warnings(faults: float, faults_ns: float, wall_ns: float) -> Iterator[str]:
    """Page faults that take part of each call: their number and measured time per call, the time 0 if it was not measured."""
    cost_ns = faults_ns or faults * thresholds.LEAST_PAGE_FAULT_NS
    if cost_ns <= thresholds.PAGE_FAULTS_SHARE * wall_ns:
        return
    cost = f"take {format_ns(faults_ns)}" if faults_ns else f"take at least {format_ns(cost_ns)}"
    count, often = (f"{faults:,.0f}", "every time") if faults >= 1 else (f"{faults:.2g}", "at times")
    yield (
        f"{count} page faults per call {cost} ({cost_ns / wall_ns:.0%} of it): the call gets fresh memory {often};"
        " give it an output to write to, or keep malloc from returning its pages"
    )


def peak_warnings(
    work: Work | None, wall: Wall, peaks: Peaks | None, device: str, *, in_hot_loop: bool = True
) -> Iterator[str]:
    """Arithmetic or memory traffic above the measured peak, or data that a hot loop keeps in a cache."""
    if work is None or peaks is None or wall.floor is None or wall.ns == 0:
        return
    yield from _above_arithmetic(wall, wall.floor)
    if work.bytes == 0:
        return
    if device != "cpu":
        if peaks.device is not None and work.bytes > peaks.device.cache_bytes:
            yield from _above_peak(work.bytes, wall.ns, peaks.device.bytes_per_s, DEVICE_MEMORY)
        return
    level = peaks.level_of(work.bytes)
    above_peak = [*_above_peak(work.bytes, wall.ns, level.bytes_per_s, level.name)]
    yield from above_peak or (_cached(work.bytes, wall, peaks.copy, level) if in_hot_loop else ())


def _above_arithmetic(wall: Wall, floor: Floor) -> Iterator[str]:
    if floor.bound != "arithmetic" or thresholds.ABOVE_PEAK_RATIO * wall.ns >= floor.ns:
        return
    yield (
        f"the call's arithmetic in {format_ns(wall.ns)} is {format_rate(floor.flops_per_s * floor.ns / wall.ns, 'FLOP')}, more"
        f" than the {format_rate(floor.flops_per_s, 'FLOP')} measured of float32: its type is a narrower one, the clock stops"
        " before the work is done (a device that is not synchronized?), or the scenario's work() counts too much"
    )


def _above_peak(size_bytes: int, wall_ns: int, peak: float, level: str) -> Iterator[str]:
    achieved = size_bytes / wall_ns * 1e9
    if achieved <= thresholds.ABOVE_PEAK_RATIO * peak:
        return
    yield (
        f"the call's {format_bytes(size_bytes)} in {format_ns(wall_ns)} are {format_rate(achieved)}, more than the"
        f" {format_rate(peak)} measured in {level}: the clock stops before the work is done (a device that is not"
        " synchronized?), the scenario's work() counts too many bytes, or other programs held the peak down"
    )


def _cached(size_bytes: int, wall: Wall, levels: Sequence[Level], cache: Level) -> Iterator[str]:
    matters = size_bytes / cache.bytes_per_s * 1e9 >= thresholds.BYTES_MATTER_SHARE * wall.ns
    capacity, memory = cache.holds_bytes, levels[-1]
    if not matters or cache.level is None or capacity is None:
        return
    yield (
        f"the call's {format_bytes(size_bytes)} fit in {cache.name} ({format_bytes(capacity)}): repeated calls"
        f" read cache (up to {format_rate(cache.bytes_per_s)}), not {memory.name}"
        f" ({format_rate(memory.bytes_per_s)}); enlarge the inputs to measure that"
    )
