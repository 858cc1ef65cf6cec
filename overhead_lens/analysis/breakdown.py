"""From a capture's evidence to the closed budget: the clock sets the total, samples (or the trace) set the shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from overhead_lens.analysis.calibration import event_costs
from overhead_lens.analysis.cross_checks import cross_checks
from overhead_lens.analysis.device_share import device_share
from overhead_lens.analysis.floor import make_floor
from overhead_lens.analysis.guards import BACKEND_MATCH, compile_notes, guard_costs, guard_tree
from overhead_lens.analysis.health import (
    clock_warnings,
    fault_warnings,
    memory_warnings,
    set_up_warnings,
    share_warnings,
    trace_warnings,
)
from overhead_lens.analysis.instructions import instruction_budget
from overhead_lens.analysis.model import (
    Breakdown,
    Closure,
    DeviceShare,
    Frame,
    HostCategory,
    InstructionBudget,
    Operator,
    Part,
    Wall,
)
from overhead_lens.analysis.operators import operator_tree
from overhead_lens.analysis.shares import Shares, shares_of_stacks, shares_of_time, with_page_faults
from overhead_lens.analysis.trace_budget import TraceBudget, trace_budget
from overhead_lens.analysis.wall import REPLICATES, Estimate, Floats, estimate_per_call, time_column, undisturbed
from overhead_lens.capture.page_faults import matter
from overhead_lens.categories import HOST_CATEGORIES, PARTS, Classified, Classifier
from overhead_lens.errors import MeasurementError
from overhead_lens.scenario import Work
from overhead_lens.stack import Stack
from overhead_lens.trace.callgrind import CallGraph
from overhead_lens.units import round_to_sum

_TOP_FRAMES = 8

_SEED = 20_240_302


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that a budget is made from.

    Attributes:
        meta: ``meta.json`` of the capture.
        clock: Block timings.
        samples: Sampled stacks cut to the measured loop, one sequence per process; empty without samples.
        events: Event frame of the plain trace; None without one.
        calibration: ``calibration.json`` of the capture; None without one.
        ablation: Blocks of the checks' rungs; None without them.
        name: What the budget calls the capture.
        instructions: Callgrind's counts; None without them.
    """

    meta: Mapping[str, Any]
    clock: pd.DataFrame
    samples: Sequence[Sequence[Stack]]
    events: pd.DataFrame | None
    name: str
    calibration: Mapping[str, Any] | None = None
    ablation: pd.DataFrame | None = None
    instructions: CallGraph | None = None

    @property
    def stacks(self) -> list[Stack]:
        """The stacks of all processes."""
        return [stack for stacks in self.samples for stack in stacks]


@dataclass(frozen=True, slots=True)
class Budget:
    """A breakdown with the bootstrap replicates it came from, for comparing two of them.

    Attributes:
        breakdown: The closed budget.
        wall: Replicates of the wall time, float64, shape ``(REPLICATES,)``, ns per call.
        host: Replicates per category in the order of the taxonomy, float64, shape ``(REPLICATES, categories)``.
        frames: ns per call, per category and frame.
        blocks: Every timed block: ``process``, ``block``, ``compilation`` (of the process, from 0), ``call_ns``, ``mean_ns``
            (with what few pieces of it took longer), ``reference_ns``, ``undisturbed``.
        process_shares: Share of each category in each sampled process, shape ``(processes, categories)``; no row without.
        process_stacks: Stacks of each sampled process, per category and frame, shape ``(processes,)`` each; empty without.
        recorded_with: What this capture and another have in common that were recorded in turns; None for one by itself.
    """

    breakdown: Breakdown
    wall: Floats
    host: Floats
    frames: Mapping[str, Mapping[str, float]]
    blocks: pd.DataFrame
    process_shares: Floats
    process_stacks: Mapping[tuple[str, str], Floats]
    recorded_with: str | None = None


