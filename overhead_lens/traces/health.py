"""Defects of a recording, and notes for readers of its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from overhead_lens.readers.kineto.event import DEVICE_CATEGORIES
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.stats.values import Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.traces.columns import where
from overhead_lens.traces.host import HOST_EVENTS, PYTHON, ThreadTimeline
from overhead_lens.traces.host_budget import ThreadPieces
from overhead_lens.traces.intervals import union
from overhead_lens.traces.launches import Linked, calls_named, runtime_rows
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.traces.modules.model import MARKS, ModuleBudgets
from overhead_lens.units import NS_PER_MS, format_ns

_OF_THE_PROFILER = frozenset({"Trace", torch_names.PROFILER_OVERHEAD, torch_names.PROFILER_RANGE})
_KNOWN = HOST_EVENTS | DEVICE_CATEGORIES | _OF_THE_PROFILER | {"gpu_user_annotation", "cuda_sync", "cuda_event"}
WITH_STACKS = "recorded with Python stacks (with_stack): host times are inflated, short calls up to three-fold"
_NO_DEVICE = "no work of a device was recorded, though {}operators that wait for it look like ones that compute"
_WITHOUT_DEVICE = _NO_DEVICE.format("the file names one: if the program uses it, ")
_LOST_DEVICE = _NO_DEVICE.format("its driver was called: ")
# The profiler synchronizes a device that it records, whether or not the program uses it.
_PROFILER_CALLS = {"cudaDeviceSynchronize", "hipDeviceSynchronize"}
HIDDEN_KERNELS = (
    "compiled code on the CPU is unattributed where no event tells its kernels from its Python:"
    " with_stack=True shows the kernels, but not those of cpp_wrapper"
)
_KERNEL = HOST_CATEGORIES.index("kernel")
_WARM_UP = 2.0
_FEW_STEPS = 3
_SILENT_MS, _SILENT_SHARE = 10, 0.1
_SILENCE = (
    "the busiest thread recorded nothing for {} in gaps of over {} ms: they count as python, but it may have slept"
)


def trace_issues(
    trace: Trace, analysis: TraceAnalysis, timelines: Sequence[ThreadTimeline], linked: Linked, lost: Ints
) -> Mapping[str, int]:
    """Events that were dropped, repaired or look wrong, by reason; no zeros. Adds to those of the reader.

    - ``partial_overlap``: host events that end after the event they began in;
    - ``unlinked_device_event``: device events whose launch is not in the trace;
    - ``kernel_before_launch``: launches whose first device event starts before them, by clock skew;
    - ``launch_without_device_event``: kernel launches without a device event (lost, or after the recording's end);
    - ``overlap_in_stream``: device events that start before the one before them in their stream ended;
    - ``profiler_overhead``: work of the profiler itself;
    - ``driver_overhead``: times that the driver loaded or compiled code, or waited for room in its queue;
    - ``no_category``: complete events without a category, which torch.profiler always gives;
    - ``other_category``: complete events of categories that are neither host nor device work.
    """
    cat = trace.columns["cat"]
    counts = dict(
        zip(cat.categories.tolist(), np.bincount(cat.codes, minlength=len(cat.categories)).tolist(), strict=True)
    )
    overhead = where(cat, torch_names.PROFILER_OVERHEAD.__eq__)
    by_driver = overhead & where(trace.columns["name"], torch_names.DRIVER_OVERHEAD.__contains__)
    issues = {
        **trace.issues,
        "partial_overlap": sum(timeline.crossing_count for timeline in timelines),
        "unlinked_device_event": int((linked.launch < 0).sum()),
        "kernel_before_launch": sum(device.launch.repaired for device in analysis.devices),
        "launch_without_device_event": len(lost),
        "overlap_in_stream": _stream_overlaps(trace, linked),
        "profiler_overhead": int((overhead & ~by_driver).sum()),
        "driver_overhead": int(by_driver.sum()),
        "no_category": counts.get("", 0),
        "other_category": sum(count for name, count in counts.items() if name not in _KNOWN),
    }
    return {reason: count for reason, count in issues.items() if count}


_ESTIMATE_BY_VIEWS = (
    "operators' time is divided between dispatcher and kernel by an estimate: "
    "dispatch takes five times what a view operator of this trace takes (nearly all operators: one to 14 times)"
)
_ESTIMATE_BY_CALLS = (
    "operators' time is divided between dispatcher and kernel by an estimate: "
    "dispatch takes 2.5 times what an operator of this trace takes that only calls others (nearly all: 0.5 to 7 times)"
)


def trace_notes(trace: Trace, analysis: TraceAnalysis, threads: Sequence[ThreadPieces], lost: Ints) -> tuple[str, ...]:
    """Sentences that a reader of the numbers must know; ``lost`` are rows of launches without a device event."""
    notes, floor = [], threads[0].floor if threads else None
    has_stacks = bool(where(trace.columns["cat"], PYTHON.__contains__).any())
    if trace.metadata.get("with_stack") or has_stacks:
        notes.append(WITH_STACKS)
    if trace.metadata.get("profile_memory"):
        notes.append(
            "recorded with memory events (profile_memory): every allocation took longer than it does unprofiled"
        )
    if analysis.host and analysis.host[_KERNEL].ns and floor is not None:
        notes.append(_ESTIMATE_BY_VIEWS if floor.of_views else _ESTIMATE_BY_CALLS)
    if analysis.host and floor is None and any(cost.category == "dispatcher" for cost in analysis.operators):
        notes.append("no view operator shows what dispatch costs here: kernels on the CPU are counted with dispatcher")
    if analysis.operators and not analysis.devices:
        notes += _without_device(trace)
    if any(thread.timeline.hides_kernels for thread in threads):
        notes.append(HIDDEN_KERNELS)
    if threads and not has_stacks:
        notes += _silence(threads[0], analysis.window.wall_ns)
    notes += _warm_up(analysis)
    if _ends_unsynchronized(trace, lost):
        notes.append(
            "the recording ends with launches that have no device event: synchronize the device before the profiler stops"
        )
    notes += module_notes(analysis.modules, has_operators=bool(analysis.operators), has_stacks=has_stacks)
    return tuple(notes)


def _without_device(trace: Trace) -> list[str]:
    calls = runtime_rows(trace.columns)
    if len(calls):
        return [] if where(trace.columns["name"], _PROFILER_CALLS.__contains__)[calls].all() else [_LOST_DEVICE]
    return [_WITHOUT_DEVICE] if trace.device_properties else []


def _silence(busiest: ThreadPieces, wall_ns: int) -> list[str]:
    """What counts as Python because no event is open, where that lasts too long to be sure."""
    silent = np.append(busiest.timeline.host.annotation[busiest.timeline.events], True)[busiest.owner]
    silent &= busiest.attributed(lambda attribution: attribution.category == "python")
    ns = union(busiest.start_ns[silent], busiest.dur_ns[silent]).lasting(_SILENT_MS * NS_PER_MS).total_ns
    return [_SILENCE.format(format_ns(ns), _SILENT_MS)] if ns > _SILENT_SHARE * wall_ns else []


def _warm_up(analysis: TraceAnalysis) -> list[str]:
    walls = [step.window.wall_ns for step in analysis.steps]
    usual_ns = float(np.median(walls[1:])) if len(walls) >= _FEW_STEPS else 0.0
    if not usual_ns or walls[0] <= _WARM_UP * usual_ns:
        return []
    ratio = walls[0] / usual_ns
    return [f"step {analysis.steps[0].step} takes {ratio:.1f}x the median of the others: it looks like warm-up"]


def _launch_rows(trace: Trace) -> Ints:
    """Rows of runtime and driver calls that launch a kernel or a graph."""
    return calls_named(trace.columns, "LaunchKernel", "GraphLaunch")


def lost_launches(trace: Trace, linked: Linked) -> Ints:
    """Rows of launches that have no device event; a trace without any device event recorded no device at all.

    A driver call inside the runtime call that has the event shares its correlation.
    """
    launches, correlation = _launch_rows(trace), trace.columns["correlation"]
    with_event = correlation[linked.launch[linked.launch >= 0]]
    has_event = np.isin(launches, linked.launch) | np.isin(correlation[launches], with_event[with_event >= 0])
    return launches[~has_event] if len(linked.rows) else launches[:0]


def _ends_unsynchronized(trace: Trace, lost: Ints) -> bool:
    start_ns = trace.columns["start_ns"]
    return bool(len(lost) and start_ns[lost].max() == start_ns[_launch_rows(trace)].max())


def _stream_overlaps(trace: Trace, linked: Linked) -> int:
    events, rows = trace.columns, linked.rows
    start_ns, end_ns = events["start_ns"][rows], (events["start_ns"] + events["dur_ns"])[rows]
    device, stream = events["device"][rows], events["stream"][rows]
    order = np.lexsort((start_ns, stream, device))
    same = (device[order][1:] == device[order][:-1]) & (stream[order][1:] == stream[order][:-1])
    return int((same & (start_ns[order][1:] < end_ns[order][:-1])).sum())


def module_notes(modules: ModuleBudgets | None, *, has_operators: bool, has_stacks: bool) -> list[str]:
    """Sentences that a reader of the budget per module must know; stacks show every call of a module."""
    if modules is None:
        unknown = "no module is named in the trace, so there is no budget per module: record with with_stack=True"
        uncalled = "no nn.Module is called in the trace, so there is no budget per module"
        return [uncalled if has_stacks else unknown] if has_operators else []
    notes = []
    if modules.known_from == MARKS:
        notes.append(
            "modules are those that annotations of the program mark, one instance each: with_stack=True records all of them"
        )
    if modules.unjoined_nodes:
        notes.append(
            f"{modules.unjoined_nodes:,} of {modules.backward_nodes:,} nodes of the backward pass have no forward operator in "
            "the trace: they count as what is open around them, mostly as outside of any module"
        )
    return notes
