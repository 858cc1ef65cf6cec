"""The analysis of one trace: budgets of its threads, devices and steps, its costliest names, what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from overhead_lens.readers.kineto.model import Events, Trace
from overhead_lens.stats.values import Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.traces.budgets import DeviceBudget, ThreadBudget, TraceStep
from overhead_lens.traces.collectives.analysis import collective_costs, collective_rows, described_collectives
from overhead_lens.traces.collectives.model import Collective
from overhead_lens.traces.columns import where
from overhead_lens.traces.costs import kernel_costs, kernel_estimate, operator_costs
from overhead_lens.traces.counters.analysis import Counted, counted
from overhead_lens.traces.device import COMPUTE, DeviceTimeline
from overhead_lens.traces.findings.find import findings
from overhead_lens.traces.findings.recorded import Recorded
from overhead_lens.traces.health import lost_launches, trace_issues, trace_notes
from overhead_lens.traces.host import HOST_EVENTS, ThreadTimeline, host_events, owned
from overhead_lens.traces.host_budget import (
    ThreadPieces,
    backward_passes,
    dispatch_floor,
    host_budgets,
    thread_pieces,
)
from overhead_lens.traces.intervals import distinct_values
from overhead_lens.traces.launch_figures.analysis import input_batch, launch_figures
from overhead_lens.traces.launches import link, waits_from
from overhead_lens.traces.memory.analysis import DeviceLife, device_lives
from overhead_lens.traces.memory.context import contexts
from overhead_lens.traces.memory.stacks import stack_contexts
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.traces.modules.analysis import module_budgets
from overhead_lens.traces.modules.model import ModuleBudgets
from overhead_lens.traces.modules.scopes import Scopes, scopes
from overhead_lens.traces.over_time import over_time
from overhead_lens.traces.sequences.analysis import Repeated, sequences
from overhead_lens.traces.side_by_side import beside, side_by_side
from overhead_lens.traces.window import Window

if TYPE_CHECKING:
    from overhead_lens.traces.critical_path.analysis import PathAnalysis
    from overhead_lens.traces.critical_path.fragments import PathFragments


def analyze_trace(
    trace: Trace, classifier: Classifier, *, critical_path: bool = False, is_rank: bool = False
) -> TraceAnalysis:
    """Everything ``overhead-lens analyze`` says of one trace; ``is_rank``: its critical path may go through other ranks."""
    return Analyzer(trace, classifier, critical_path=critical_path, is_rank=is_rank).analysis()


class Analyzer:
    """Computes the analysis of one trace; each part is computed once, on first use.

    Attributes:
        host: Its host events.
        linked: Its device events with their launches.
        with_path: Whether the critical path is requested.
    """

    def __init__(
        self, trace: Trace, classifier: Classifier, *, critical_path: bool = False, is_rank: bool = False
    ) -> None:
        self.trace = trace
        self.with_path = critical_path
        self._with_chains = critical_path and is_rank
        self._events, self._count = trace.columns, len(trace.columns["name"])
        self.host = host_events(trace.columns, classifier)
        self.linked = link(trace.columns)
        # Threads share it.
        _ = self.host.around

    def analysis(self) -> TraceAnalysis:
        """The budgets."""
        with beside(events=self._count) as other:
            # The other thread computes parts that need no budget of a thread.
            repeated = other.submit(lambda: self.repeated)
            memory = other.submit(lambda: tuple(life.analysis(self.step_windows) for life in self.memory))
            other.submit(lambda: self.module_scopes)
            threads = self.threads
            modules = other.submit(lambda: self.modules)
            analysis = TraceAnalysis(
                path=self.trace.path,
                rank=self.trace.rank,
                world_size=self.trace.world_size,
                events=self.trace.event_count,
                window=self.window,
                threads=tuple(self._thread_budget(key, pieces) for key, pieces in threads.items()),
                devices=tuple(self._device_budgets(device, [device.span])[0] for device in self.devices),
                steps=self._steps(),
                operators=operator_costs(self.host, self._timelines, self._kernel_ns),
                kernels=kernel_costs(self._events, self.linked.rows),
                collectives=self.collectives,
                collective_costs=collective_costs(self.collectives),
                counters=self.counted.counters,
                memory=memory.result(),
                modules=modules.result(),
                critical_path=self.paths.analysis() if self.with_path else None,
                chains=self.chains if self._with_chains else None,
            )
            figures = other.submit(lambda: launch_figures(self._events, self.devices, analysis.devices, analysis.steps))
            lost = lost_launches(self.trace, self.linked)
            return replace(
                analysis,
                batch=input_batch(self.trace) if self._count else None,
                over_time=over_time(self.window, next(iter(threads.values()), None), self.devices),
                findings=findings(self._recorded(analysis)),
                issues=trace_issues(self.trace, analysis, self._timelines, self.linked, lost),
                notes=trace_notes(self.trace, analysis, list(threads.values()), lost),
                sequences=tuple(one.sequence for one in repeated.result()),
                launch_figures=figures.result(),
            )

    @cached_property
    def window(self) -> Window:
        """From the first to the last instant of host and device work."""
        rows = np.concatenate((self.host.rows, self.linked.rows))
        if not len(rows):
            times_ns = self.trace.memory["start_ns"]
            return Window(0, 0 if self.trace.stacks is None else int(times_ns.max(initial=0)))
        start_ns, dur_ns = (self._events[name][rows] for name in ("start_ns", "dur_ns"))
        first_ns = int(start_ns.min())
        return Window(first_ns, int((start_ns + dur_ns).max()) - first_ns)

    @cached_property
    def threads(self) -> dict[tuple[str, str], ThreadPieces]:
        """Every host thread, the busiest first: the most time in operators and runtime calls (``ThreadTimeline.working_ns``).

        Autograd's threads come last if others work: they work for the thread that called ``backward()`` and waits for them.
        """
        keys, window = self.host.threads, self.window
        segments = side_by_side(lambda number: owned(self.host, number, window), range(len(keys)), events=self._count)
        timelines = side_by_side(
            lambda number: ThreadTimeline(self.host, number, window, segments[number]),
            range(len(keys)),
            events=self._count,
        )
        if not timelines:
            return {}
        has_caller = any(line.working_ns for line in timelines if not line.is_autograd)
        timelines.sort(
            key=lambda line: (has_caller and line.is_autograd, -line.working_ns, -line.covered_ns, keys[line.number])
        )
        busiest = timelines[0]
        passes, floor = backward_passes(timelines, segments[busiest.number]), dispatch_floor(timelines)
        waits_from_ns = self._waits_from_ns
        pieces = side_by_side(
            lambda line: thread_pieces(
                line, segments[line.number], passes, waits_from_ns, floor, is_busiest=line is busiest
            ),
            timelines,
            events=self._count,
        )
        return dict(zip((keys[line.number] for line in timelines), pieces, strict=True))

    @cached_property
    def devices(self) -> list[DeviceTimeline]:
        """Every device, by number."""
        numbers = distinct_values(self._events["device"][self.linked.rows])
        return [
            DeviceTimeline(self._events, self.linked, number, self.threads, self.window.bounds)
            for number in numbers.tolist()
        ]

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """Communication kernels in order of start."""
        compute = {device.number: device.by_kind[COMPUTE] for device in self.devices}
        return described_collectives(self.trace, self.host, self.linked, compute, self.step_windows)

    @cached_property
    def counted(self) -> Counted:
        """Figures of device work from counters and arguments."""
        return counted(self.trace, self.host, self.linked, self.window.bounds[1])

    @cached_property
    def memory(self) -> list[DeviceLife]:
        """Every device whose allocations were recorded; the host last."""
        memory, stacks = self.trace.memory, self.trace.stacks
        if not len(memory["start_ns"]):
            return []
        return device_lives(memory, contexts(memory, self.host) if stacks is None else stack_contexts(memory, stacks))

    @cached_property
    def module_scopes(self) -> Scopes | None:
        """The open modules over time; None for a trace without module names."""
        sequence = self._events["sequence"][self.host.rows]
        return scopes(self.host, sequence, self.trace.arguments, self.window.bounds)

    @cached_property
    def modules(self) -> ModuleBudgets | None:
        """The budget per module; None for a trace without module names."""
        if self.module_scopes is None:
            return None
        threads = list(self.threads.values())
        return module_budgets(self.module_scopes, self.host, threads, self._events, self.linked)

    @cached_property
    def repeated(self) -> tuple[Repeated, ...]:
        """Sequences of launches and operators that repeat."""
        return sequences(self._events, self.host, self.linked, self._waits_from_ns)

    @cached_property
    def paths(self) -> PathAnalysis:
        """The critical path of each step, or of the window."""
        from overhead_lens.traces.critical_path.analysis import PathAnalysis
        from overhead_lens.traces.critical_path.graph import graph_of

        graph = graph_of(self.trace, self.host, self.linked, self.threads)
        return PathAnalysis(graph, self.window, self.step_windows)

    @property
    def chains(self) -> PathFragments:
        """The chains of this trace that a path over several ranks needs."""
        from overhead_lens.traces.critical_path.keep import fragments_of

        return fragments_of(self.paths, collective_rows(self._events, self.linked))

    @cached_property
    def step_windows(self) -> list[tuple[int, Window]]:
        """Number and window of each step, in order of start."""
        return step_windows(self._events)

    @cached_property
    def _timelines(self) -> list[ThreadTimeline]:
        return [pieces.timeline for pieces in self.threads.values()]

    @cached_property
    def _kernel_ns(self) -> Ints:
        return kernel_estimate(self.host, self.threads.values())

    @cached_property
    def _waits_from_ns(self) -> Ints:
        return waits_from(self._events, self.host, self.linked)

    def _recorded(self, analysis: TraceAnalysis) -> Recorded:
        return Recorded(
            self._events,
            self.host,
            self.threads,
            self.devices,
            self._waits_from_ns,
            self.module_scopes,
            self._kernel_ns,
            analysis.memory,
            bool(self.trace.device_properties),
            analysis,
        )

    def _thread_budget(self, key: tuple[str, str], pieces: ThreadPieces) -> ThreadBudget:
        (host,) = host_budgets(pieces, [self.window])
        return ThreadBudget(*key, self.trace.thread_names.get(key, ""), pieces.timeline.covered_ns, host)

    def _device_budgets(self, device: DeviceTimeline, windows: Sequence[tuple[int, int]]) -> list[DeviceBudget]:
        return device.budgets(self.trace.device_names.get(device.number, ""), windows)

    def _steps(self) -> tuple[TraceStep, ...]:
        windows = [window for _, window in self.step_windows]
        hosts: list[tuple[HostCategory, ...]] = [()] * len(windows)
        if self.threads:
            hosts = host_budgets(next(iter(self.threads.values())), windows)
        devices = [self._device_budgets(device, [window.bounds for window in windows]) for device in self.devices]
        return tuple(
            TraceStep(number, window, host, tuple(budgets[at] for budgets in devices))
            for at, ((number, window), host) in enumerate(zip(self.step_windows, hosts, strict=True))
        )


def step_windows(events: Events) -> list[tuple[int, Window]]:
    """The ``ProfilerStep#N`` annotations of the host, in order of start."""
    is_step = where(events["name"], torch_names.PROFILER_STEP.match) & where(events["cat"], HOST_EVENTS.__contains__)
    rows, start_ns, dur_ns = np.flatnonzero(is_step), events["start_ns"], events["dur_ns"]
    rows = rows[np.argsort(start_ns[rows], kind="stable")]
    numbers = [int(name.rpartition("#")[2]) for name in events["name"][rows]]
    return list(zip(numbers, map(Window, start_ns[rows].tolist(), dur_ns[rows].tolist()), strict=True))