def make_budget(evidence: Evidence, classifier: Classifier) -> Budget:
    """The budget of one capture.

    Args:
        evidence: What was captured.
        classifier: Fitted to the stacks of this capture, and of those that it is compared with.

    Raises:
        MeasurementError: Neither samples nor a trace can say how the time divides.
    """
    meta, clock = evidence.meta, undisturbed(evidence.clock)
    wall = estimate_per_call(clock, time_column(clock))
    stacks = evidence.stacks
    traced = _traced(evidence, classifier)
    verdicts = [classifier.classify(stack) for stack in stacks]
    if stacks:
        shares = shares_of_stacks(evidence.samples, classifier)
    elif traced is not None:
        shares = shares_of_time(traced.claims, traced.frames, _trace_spread(traced, wall.value))
    else:
        raise MeasurementError(f"{evidence.name} holds neither samples nor a trace: nothing says how its time divides")
    faults = _page_fault_time(clock, wall, shares, meta.get("page_faults") or ())
    fault_count = estimate_per_call(clock, "minor_faults", statistic="mean").value
    drawn = _replicates(wall, shares, faults)
    kernel_ns = shares.share("kernel") * wall.value
    fault_share = faults.value / kernel_ns if kernel_ns else 0.0
    shares = with_page_faults(shares, fault_share)
    wall_ns = round(wall.value)
    host = _host(wall_ns, shares, drawn)
    found = meta.get("guards") or {}
    device, device_warnings = _device(evidence, wall_ns, classifier)
    names = ("units", "flops", "bytes", "shared_bytes")
    work = Work(**{name: meta["work"].get(name, 0) for name in names}) if meta.get("work_known") else None
    call = _wall(clock, wall, meta)
    guards = guard_costs(stacks, verdicts, found, wall.value / shares.weight)
    instructions, instruction_warnings = _instructions(evidence, classifier)
    frames = {
        name: {frame: weight * wall.value / shares.weight for frame, weight in seen.items()}
        for name, seen in shares.frames.items()
    }
    breakdown = Breakdown(
        scenario=meta["scenario"],
        variant=meta["variant"],
        compile=meta["compile"],
        device_kind=meta["device"],
        params=meta["params"],
        wall=call,
        host=host,
        closure=_closure(host, wall_ns, traced),
        cross_checks=cross_checks(
            host,
            sum(each.sampled_ns or 0.0 for each in guards if each.guard == BACKEND_MATCH),
            traced,
            evidence.ablation,
        ),
        guards=guards,
        warnings=(
            *meta.get("warnings", ()),
            *clock_warnings(evidence.clock, len(clock), meta),
            *share_warnings(shares, wall.value, meta),
            *(() if traced is None else trace_warnings(traced.sum_ns, traced.bare_ns)),
            *(() if traced is None else set_up_warnings(frames.get("dispatcher", {}), wall_ns, traced.operator_calls)),
            *fault_warnings(fault_count, faults.value, wall.value),
            *memory_warnings(work, call, meta.get("peaks") or {}, _kind(meta)),
            *device_warnings,
            *instruction_warnings,
        ),
        environment=meta.get("environment", {}),
        capture=evidence.name,
        device=device,
        instructions=instructions,
        operators=_operators(evidence, verdicts, wall_ns, fault_share, traced),
        units=meta["work"]["units"],
        work=work,
        shared_reads=None if traced is None else min(max(traced.kernel_calls, 1.0), meta["work"]["units"]),
        peaks=meta.get("peaks") or {},
        published=tuple(meta.get("published", ())),
        guard_tree=guard_tree(found),
        compile_notes=compile_notes(found),
    )
    every = evidence.clock
    blocks = every[["process", "block", "reference_ns"]].assign(
        compilation=every.get("compilation", 0),
        call_ns=every[time_column(every)] / every["calls"],
        mean_ns=every["wall_ns"] / every["calls"],
        undisturbed=every.index.isin(clock.index),
    )
    return Budget(
        breakdown,
        wall.replicates,
        drawn,
        frames,
        blocks,
        shares.per_process,
        shares.counts,
        evidence.meta.get("recorded_with"),
    )


def _traced(evidence: Evidence, classifier: Classifier) -> TraceBudget | None:
    if evidence.events is None:
        return None
    costs = event_costs(evidence.calibration["rows"], "plain") if evidence.calibration else None
    return trace_budget(evidence.events, evidence.meta["trace"], classifier, costs)


