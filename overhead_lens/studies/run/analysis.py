"""From a stored run to the budget of its steps (pure).

The bare steps set the wall time of a step, the stacks taken meanwhile its shares; both belong to the same loop of the same
process. Consecutive steps resemble each other, so that blocks of them, not steps, make the interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from overhead_lens.budget.asleep import Slept, bounded, slept
from overhead_lens.budget.backward import BackwardWork, backward_warning, backward_work, waiting_share, with_backward
from overhead_lens.budget.host import host_categories, replicates
from overhead_lens.budget.model import CrossCheck, Reading
from overhead_lens.budget.page_faults import page_fault_time
from overhead_lens.budget.shares import Shares, reweighted, shares_of_blocks, shares_of_stacks, with_page_faults
from overhead_lens.budget.threads import ThreadBudget, in_blocks, is_main, thread_budgets, thread_warnings
from overhead_lens.errors import require
from overhead_lens.instruments.page_faults.record import PageFaults
from overhead_lens.program.area import Phase
from overhead_lens.readers.py_spy.threads import SampledThread, joined
from overhead_lens.readers.py_spy.truncated_stacks import completed
from overhead_lens.result import Result
from overhead_lens.stack import Stack, StackFrame
from overhead_lens.stats.blocks import mean_of_consecutive, mean_over_blocks, mean_with_error
from overhead_lens.stats.bootstrap import REPLICATES, Estimate, exactly
from overhead_lens.stats.estimate import Measured
from overhead_lens.stats.values import Ints
from overhead_lens.studies.run import checks, warnings
from overhead_lens.studies.run.device import BareRegion, RunDevice, run_device
from overhead_lens.studies.run.phases import PhaseTime, phases
from overhead_lens.studies.run.slowest import Slow, slowest_steps
from overhead_lens.studies.run.stored import FoundBy, Place, StoredRegion, StoredRun, read_run
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.host import HostCategory

# What the watcher does between two steps, which the clock leaves out as well.
_WATCHER = tuple(f"overhead_lens/program/{name}.py" for name in ("watcher", "trace", "hold"))
_COMPILE = "compile"
_BLOCKS = 20
# More than of time: faults come in bursts, and are drawn, not assumed to be normal.
_FAULT_BLOCKS = 100
_FEWEST_STEPS = 3
# Phases whose steps do not set the wall; the first that leaves enough counts.
_LEFT_OUT = [Phase.WARM_UP, Phase.TRACED], [Phase.TRACED]
# Stretches of bare steps that say by themselves how much the mean varies.
_FEWEST_STRETCHES = 4
# After a longer time between two steps, the counters say nothing of the later one; the watcher takes less.
_PAUSE_NS = 1_000_000
# Steps that take this share of the time from the first to the last leave none for anything else.
_FILLED = 0.95
# A turn that lasts to the end of the program may spend this share of its time after the last step.
_AFTER_STEPS = 0.02


@dataclass(frozen=True, slots=True)
class Steps:
    """All steps, those of the warm-up, and the bare steps that define the wall time.

    ``measured`` is 0 if none was bare and all of them set it; ``thread`` is empty for the main thread.
    """

    found_by: FoundBy
    where: str  # ``train.py:14``; empty where it is not known.
    count: int
    warm_up: int
    measured: int
    thread: str

    @property
    def wall_of(self) -> str:
        """The steps whose mean is the wall time."""
        return f"{self.measured:,} bare steps" if self.measured else "steps that were not traced"


@dataclass(frozen=True, slots=True)
class Sampling:
    """Stacks inside the steps, and how much longer a sampled step took than a bare one; null without both."""

    rate_hz: int
    stacks: int
    step_ratio: float | None


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Every step that was looked at, in order.

    Attributes:
        first: Number of the first one in the run.
        ns: Their times, int64.
        phase: A ``Phase`` each, int64.
    """

    first: int
    ns: Ints
    phase: Ints


