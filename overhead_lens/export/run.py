"""A run of a user's program for other viewers: its steps, their stacks, and the steps that were traced.

A writer raises ``UsageError`` where the run has no such evidence or is damaged, or the file cannot be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from overhead_lens.budget.threads import MAIN
from overhead_lens.captures.files import KINETO
from overhead_lens.errors import UsageError
from overhead_lens.export.chrome import write_chrome
from overhead_lens.export.lanes.budget import BUDGET_GROUP, host_slices
from overhead_lens.export.lanes.model import Counter, Lane, Section, Slice, Value
from overhead_lens.export.lanes.threads import (
    placed_stacks,
    thread_key,
    thread_lane,
    thread_name,
    thread_stacks,
    without_bottom,
)
from overhead_lens.export.names import readable
from overhead_lens.export.perfetto.analysis import time_sections
from overhead_lens.export.perfetto.picture import Picture, view_ns, write_picture
from overhead_lens.export.perfetto.stacks import Flamegraph, flamegraphs
from overhead_lens.export.speedscope import Profile, Write
from overhead_lens.program.area import Phase
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.studies.run.analysis import (
    RegionBudget,
    RunBudget,
    counters_by_step,
    other_threads,
    run_budget,
    step_stacks,
)
from overhead_lens.studies.run.slowest import Slow
from overhead_lens.studies.run.stored import StoredRun, read_run
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.traces.analyzer import step_windows
from overhead_lens.traces.pieces import Analyzed, analyze_over_time
from overhead_lens.units import NS_PER_US, format_ns


def write_run_chrome(path: Path, target: Path, classifier: Classifier) -> None:
    """Write the budget of a step, and the traced steps, as Chrome's JSON trace."""
    run = read_run(path)
    if not (path / KINETO).exists():
        raise UsageError(f"{path} holds no traced step: export it with --format collapsed, perfetto or speedscope")
    budget = run_budget(run, classifier)
    lane = Lane(f"Budget of a {budget.per}", host_slices(budget.host), group=BUDGET_GROUP)
    write_chrome(target, lane, read_trace(path / KINETO).events)


def write_run_stacks(path: Path, target: Path, classifier: Classifier, write: Write) -> None:
    """Write the stacks of a run: a profile a thread, each as long as it was there in a step.

    That of the steps leaves out what compilations take by the compiler's clock.
    """
    run = read_run(path)
    write(target, " ".join(run.meta.program), list(_profiles(run, classifier)))


def _profiles(run: StoredRun, classifier: Classifier) -> Iterator[Profile]:
    """Stacks of the steps, and of every other thread."""
    own, others = step_stacks(run, classifier), other_threads(run)
    if not own and not others:
        raise UsageError(f"{run.path} holds no samples to export ({run.meta.reason or 'none were taken'})")
    budget = run_budget(run, classifier)
    there_ns = {thread_key(each): each.there_ns for each in budget.threads}
    if own:
        yield Profile(run.meta.thread_name or MAIN, budget.divided_ns, own)
    for thread in others:
        name = f"{thread_name(thread)} ({thread.process}/{thread.thread})"
        yield Profile(name, there_ns[thread_key(thread)], list(thread.stacks))


_UNORDERED = "; their order is not the order of events."
_PHASES = {
    Phase.WARM_UP: "warm-up",
    Phase.BARE: "bare (measured)",
    Phase.ATTACHING: "the sampler attaches",
    Phase.SAMPLED: "sampled",
    Phase.TRACED: "traced by torch.profiler",
    Phase.AFTERWARDS: "after tracing (not measured)",
}
_COUNTERS = ("user_ns", "system_ns", "faults", "switches", "gc_ns", "compile_ns", "data_ns")


def write_run_perfetto(path: Path, target: Path, classifier: Classifier) -> None:
    """Write the capture of a run as a Perfetto trace.

    The axis is that of the program, from its first watched step on. The budget is drawn over one step, which is seen first: a
    traced one, whose events lie below it, or one that was measured bare.
    """
    run = read_run(path)
    write_picture(target, _Run(run, run_budget(run, classifier), classifier).picture())


