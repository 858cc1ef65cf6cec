"""Makes the closed budget: the clock sets the total, samples or trace the shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from overhead_lens.budget.asleep import Slept, bounded, slept
from overhead_lens.budget.cross_checks import cross_checks, kernels_alone, rung_walls
from overhead_lens.budget.guards import backend_match_ns, compile_notes, guard_costs, guard_groups, guard_tree
from overhead_lens.budget.host import host_categories, replicates
from overhead_lens.budget.instructions import instruction_budget
from overhead_lens.budget.model import Breakdown, Closure, DeviceShare, InstructionBudget, Wall
from overhead_lens.budget.operators import operator_tree
from overhead_lens.budget.page_faults import page_fault_time, standard_error
from overhead_lens.budget.shares import Shares, shares_of_time, shares_of_verdicts, with_compile_share, with_page_faults
from overhead_lens.budget.threads import sleep_warnings
from overhead_lens.budget.trace import TraceBudget, trace_budget
from overhead_lens.budget.wall import (
    NO_WAITING,
    Waited,
    compiles_at_times,
    estimate_per_call,
    make_floor,
    time_column,
    undisturbed,
    waited,
    with_compilations,
    without_delays,
)
from overhead_lens.budget.warnings import (
    clock_warnings,
    compile_warnings,
    fault_warnings,
    peak_warnings,
    set_up_warnings,
    share_warnings,
    trace_warnings,
)
from overhead_lens.captures.model import HOT_CACHES, CaptureMeta
from overhead_lens.correction.fit import event_costs
from overhead_lens.correction.store import PLAIN
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.guards.record import Guards
from overhead_lens.instruments.instructions.record import Instructions
from overhead_lens.instruments.page_faults.record import PageFaults
from overhead_lens.instruments.peaks.record import Peaks
from overhead_lens.instruments.samples.record import Samples
from overhead_lens.instruments.trace.record import TraceNote
from overhead_lens.stats.bootstrap import Estimate
from overhead_lens.stats.values import Floats
from overhead_lens.taxonomy.classifier import Classified, Classifier
from overhead_lens.taxonomy.host import HostCategory


@dataclass(frozen=True, slots=True)
class Evidence:
    """The recordings of one call by all instruments; None for an instrument that did not run.

    Attributes:
        samples: Sampled stacks; without any the trace decides.
        ablation: Timed blocks of the rungs that the cross-checks need.
        page_faults: The thread's own time per page fault.
    """

    name: str
    meta: CaptureMeta
    clock: pd.DataFrame
    samples: Samples = field(default_factory=Samples)
    trace: TraceNote | None = None
    calibration: Mapping[str, Any] | None = None
    ablation: pd.DataFrame | None = None
    guards: Guards = field(default_factory=Guards)
    page_faults: PageFaults = field(default_factory=PageFaults)
    peaks: Peaks | None = None
    instructions: Instructions | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """A breakdown with the data that comparing it with another one needs.

    Attributes:
        wall: Replicates of the wall time, float64, shape ``(REPLICATES,)``, ns per call.
        host: Replicates per category in the taxonomy's order, float64, shape ``(REPLICATES, categories)``, ns per call.
        frames: ns per call, per category and frame.
        blocks: Every timed block: ``process``, ``block``, ``compilation`` (of the process, from 0), ``call_ns`` (steady time),
            ``mean_ns`` (slow pieces included), ``reference_ns``, ``undisturbed``.
        process_shares: Shares per sampled process, shape ``(processes, categories)``; no row without samples.
        process_stacks: Stack counts by process, per category and frame, shape ``(processes,)``; empty without samples.
        recorded_with: Identity of the recording of two captures in turns; None for a capture recorded alone.
        waited: Waiting of the process's threads for a core.
        fault_error: Standard error of the share of page faults, which are taken out of the stacks of all processes alike.
    """

    breakdown: Breakdown
    wall: Floats
    host: Floats
    frames: Mapping[str, Mapping[str, float]]
    blocks: pd.DataFrame
    process_shares: Floats
    process_stacks: Mapping[tuple[str, str], Floats]
    recorded_with: str | None = None
    waited: Waited = NO_WAITING
    fault_error: float = 0.0


def make_budget(evidence: Evidence, classifier: Classifier) -> Budget:
    """The budget of one capture.

    Args:
        classifier: Fitted to the stacks of this capture and of the captures it is compared with.

    Raises:
        MeasurementError: There are neither samples nor a trace.
    """
    every = without_delays(evidence.clock)
    clock = undisturbed(every)
    wall = estimate_per_call(clock, time_column(clock))
    traced = _traced(evidence, classifier)
    stacks = [] if traced is not None and traced.waits_for_backward else evidence.samples.stacks
    verdicts = [classifier.classify(stack) for stack in stacks]
    by_stacks = _shares(evidence, verdicts, traced, wall)
    asleep = _asleep(by_stacks, clock, evidence.meta)
    shares = by_stacks if asleep is None else bounded(by_stacks, asleep)
    if compiles_at_times(every) and shares.share("compile"):
        every = with_compilations(every)
        clock, steady = every.loc[clock.index], wall
        wall = estimate_per_call(clock, time_column(clock))
        shares = _with_compilations(shares, wall, steady)
    are_of_stacks = shares is by_stacks
    faults = page_fault_time(clock, wall, shares, evidence.page_faults)
    drawn = replicates(wall, shares, faults)
    kernel_ns = shares.share("kernel") * wall.value
    fault_share = faults.value / kernel_ns if kernel_ns else 0.0
    shares = with_page_faults(shares, fault_share)
    frames = shares.frames_ns(wall.value)
    call = _wall(clock, wall, evidence)
    host = host_categories(call.ns, shares, drawn)
    operators = None
    if stacks and are_of_stacks:
        names = traced.operator_names if traced else frozenset[str]()
        root = f"{evidence.meta.subject.name}:{evidence.meta.subject.variant}"
        operators = operator_tree(stacks, verdicts, call.ns, names, root, fault_share)
    kept = shares.share("guard") / (by_stacks.share("guard") or 1.0)
    guards = guard_costs(stacks, verdicts, evidence.guards, wall.value / by_stacks.weight * kept)
    device, device_warnings = _device(evidence, call.ns, classifier)
    instructions, instruction_warnings = _instructions(evidence, classifier)
    warnings = [
        *_warnings(evidence, clock, call, shares, wall.value, faults.value, frames, traced),
        *sleep_warnings([("the call", asleep)]),
    ]
    meta = evidence.meta
    breakdown = Breakdown(
        subject=meta.subject,
        wall=call,
        host=host,
        closure=_closure(host, call.ns, traced),
        cross_checks=cross_checks(
            *(host, backend_match_ns(guards), traced, evidence.ablation),
            is_one_graph=not evidence.guards.graph_breaks,
        ),
        guards=guards,
        warnings=(*warnings, *device_warnings, *instruction_warnings),
        environment=meta.environment,
        capture=evidence.name,
        device=device,
        instructions=instructions,
        operators=operators,
        units=meta.units,
        work=meta.work,
        guard_tree=guard_tree(evidence.guards),
        guard_groups=guard_groups(evidence.guards, guards),
        compile_notes=compile_notes(evidence.guards),
    )
    return Budget(
        breakdown,
        wall.replicates,
        drawn,
        frames,
        _blocks(every, clock),
        shares.per_process,
        shares.counts,
        meta.recorded_with,
        waited(evidence.clock),
        standard_error(faults, kernel_ns, call.processes) / max(wall.value, 1.0),
    )


def _with_compilations(shares: Shares, wall: Estimate, steady: Estimate) -> Shares:
    """The shares with compilations as the part of ``wall`` that is beyond the ``steady`` time of calls without them."""
    drawn = np.clip(1.0 - steady.replicates / wall.replicates, 0.0, 1.0)
    return with_compile_share(shares, 1.0 - steady.value / wall.value, drawn)


def _warnings(
    evidence: Evidence,
    used_blocks: pd.DataFrame,
    call: Wall,
    shares: Shares,
    wall_ns: float,
    fault_ns: float,
    frames: Mapping[str, Mapping[str, float]],
    traced: TraceBudget | None,
) -> Iterator[str]:
    """Warnings of the recording, then of the blocks (``used_blocks`` are used), shares, trace, faults and memory."""
    meta, clock, samples = evidence.meta, evidence.clock, evidence.samples
    yield from meta.warnings
    yield from compile_warnings(clock, shares)
    yield from clock_warnings(clock, len(used_blocks), in_turns=meta.recorded_with is not None, kind=meta.subject.kind)
    yield from share_warnings(shares, wall_ns, samples.sampled, traced, has_stacks=bool(samples.stacks))
    if traced is not None:
        yield from trace_warnings(traced.sum_ns, traced.bare_ns)
        yield from set_up_warnings(frames.get("dispatcher", {}), call.ns, traced.operator_calls)
    yield from fault_warnings(estimate_per_call(used_blocks, "minor_faults", statistic="mean").value, fault_ns, wall_ns)
    in_hot_loop = meta.caches == HOT_CACHES
    yield from peak_warnings(meta.work, call, evidence.peaks, meta.subject.device_kind, in_hot_loop=in_hot_loop)


def _traced(evidence: Evidence, classifier: Classifier) -> TraceBudget | None:
    if evidence.trace is None:
        return None
    costs = event_costs(evidence.calibration["rows"], PLAIN) if evidence.calibration else None
    alone = kernels_alone(rung_walls(evidence.ablation))
    return trace_budget(
        evidence.trace.events, evidence.trace.about, classifier, costs, None if alone is None else alone.ns
    )


def _shares(evidence: Evidence, verdicts: Sequence[Classified], traced: TraceBudget | None, wall: Estimate) -> Shares:
    if verdicts:
        return shares_of_verdicts(evidence.samples.processes, verdicts)
    if traced is not None:
        # Half the profiler's cost is placed by estimate.
        spread = min(0.5, traced.recording_ns / max(wall.value, 1.0) / 2)
        return shares_of_time(traced.attributions, traced.frames, spread)
    raise MeasurementError(f"{evidence.name} has neither samples nor a trace: its time cannot be divided")


def _asleep(shares: Shares, clock: pd.DataFrame, meta: CaptureMeta) -> Slept | None:
    """The call's sleep by stacks and by the thread's clocks; None if they do not say, as where reading displaces caches."""
    if shares.evidence != "samples" or "cpu_ns" not in clock or meta.caches != HOT_CACHES:
        return None
    whole_ns = float(clock["wall_ns"].sum())
    return slept(shares, 1.0 - float(clock["cpu_ns"].sum()) / whole_ns, float(clock["system_ns"].sum()) / whole_ns)


def _wall(clock: pd.DataFrame, wall: Estimate, evidence: Evidence) -> Wall:
    work = evidence.meta.work
    subject = evidence.meta.subject
    dtype = str(subject.params.get("dtype", ""))
    floor = None if work is None else make_floor(work, evidence.peaks, subject.device_kind, dtype)
    processes, calls = int(clock["process"].nunique()), int(clock["calls"].sum())
    floor_ns = floor.ns if floor else 0.0
    made = wall.reported(), processes, len(clock), calls, floor_ns, floor
    return Wall(round(wall.value), *made, interval=wall.method)


def _blocks(clock: pd.DataFrame, used_blocks: pd.DataFrame) -> pd.DataFrame:
    blocks: pd.DataFrame = clock[["process", "block", "reference_ns"]].assign(
        compilation=clock.get("compilation", 0),
        call_ns=clock[time_column(clock)] / clock["calls"],
        mean_ns=clock["wall_ns"] / clock["calls"],
        undisturbed=clock.index.isin(used_blocks.index),
    )
    return blocks


def _device(evidence: Evidence, wall_ns: int, classifier: Classifier) -> tuple[DeviceShare | None, tuple[str, ...]]:
    kind = evidence.meta.subject.device_kind
    if kind == "cpu":
        return None, ()
    if evidence.trace is None:
        return None, (f"no trace shows what the {kind} device did: its side of the budget is missing",)
    # It imports the analysis of traces, a tenth of all that a report imports.
    from overhead_lens.budget.device import device_share

    calls = max(1, evidence.trace.about.calls)
    share, warnings = device_share(evidence.trace.events, calls, wall_ns, kind, classifier)
    if share is None:
        warnings = (f"the trace holds no work of the {kind} device: its side of the budget is missing",)
    return share, warnings


def _instructions(evidence: Evidence, classifier: Classifier) -> tuple[InstructionBudget | None, tuple[str, ...]]:
    counts = evidence.instructions
    if counts is None:
        return None, ()
    graph, reason = counts.graph, counts.about.reason
    if graph is None or reason is not None:
        return None, ("no instruction counts: " + (reason or "callgrind's output is not in the capture"),)
    try:
        budget = instruction_budget(graph, counts.about.calls, classifier)
    except MeasurementError as error:
        return None, (f"no instruction counts: {error}",)
    issues = [f"{count} {kind}" for kind, count in graph.issues.items()]
    return budget, ((f"callgrind's output is not sound: {', '.join(issues)}",) if issues else ())


def _closure(host: Sequence[HostCategory], wall_ns: int, traced: TraceBudget | None) -> Closure:
    total = sum(category.ns for category in host)
    if traced is None:
        return Closure(total, wall_ns - total, None, None, None)
    residual = traced.sum_ns / wall_ns - 1 if wall_ns else None
    return Closure(total, wall_ns - total, round(traced.sum_ns), residual, round(traced.bare_ns))