@dataclass(frozen=True, slots=True)
class StepWall(Measured):
    """Mean wall time of a step, or of one time in a region; a single one has no interval."""

    ns: int


def step_wall(mean: Estimate) -> StepWall:
    """The mean in whole ns."""
    return StepWall(round(mean.value), mean.reported(), interval=mean.method)


@dataclass(frozen=True, slots=True)
class RegionBudget:
    """The budget of one region, ns each time it was entered; ``host`` is empty if no stack was taken inside."""

    name: str
    count: int
    wall: StepWall
    host: tuple[HostCategory, ...]

    def __post_init__(self) -> None:
        closes = not self.host or sum(category.ns for category in self.host) == self.wall.ns
        require(closes, f"categories of region {self.name} do not sum to its wall time")


@dataclass(frozen=True, slots=True)
class RunBudget(Result):
    """The closed budget of a program's steps, or of the whole run where none were found.

    Attributes:
        command: The program's command line.
        exit_code: Negative for a signal.
        per: ``step`` or ``run``.
        host: Of the thread with the steps, in the taxonomy's order, zeros included; sums to the wall.
        threads: Other threads and processes, of the same time.
        device: The devices in the recorded steps; None where these show no device work.
        regions: Costliest first.
        slowest: Steps that took much longer than others, slowest first.
        phases: What the whole run was spent on; they sum to its wall.
        run_ns: Wall time of the whole run.
        sampling: How stacks were taken.
        cross_checks: Stacks beside the trace.
        times: Of its steps, one by one; None without steps.
    """

    command: tuple[str, ...]
    exit_code: int
    per: str
    steps: Steps
    wall: StepWall
    host: tuple[HostCategory, ...]
    threads: tuple[ThreadBudget, ...] = ()
    device: RunDevice | None = None
    regions: tuple[RegionBudget, ...] = ()
    slowest: tuple[Slow, ...] = ()
    warnings: tuple[str, ...] = ()
    capture: str = ""
    phases: tuple[PhaseTime, ...] = ()
    run_ns: int = 0
    sampling: Sampling = field(default_factory=lambda: Sampling(0, 0, None))
    cross_checks: tuple[CrossCheck, ...] = ()
    rank: int | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    times: StepTimes | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        names = tuple(category.category for category in self.host)
        require(names == HOST_CATEGORIES, f"host categories are {names}")
        closes = sum(category.ns for category in self.host) == self.wall.ns
        require(closes, "host categories do not sum to the wall time")

    def category(self, name: str) -> HostCategory:
        """The host category called ``name``."""
        return self.host[HOST_CATEGORIES.index(name)]

    @property
    def samples(self) -> int:
        """Stacks inside the steps, as taken."""
        return self.sampling.stacks

    @property
    def divided_ns(self) -> int:
        """The time that ``step_stacks`` divide: the wall without what compilations took by the compiler's clock."""
        compiling = self.category(_COMPILE)
        return self.wall.ns - (compiling.ns if compiling.evidence == "clock" else 0)


def run_budget_of(path: Path, classifier: Classifier) -> RunBudget:
    """The budget of a stored run.

    Raises:
        UsageError: The directory holds no complete, sound run.
    """
    return run_budget(read_run(path), classifier)