def _device(evidence: Evidence, wall_ns: int, classifier: Classifier) -> tuple[DeviceShare | None, tuple[str, ...]]:
    """The device's side of a call on a device."""
    kind = _kind(evidence.meta)
    if kind == "cpu":
        return None, ()
    if evidence.events is None:
        return None, (f"no trace shows what the {kind} device did: its side of the budget is missing",)
    share, warnings = device_share(
        evidence.events, max(1, int(evidence.meta["trace"]["calls"])), wall_ns, kind, classifier
    )
    if share is None:
        warnings = (f"the trace holds no work of the {kind} device: its side of the budget is missing",)
    return share, warnings


def _instructions(evidence: Evidence, classifier: Classifier) -> tuple[InstructionBudget | None, tuple[str, ...]]:
    """The budget in instructions, where they were asked for, or why there is none."""
    asked = evidence.meta.get("instructions")
    if not asked:
        return None, ()
    reason = asked.get("reason")
    if reason is None and evidence.instructions is None:
        reason = "callgrind's output is not in the capture"
    if reason is not None or evidence.instructions is None:
        return None, (f"no instruction counts: {reason}",)
    try:
        budget = instruction_budget(evidence.instructions, asked["calls"], classifier)
    except MeasurementError as error:
        return None, (f"no instruction counts: {error}",)
    issues = [f"{count} {kind}" for kind, count in evidence.instructions.issues.items()]
    return budget, ((f"callgrind's output is not sound: {', '.join(issues)}",) if issues else ())


def _kind(meta: Mapping[str, Any]) -> str:
    """``cuda`` of ``cuda:1``."""
    return str(meta["device"]).partition(":")[0]


def _wall(clock: pd.DataFrame, wall: Estimate, meta: Mapping[str, Any]) -> Wall:
    low, high = wall.interval()
    floor = make_floor(meta["work"], meta.get("peaks"), _kind(meta)) if meta.get("work_known") else None
    processes, calls = int(clock["process"].nunique()), int(clock["calls"].sum())
    return Wall(round(wall.value), (low, high), processes, len(clock), calls, floor.ns if floor else 0.0, floor)


def _page_fault_time(
    clock: pd.DataFrame, wall: Estimate, shares: Shares, measured: Sequence[Mapping[str, int]]
) -> Estimate:
    """Time of page faults in ns per call, which is taken out of ``kernel``, where pages are touched first.

    A stack sample cannot show a page fault: the thread stops at the instruction that touched the page. The operating
    system accounts it (getrusage(2), ru_stime) beside the system calls for memory, which samples do show; what it takes of the
    thread's own time is measured apart (``capture/page_faults.py``)::

        system time   | system calls for memory (sampled) |  faults  |
        user time                                         |  faults  |       rest of the call       |
                                                          |  number of faults x what one was measured to take

    All of this is time in which the thread ran, a share of the time that its blocks ran. Where others keep the cores busy, the
    call waits for one as long as it runs and longer, wherever in it that is, so its wall has the same share; but for what it
    waited for by itself.
    """
    nothing = Estimate(0.0, np.zeros_like(wall.replicates))
    if shares.evidence != "samples" or "system_ns" not in clock:
        return nothing
    faults = estimate_per_call(clock, "minor_faults", statistic="mean")
    if not matter(faults.value, wall.value):
        return nothing
    system = estimate_per_call(clock, "system_ns", statistic="mean")
    user = _user_time_of_a_fault(measured)
    stretch = _stretch(clock, wall, shares)
    calls_ns = shares.memory_calls * wall.value
    value = stretch.value * (system.value + faults.value * user.value) - calls_ns
    replicates = stretch.replicates * (system.replicates + faults.replicates * user.replicates) - calls_ns
    return Estimate(float(np.clip(value, 0.0, shares.share("kernel") * wall.value)), np.maximum(replicates, 0.0))


def _stretch(clock: pd.DataFrame, wall: Estimate, shares: Shares) -> Estimate:
    """How many times the mean time in which it ran the call took, but for what it waited for without running; 1 if not known."""
    cpu = estimate_per_call(clock, "cpu_ns", statistic="mean") if "cpu_ns" in clock else None
    if cpu is None or not cpu.replicates.all():
        return Estimate(1.0, np.ones_like(wall.replicates))
    # A device's driver runs while it waits.
    ran = max(1 - shares.share("wait"), cpu.value / estimate_per_call(clock, "wall_ns", statistic="mean").value)
    # All replicates are of the same draws of processes.
    return Estimate(ran * wall.value / cpu.value, ran * wall.replicates / cpu.replicates)