@dataclass(frozen=True)
class _Run:
    """A run that is drawn."""

    run: StoredRun
    budget: RunBudget
    classifier: Classifier

    @cached_property
    def steps(self) -> pd.DataFrame | None:
        """Steps by the axis: ``number``, ``start_ns``, ``end_ns``, ``phase``, and what each added to the counters."""
        steps = self.run.steps
        if steps is None or not len(steps):
            return None
        table: pd.DataFrame = counters_by_step(steps)[list(_COUNTERS)].clip(lower=0).astype(np.int64)
        table["number"] = np.arange(len(steps)) + self.run.meta.before
        table["start_ns"] = steps["begin_ns"] - steps["begin_ns"].iloc[0]
        table["end_ns"] = steps["end_ns"] - steps["begin_ns"].iloc[0]
        table["phase"] = steps["phase"]
        return table

    @cached_property
    def shown(self) -> tuple[int, int, int] | None:
        """Number, start and end of the step that the budget is drawn over; None for a budget of the whole run.

        It is the step of median length: of the traced steps, else of the bare ones, else of all.
        """
        if self.steps is None or self.budget.per != "step":
            return None
        phase = Phase.BARE if self.traced is None else Phase.TRACED
        of_phase = self.steps[self.steps["phase"] == phase]
        own = of_phase if len(of_phase) else self.steps
        lengths = (own["end_ns"] - own["start_ns"]).sort_values(kind="stable")
        middle = own.loc[lengths.index[(len(own) - 1) // 2]]
        return int(middle["number"]), int(middle["start_ns"]), int(middle["end_ns"])

    @property
    def start_ns(self) -> int:
        """Start of the budget."""
        return 0 if self.shown is None else self.shown[1]

    def picture(self) -> Picture:
        """The whole picture."""
        traced, budget, start_ns = self.traced, self.budget, self.start_ns
        over_time, lanes = ([], []) if traced is None else time_sections(traced)
        threads = [thread_lane(thread, start_ns=start_ns, text=" beside its steps") for thread in budget.threads]
        sections = [
            Section(self._budget_lane()),
            *self._step_sections(),
            *(Section(self._region_lane(region)) for region in budget.regions),
            *map(Section, threads),
            *over_time,
        ]
        shown_ns = 0 if self.shown is None else self.shown[2] - start_ns
        view = start_ns, start_ns + view_ns(budget.wall.ns, shown_ns)
        names = {} if traced is None else traced.trace.thread_names
        return Picture(sections, view, lanes, self._flamegraphs(), names)

    def _flamegraphs(self) -> list[Flamegraph]:
        meta = self.run.meta
        stepping = (str(meta.pid), str(meta.thread or meta.pid))
        own, others = step_stacks(self.run, self.classifier), other_threads(self.run)
        fitted, start_ns, budget = self.classifier.fitted(own), self.start_ns, self.budget
        placed = placed_stacks(own, budget.host, fitted, start_ns=start_ns, shown=without_bottom)
        stacks = {stepping: list(placed), **thread_stacks(others, budget.threads, self.classifier, start_ns=start_ns)}
        names = {stepping: budget.steps.thread or MAIN, **{thread_key(each): thread_name(each) for each in others}}
        return flamegraphs(stepping, " ".join(budget.command), stacks, names, start_ns + budget.wall.ns)

    def _budget_lane(self) -> Lane:
        budget, steps = self.budget, self.budget.steps
        slices = host_slices(budget.host, start_ns=self.start_ns)
        command, length = readable(" ".join(budget.command)), format_ns(budget.wall.ns)
        if self.shown is None:
            text = f"{command}: the whole run took {length}. The categories sum to it{_UNORDERED}"
            return Lane("Budget of the run", slices, description=text)
        text = (
            f"One step, {length}: the mean of {steps.wall_of}. Drawn over step {self.shown[0]:,}; zoom out for the "
            f"whole run. The categories sum to it{_UNORDERED} {command}; steps by {steps.found_by}"
            f"{f', {readable(steps.where)}' if steps.where else ''}."
        )
        return Lane("Budget of a step", slices, description=text)

    def _step_sections(self) -> Iterator[Section]:
        if self.steps is None:
            return
        slowest = {slow.step: slow for slow in self.budget.slowest}
        lengths_us = (self.steps["end_ns"] - self.steps["start_ns"]) / NS_PER_US
        points = zip(self.steps["start_ns"].tolist(), lengths_us.tolist(), strict=True)
        yield Section(
            Counter("Time of a step", "µs", points, "How long each step took, from its beginning to the next one's.")
        )
        if slowest:
            own = self.steps[self.steps["number"].isin(list(slowest))]
            text = "Steps that took more than twice the median, and why: by what their counters have more than the median step's."
            yield Section(Lane("Slowest steps", _step_slices(own, slowest), description=text))
        text = "Every step that was watched, below what was measured then, with what it added to the main thread's counters."
        yield Section(Lane("Steps", _phases_and_steps(self.steps, slowest), description=text))

    def _region_lane(self, region: RegionBudget) -> Lane:
        name = readable(region.name)
        text = (
            f"Region {name}: {format_ns(region.wall.ns)}, the mean of the {region.count:,} times that measured steps entered it. "
            f"The categories sum to it{_UNORDERED}"
        )
        arguments: dict[str, Value] = {"ns": region.wall.ns, "entered in measured steps": region.count}
        title, end_ns = f"{name} {format_ns(region.wall.ns)}", self.start_ns + region.wall.ns
        whole = Slice(self.start_ns, end_ns, title, "region", arguments)
        slices = host_slices(region.host, start_ns=self.start_ns, kind="budget of a region")
        return Lane(f"Region {name}", [whole, *slices], description=text)

    @cached_property
    def traced(self) -> Analyzed | None:
        """The traced steps, moved to where they were in the run; None if none were traced."""
        path = self.run.path / KINETO
        if self.steps is None or not path.exists():
            return None
        trace = read_trace(path)
        starts_ns = self.steps.loc[self.steps["phase"] == Phase.TRACED, "start_ns"].tolist()
        windows = [(number, window) for number, window in step_windows(trace.columns) if number < len(starts_ns)]
        if not windows:
            return None
        moved_ns = round(float(np.median([starts_ns[number] - window.start_ns for number, window in windows])))
        columns = {**trace.columns, "start_ns": trace.columns["start_ns"] + max(0, moved_ns)}
        return analyze_over_time(replace(trace, columns=columns), self.classifier)


def _phases_and_steps(steps: pd.DataFrame, slowest: Mapping[int, Slow]) -> Iterator[Slice]:
    """Stretches of one phase, and in each its steps."""
    stretch = (steps["phase"] != steps["phase"].shift()).cumsum()
    for _, own in steps.groupby(stretch):
        phase = Phase(int(own["phase"].iloc[0]))
        start_ns, end_ns = int(own["start_ns"].iloc[0]), int(own["end_ns"].max())
        color = "busy" if phase is Phase.BARE else ""
        yield Slice(start_ns, end_ns, _PHASES[phase], "phase", {"steps": len(own)}, color=color)
        yield from _step_slices(own, slowest)


def _step_slices(steps: pd.DataFrame, slowest: Mapping[int, Slow]) -> Iterator[Slice]:
    columns = ("number", "start_ns", "end_ns", *_COUNTERS)
    for number, start_ns, end_ns, *added in zip(*(steps[column].tolist() for column in columns), strict=True):
        arguments: dict[str, Value] = {"step": number, "ns": end_ns - start_ns}
        arguments.update({name: value for name, value in zip(_COUNTERS, added, strict=True) if value})
        slow = slowest.get(number)
        name = f"step {number}"
        if slow is not None:
            arguments["because"] = readable(slow.because)
            name = f"slow step {number}: {format_ns(end_ns - start_ns)}, {readable(slow.because)}"
        yield Slice(start_ns, end_ns, name, "step", arguments, color="wait" if slow else "")