def run_budget(run: StoredRun, classifier: Classifier) -> RunBudget:
    """The budget of a run."""
    meta = run.meta
    counted = _counted(run.steps)
    ratio, cpu_ratio = _step_ratio(run.steps), _cpu_ratio(run.steps)
    wall = exactly(float(meta.wall_ns)) if counted is None else _estimate(counted, "ns")
    of_steps, others = _of_steps(run), other_threads(run)
    stepping, inside = [each.thread for each in of_steps], [each.inside for each in of_steps]
    stacks = [stack for thread in (*stepping, *others) for stack in thread.stacks]
    if counted is not None and meta.compilations and not counted["compile_ns"].any():
        # By the compiler's clock, they lie outside the steps that set the wall.
        *inside, stacks = _without_compilations([*inside, stacks], classifier)
    blocks = _sampled(inside)
    fitted = classifier.fitted(stack for block in blocks for stack in block)
    step = step_wall(wall)
    if warnings.is_unlike(ratio, cpu_ratio):
        step = _covering(step, run.steps)
    recorded = checks.read_steps(run.path, run.steps)
    traced = None if recorded is None else checks.operators_of_trace(recorded, step.ns, fitted)
    device = None if counted is None else _device(run, recorded, step, classifier)
    backward = _backward(run, [*stepping, *others], device, fitted)
    of_step = _host(step, wall, blocks, counted, traced, _clocks(run, counted), backward, fitted)
    regions = _regions(meta.regions, stacks, backward, of_step.worked_share, fitted)
    samples = sum(stack.count // each.weight for each, own in zip(of_steps, inside, strict=True) for stack in own)
    taken = sum(each.thread.samples // each.weight for each in of_steps)
    looks = {meta.pid: _looks(run)}
    clocks = dict(meta.running), dict(meta.in_system)
    threads = thread_budgets(others, meta.pid, step.ns, classifier, *clocks, looks) if others else ()
    asleep = [("the steps", of_step.asleep), *((thread.called, thread.slept) for thread in threads)]
    return RunBudget(
        command=tuple(meta.program),
        exit_code=meta.exit_code,
        per="run" if counted is None else "step",
        steps=_steps(run, counted),
        wall=step,
        host=of_step.host,
        threads=threads,
        device=device,
        regions=regions,
        slowest=() if counted is None else slowest_steps(counted, meta.compilations, first=meta.before),
        warnings=(
            *meta.warnings,
            *warnings.of_stacks(run, samples, taken, has_steps=counted is not None),
            *warnings.of_steps(counted, ratio, cpu_ratio, step),
            *backward_warning(None if backward is None else backward.shares, of_step.worked_share),
            *warnings.of_devices(device, step),
            *thread_warnings(meta.unplaced, of_step.host, asleep),
        ),
        capture=str(run.path),
        phases=phases(run, _set_up(run, classifier), has_steps=counted is not None),
        run_ns=meta.wall_ns,
        sampling=Sampling(meta.rate_hz, samples, ratio),
        cross_checks=of_step.checks,
        rank=meta.rank,
        environment=meta.environment,
        times=_times(run),
    )


def step_stacks(run: StoredRun, classifier: Classifier) -> list[Stack]:
    """Stacks inside the steps, from the frame on in which the steps' loop stands.

    Those of compilations are left out where the compiler's clock says how much of a step these take.
    """
    home, counted = _home(run), _counted(run.steps)
    blocks = _sampled(each.inside for each in _of_steps(run))
    if counted is not None and (run.meta.compilations or counted["compile_ns"].any()):
        blocks = _without_compilations(blocks, classifier)
    return [_from(stack, home) for block in blocks for stack in block]


class _OfSteps(NamedTuple):
    """A block of the stepping thread, and its stacks inside the steps; each stack that was taken counts ``weight``."""

    thread: SampledThread
    inside: list[Stack]
    weight: int


def _of_steps(run: StoredRun) -> list[_OfSteps]:
    """The stepping thread by block, with its stacks inside the steps: in the turns, or in all blocks if those have few."""
    home = _home(run)
    blocks = [(turn, weight, _unwatched(thread)) for turn, weight, thread in _threads(run) if _has_steps(thread, run)]
    at_home = [[stack for stack in thread.stacks if home is None or _passes(stack, home)] for *_, thread in blocks]
    # Steps fill any turn up to its last block with a stack of the loop.
    last_block = {turn: at for at, (turn, *_) in enumerate(blocks) if at_home[at]}
    whole = _whole_turns(run, max(last_block, default=0))
    step_blocks = []
    for at, (turn, weight, thread) in enumerate(blocks):
        is_filled = turn in whole or (turn >= whole.start > 0 and at < last_block.get(turn, 0))
        step_blocks.append((turn, _OfSteps(thread, [*thread.stacks] if is_filled else at_home[at], weight)))
    in_turns = [each for turn, each in step_blocks if turn]
    enough = sum(stack.count // each.weight for each in in_turns for stack in each.inside) >= warnings.FEW_STACKS
    return in_turns if enough else [each for _, each in step_blocks]


def _whole_turns(run: StoredRun, last: int) -> range:
    """The sampler's turns that steps fill without a gap, so that all their stacks lie inside steps.

    None if the steps are a loop's iterations, since the program may have left the loop between two of them. ``last`` is the last
    turn with a stack of the loop.
    """
    if run.steps is None or run.meta.found_by == "loop" or not (sampled := _beginnings(run.steps, Phase.SAMPLED)):
        return range(0)
    rests = ~run.steps["phase"].isin([Phase.SAMPLED, Phase.ATTACHING]).to_numpy()[sampled[-1] :]
    began_ns, ended_ns = int(run.steps["begin_ns"].iloc[sampled[-1]]), int(run.steps["end_ns"].iloc[-1])
    after_ns = run.meta.begun_ns + run.meta.wall_ns - ended_ns if run.meta.begun_ns else math.inf
    # Steps that end in the request for another turn may have none in it.
    is_whole = bool(rests[-1]) or (not rests.any() and after_ns <= _AFTER_STEPS * (ended_ns - began_ns))
    # Earlier turns belong to the steps of another source.
    return range(max(1, last - len(sampled) + 1), last + is_whole)


def _beginnings(steps: pd.DataFrame, phase: Phase) -> list[int]:
    """Where consecutive steps of one phase begin, by position."""
    chosen = (steps["phase"] == phase).to_numpy()
    return [int(at) for at in np.flatnonzero(chosen & ~np.append(False, chosen[:-1]))]


def _set_up(run: StoredRun, classifier: Classifier) -> list[Stack]:
    """Stacks of the main thread before the sampler's first turn, without those inside the steps and of timed compilations."""
    home = _home(run)
    main = [thread for turn, _, thread in _threads(run) if not turn and is_main(thread, run.meta.pid)]
    stacks = [stack for thread in main for stack in thread.stacks if home is None or not _passes(stack, home)]
    return _without_compilations([stacks], classifier)[0] if run.meta.compilations else stacks


def _has_steps(thread: SampledThread, run: StoredRun) -> bool:
    if not run.meta.thread:
        return is_main(thread, run.meta.pid)
    return thread.process == run.meta.pid and thread.thread == run.meta.thread


def _threads(run: StoredRun) -> Iterator[tuple[int, int, SampledThread]]:
    """The threads of all blocks, each with its block's turn and weight, and with stacks that count by that weight.

    Turns taken for steps that set no wall are of the whole run, as is turn 0. Those of earlier steps are left out.
    """
    has_steps = _counted(run.steps) is not None
    return (
        (block.turn * has_steps, block.weight, _weighted(thread, block.weight))
        for block in run.blocks
        if not (has_steps and 0 < block.turn <= run.meta.earlier)
        for thread in block.threads
    )


def _weighted(thread: SampledThread, weight: int) -> SampledThread:
    if weight == 1:
        return thread
    return replace(thread, blocks=(tuple(replace(stack, count=weight * stack.count) for stack in thread.stacks),))


def _home(run: StoredRun) -> Place | None:
    """The loop of the steps; None if the budget is of the whole run."""
    return None if _counted(run.steps) is None else run.meta.home


def _sampled(inside: Iterable[list[Stack]]) -> list[list[Stack]]:
    """Stacks inside the steps, in blocks of consecutive ones."""
    return completed(in_blocks([*inside]))


def _device(
    run: StoredRun, recorded: checks.RecordedSteps | None, wall: StepWall, classifier: Classifier
) -> RunDevice | None:
    """The devices in the recorded steps, and in the regions that these entered."""
    if recorded is None or run.steps is None:
        return None
    entered = run.meta.traced_regions
    regions = sorted(run.meta.regions, key=_costliest)
    bare = [BareRegion(each.name, step_wall(_entered(each)).ns, entered.get(each.name, [])) for each in regions]
    return run_device(recorded.trace, recorded.windows, run.steps, wall.ns, bare, classifier)


def _backward(
    run: StoredRun, threads: Sequence[SampledThread], device: RunDevice | None, classifier: Classifier
) -> BackwardWork | None:
    traced = () if device is None else device.analysis.threads
    recorded = {int(thread.tid): thread.host for thread in traced if thread.tid.isdigit()}
    return backward_work(joined(threads), run.meta.pid, classifier, dict(run.meta.running), recorded)


def _step_ratio(steps: pd.DataFrame | None) -> float | None:
    """Mean of sampled steps over that of bare ones."""
    return None if steps is None else _sampled_over_bare(steps, steps["end_ns"] - steps["begin_ns"])


def _cpu_ratio(steps: pd.DataFrame | None) -> float | None:
    """The same of their CPU times, without those of steps in which something was compiled."""
    if steps is None:
        return None
    table = counters_by_step(steps)
    is_known = table["is_counted"] & (table["compile_ns"] == 0)
    return _sampled_over_bare(steps, (table["user_ns"] + table["system_ns"]).where(is_known))


def _sampled_over_bare(steps: pd.DataFrame, values: pd.Series[float]) -> float | None:
    """Ratio of means, each interval without its first step; None without both."""
    same = steps["phase"] == steps["phase"].shift(1)
    bare, sampled = (values[same & (steps["phase"] == phase)].dropna() for phase in (Phase.BARE, Phase.SAMPLED))
    return float(sampled.mean() / bare.mean()) if sampled.sum() and bare.sum() else None


def _from(stack: Stack, home: Place | None) -> Stack:
    """The stack without what called ``home``."""
    at = next((at for at, frame in enumerate(stack.frames) if home is not None and _is_at(frame, home)), 0)
    return replace(stack, frames=stack.frames[at:])


def other_threads(run: StoredRun) -> list[SampledThread]:
    """All threads except the stepping thread, each with its stacks during the turns, or else all its stacks."""
    others = [(turn, thread) for turn, _, thread in _threads(run) if not _has_steps(thread, run)]
    seen = {(thread.process, thread.thread) for turn, thread in others if turn}
    return joined([thread for turn, thread in others if turn or (thread.process, thread.thread) not in seen])


def _looks(run: StoredRun) -> int:
    """What the stacks of the thread with the steps count during the turns, or else all its stacks."""
    taken = [(turn, thread.samples) for turn, _, thread in _threads(run) if _has_steps(thread, run)]
    return sum(count for turn, count in taken if turn) or sum(count for _, count in taken)


def _times(run: StoredRun) -> StepTimes | None:
    if run.steps is None or not len(run.steps):
        return None
    ns = (run.steps["end_ns"] - run.steps["begin_ns"]).to_numpy(np.int64)
    return StepTimes(run.meta.before, ns, run.steps["phase"].to_numpy(np.int64))


def _counted(steps: pd.DataFrame | None) -> pd.DataFrame | None:
    """The steps that set the wall; None without enough.

    Bare ones; where these are too few, all that were not recorded, with those of warm-up only if there are too few others.

    Returns:
        ``ns``, begin, end, number, ``is_bare`` (of none if all set the wall), and the columns of ``counters_by_step``.
    """
    if steps is None:
        return None
    table = counters_by_step(steps)
    table["number"] = np.arange(len(steps))
    table["begin_ns"], table["end_ns"] = steps["begin_ns"], steps["end_ns"]
    table["ns"] = steps["end_ns"] - steps["begin_ns"]
    # A stretch's first step holds what starting or ending an instrument left behind.
    table["is_bare"] = (steps["phase"] == Phase.BARE) & (steps["phase"].shift(1) == Phase.BARE)
    others = [table[~steps["phase"].isin(left_out)].assign(is_bare=False) for left_out in _LEFT_OUT]
    return next((rows for rows in (table[table["is_bare"]], *others) if len(rows) >= _FEWEST_STEPS), None)


def counters_by_step(steps: pd.DataFrame) -> pd.DataFrame:
    """What each step added to the counters; 0 where unknown: in the first step, and after a pause such as a loop's.

    Returns:
        The counters, ``apart_ns`` (the time in which they counted, from the end of one step to that of the next), ``is_counted``.
    """
    counters = ["user_ns", "system_ns", "faults", "switches", "gc_ns", "compile_ns", "data_ns"]
    is_counted = steps["begin_ns"] - steps["end_ns"].shift(1) <= _PAUSE_NS
    table = steps[counters].diff().assign(apart_ns=steps["end_ns"].diff())
    known: pd.DataFrame = table.where(is_counted, 0).assign(is_counted=is_counted)
    return known


def _estimate(counted: pd.DataFrame, column: str) -> Estimate:
    """Mean over steps with its interval, from blocks of consecutive steps, or from periods of bare steps if these vary more."""
    values = counted[column].to_numpy(np.float64)
    mean = mean_of_consecutive(values, _BLOCKS)
    stretch = (counted["number"].diff() != 1).cumsum()
    sums = counted[column].groupby(stretch).agg(["sum", "count"]).to_numpy(np.float64)
    if len(sums) < _FEWEST_STRETCHES:
        return mean
    apart = mean_over_blocks(sums[:, 0], sums[:, 1])
    return max(mean, apart, key=lambda each: float(np.ptp(each.interval())))


def _covering(wall: StepWall, steps: pd.DataFrame | None) -> StepWall:
    """The wall with an interval that holds the mean of all steps, too, whatever measured them."""
    assert steps is not None
    mean_ns = float((steps["end_ns"] - steps["begin_ns"]).mean())
    low, high = wall.ci95_ns
    return replace(wall, ci95_ns=(min(low, mean_ns), max(high, mean_ns)))


class _StepHost(NamedTuple):
    """The categories of a step, and how its stacks were checked and corrected.

    Attributes:
        worked_share: Share of the wait for backward passes in which autograd's threads work.
    """

    host: tuple[HostCategory, ...]
    checks: tuple[CrossCheck, ...] = ()
    asleep: Slept | None = None
    worked_share: float = 0.0


def _host(
    wall: StepWall,
    estimate: Estimate,
    blocks: Sequence[Sequence[Stack]],
    counted: pd.DataFrame | None,
    traced: Reading | None,
    clocks: tuple[float, float] | None,
    backward: BackwardWork | None,
    classifier: Classifier,
) -> _StepHost:
    """Every category's time; that of compilations, which are rare and long, by the clock if the compiler reports them."""
    has_compile_times = counted is not None and counted["compile_ns"].any()
    if has_compile_times:
        blocks = _without_compilations(blocks, classifier)
    if not any(blocks):
        return _StepHost(_unknown(wall.ns))
    by_stacks = shares_of_blocks(blocks, classifier)
    asleep = None if clocks is None else slept(by_stacks, *clocks)
    shares = by_stacks if asleep is None else bounded(by_stacks, asleep)
    made: tuple[CrossCheck, ...] = ()
    if traced is not None and not has_compile_times:
        before = _in_operators(by_stacks)
        scale = _in_operators(shares) / before if before else 1.0
        sampled = checks.operators_of_stacks(blocks, wall.ns * scale, classifier)
        check = checks.compared(sampled, traced)
        made = (check,)
        if not check.agree and not checks.hides_from_trace(blocks, classifier):
            shares = reweighted(shares, checks.in_operators, checks.nearest(sampled, traced) / wall.ns)
    worked_share = 0.0
    if backward is not None and (waiting := waiting_share(shares)):
        worked_share = min(1.0, backward.busy_share / waiting)
        shares = with_backward(shares, backward.shares, worked_share)
        if clocks is not None:
            together = slept(shares, clocks[0] - backward.running_share, clocks[1])
            shares, asleep = (bounded(shares, together), together) if together.disagree else (shares, asleep)
    if counted is None or not has_compile_times:
        return _StepHost(_divided(wall.ns, estimate, shares, counted), made, asleep, worked_share)
    known = counted[counted["is_counted"]]
    compiling = _estimate(known, "compile_ns")
    rest = _estimate(known.assign(ns=known["ns"] - known["compile_ns"]), "ns")
    compile_ns = min(round(compiling.value), wall.ns)
    host = _divided(wall.ns - compile_ns, rest, shares, counted)
    compiled = HostCategory(_COMPILE, compile_ns, compiling.interval(), 0.0, "clock")
    with_compiled = (compiled if category.category == _COMPILE else category for category in host)
    host = tuple(replace(category, share=category.ns / wall.ns) for category in with_compiled)
    return _StepHost(host, made, asleep, worked_share)


def _in_operators(shares: Shares) -> float:
    return sum(weight for attribution, weight in shares.attributions.items() if checks.in_operators(attribution))


def _clocks(run: StoredRun, counted: pd.DataFrame | None) -> tuple[float, float] | None:
    """Shares of the steps that set the wall: on no core, and in the operating system; None if the CPU clock is too coarse."""
    if counted is None or not str(run.meta.environment.get("system")).startswith("Linux"):
        return None
    known = counted[counted["compile_ns"] == 0]
    spent_ns = float((known["user_ns"] + known["system_ns"]).sum())
    if len(known) < _FEWEST_STEPS:
        return None
    if not spent_ns:
        return _clocks_between_turns(run, counted)
    whole_ns = float(known["apart_ns"].sum())
    return 1.0 - spent_ns / whole_ns, float(known["system_ns"].sum()) / whole_ns


def _clocks_between_turns(run: StoredRun, counted: pd.DataFrame) -> tuple[float, float] | None:
    """The same of steps too short to be counted one by one; None if anything else ran between the sampler's turns."""
    thread, follows = run.meta.thread or run.meta.pid, counted["number"].diff() == 1
    running = dict(run.meta.running).get(thread)
    apart_ns = counted["end_ns"].diff()[follows].sum()
    if running is None or counted["compile_ns"].any() or counted["ns"][follows].sum() < _FILLED * apart_ns:
        return None
    return 1.0 - running, dict(run.meta.in_system).get(thread, 0.0)


def _without_compilations(blocks: Sequence[Sequence[Stack]], classifier: Classifier) -> list[list[Stack]]:
    return [
        [stack for stack in block if classifier.classify(stack).attribution.category != _COMPILE] for block in blocks
    ]


def _divided(wall_ns: int, wall: Estimate, shares: Shares, counted: pd.DataFrame | None) -> tuple[HostCategory, ...]:
    """``wall_ns`` by the shares, page faults in ``allocation``."""
    faults = _fault_time(counted, wall, shares)
    drawn = replicates(wall, shares, faults)
    kernel_ns = shares.share("kernel") * wall.value
    return host_categories(wall_ns, with_page_faults(shares, faults.value / kernel_ns if kernel_ns else 0.0), drawn)


def _fault_time(counted: pd.DataFrame | None, wall: Estimate, shares: Shares) -> Estimate:
    """Time of page faults in ns per step, from the thread's system time."""
    if counted is not None:
        # The compiler's own faults and CPU time are not the step's.
        counted = counted[counted["is_counted"] & (counted["compile_ns"] == 0)]
    if counted is None or not counted["user_ns"].any():
        return Estimate(0.0, np.zeros(REPLICATES))
    clocks = {"wall_ns": counted["ns"], "minor_faults": counted["faults"], "system_ns": counted["system_ns"]}
    steps = pd.DataFrame({"process": 0, "calls": 1, **clocks, "cpu_ns": counted["user_ns"] + counted["system_ns"]})
    block = np.arange(len(steps)) * min(_FAULT_BLOCKS, len(steps)) // len(steps)
    clock = steps.groupby(block).sum().assign(process=0)
    return page_fault_time(clock, wall, shares, PageFaults())


def _unknown(wall_ns: int) -> tuple[HostCategory, ...]:
    """A budget of which nothing is known but its sum."""
    known_ns = {name: wall_ns if name == "unattributed" else 0 for name in HOST_CATEGORIES}
    return tuple(
        HostCategory(name, ns, (0.0, float(wall_ns)), 1.0 if ns else 0.0, "none") for name, ns in known_ns.items()
    )


def _unwatched(thread: SampledThread) -> SampledThread:
    """The thread without stacks in which the watcher was at work: between two steps, which the clock leaves out as well."""
    stacks = [stack for stack in thread.stacks if not any(frame.location.endswith(_WATCHER) for frame in stack.frames)]
    return replace(thread, blocks=(tuple(stacks),))


def _passes(stack: Stack, place: Place) -> bool:
    return any(_is_at(frame, place) for frame in stack.frames)


def _is_at(frame: StackFrame, place: Place) -> bool:
    return (
        not frame.native
        # The sampler shortens names of files.
        and (place.file == frame.location or place.file.endswith(f"/{frame.location}"))
        and (not place.function or frame.function.rpartition(".")[2] == place.function)
        and (not place.last_line or place.first_line <= frame.line <= place.last_line)
    )


def _steps(run: StoredRun, counted: pd.DataFrame | None) -> Steps:
    if run.steps is None or counted is None:
        return Steps("none", "", 0, 0, 0, "")
    warm_up = int((run.steps["phase"] == Phase.WARM_UP).sum()) + run.meta.before
    measured = int(counted["is_bare"].sum())
    count = len(run.steps) + run.meta.before + run.meta.lost
    return Steps(run.meta.found_by, run.meta.where, count, warm_up, measured, run.meta.thread_name)


def _regions(
    regions: Sequence[StoredRegion],
    stacks: Sequence[Stack],
    backward: BackwardWork | None,
    worked_share: float,
    classifier: Classifier,
) -> tuple[RegionBudget, ...]:
    budgets = []
    for region in sorted(regions, key=_costliest):
        mean = _entered(region)
        wall = step_wall(mean)
        inside = [stack for stack in stacks if any(_passes(stack, place) for place in region.places)]
        shares = shares_of_stacks([inside], classifier) if inside else None
        if shares is not None and backward is not None:
            shares = with_backward(shares, backward.shares, worked_share)
        host = () if shares is None else host_categories(wall.ns, shares, shares.replicates * mean.replicates[:, None])
        budgets.append(RegionBudget(region.name, region.count, wall, host))
    return tuple(budgets)


def _costliest(region: StoredRegion) -> float:
    return -region.count * step_wall(_entered(region)).ns


def _entered(region: StoredRegion) -> Estimate:
    """Mean time in a region, by blocks of consecutive entries; of an older run by the entries' own spread."""
    if region.blocks:
        counts, sums = np.array(region.blocks, dtype=np.float64).T
        return mean_over_blocks(sums, counts)
    mean, count = region.ns / region.count, region.count
    if count == 1:
        return exactly(mean)
    variance = max(0.0, region.squares_ns2 / count - mean * mean) / (count - 1)
    return mean_with_error(mean, math.sqrt(variance), count - 1)