def _user_time_of_a_fault(measured: Sequence[Mapping[str, int]]) -> Estimate:
    """Mean over the processes that measured it, in ns, with a bootstrap over them; 0 in a capture of before that was done."""
    per_fault = np.array([row["user_ns"] / row["faults"] for row in measured if row["faults"]])
    if not len(per_fault):
        return Estimate(0.0, np.zeros(REPLICATES))
    random = np.random.default_rng(_SEED)
    chosen = random.integers(0, len(per_fault), (REPLICATES, len(per_fault)))
    return Estimate(float(per_fault.mean()), per_fault[chosen].mean(axis=1))


def _replicates(wall: Estimate, shares: Shares, faults: Estimate) -> Floats:
    drawn = shares.replicates * wall.replicates[:, None]
    kernel, allocation = HOST_CATEGORIES.index("kernel"), HOST_CATEGORIES.index("allocation")
    moved = np.minimum(faults.replicates, drawn[:, kernel])
    drawn[:, kernel] -= moved
    drawn[:, allocation] += moved
    return drawn


def _host(wall_ns: int, shares: Shares, drawn: Floats) -> tuple[HostCategory, ...]:
    whole = round_to_sum([shares.share(name) * wall_ns for name in HOST_CATEGORIES], wall_ns)
    return tuple(
        _category(name, ns, wall_ns, shares, drawn[:, position])
        for position, (name, ns) in enumerate(zip(HOST_CATEGORIES, whole, strict=True))
    )


def _category(name: str, ns: int, wall_ns: int, shares: Shares, drawn: Floats) -> HostCategory:
    low, high = (float(bound) for bound in np.quantile(drawn, [0.025, 0.975]))
    seen = ns > 0 or shares.share(name) > 0
    interval = (min(low, ns), max(high, ns)) if seen else (0.0, max(high, 0.0))
    scale = wall_ns / shares.weight
    frames = sorted(shares.frames.get(name, {}).items(), key=lambda item: -item[1])[:_TOP_FRAMES]
    top = tuple(Frame(frame, round(weight * scale)) for frame, weight in frames)
    parts = _parts(name, ns, shares)
    return HostCategory(
        name, ns, interval, ns / wall_ns if wall_ns else 0.0, shares.evidence if seen else "none", parts, top
    )


def _parts(name: str, ns: int, shares: Shares) -> tuple[Part, ...]:
    if name not in PARTS or ns == 0:
        return ()
    raw = dict.fromkeys(PARTS[name], 0.0)
    for claim, weight in shares.claims.items():
        if claim.category == name and claim.part is not None:
            raw[claim.part] += weight
    total = sum(raw.values())
    whole = round_to_sum([value * ns / total for value in raw.values()], ns) if total else [0] * len(raw)
    return tuple(Part(part, part_ns) for part, part_ns in zip(raw, whole, strict=True))


def _closure(host: Sequence[HostCategory], wall_ns: int, traced: TraceBudget | None) -> Closure:
    total = sum(each.ns for each in host)
    if traced is None:
        return Closure(total, wall_ns - total, None, None, None)
    residual = traced.sum_ns / wall_ns - 1 if wall_ns else None
    return Closure(total, wall_ns - total, round(traced.sum_ns), residual, round(traced.bare_ns))


def _operators(
    evidence: Evidence, verdicts: Sequence[Classified], wall_ns: int, fault_share: float, traced: TraceBudget | None
) -> Operator | None:
    if not evidence.stacks:
        return None
    names: frozenset[str] = traced.operator_names if traced else frozenset()
    root = f"{evidence.meta['scenario']}:{evidence.meta['variant']}"
    return operator_tree(evidence.stacks, verdicts, wall_ns, names, root, fault_share)


def _trace_spread(traced: TraceBudget, wall_ns: float) -> float:
    """Relative uncertainty of the trace's shares: of half of what the profiler took the place is only estimated."""
    return min(0.5, traced.taken_ns / max(wall_ns, 1.0) / 2)
