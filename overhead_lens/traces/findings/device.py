"""Findings about a device: work that bounds it, and idle time caused by its host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from overhead_lens.stats.values import Bools, Ints
from overhead_lens.taxonomy.categories import BLAME
from overhead_lens.taxonomy.rules import Attribution
from overhead_lens.traces.columns import where
from overhead_lens.traces.device import COMMUNICATION, COMPUTE, COPY, DeviceTimeline
from overhead_lens.traces.findings.host import launching, long_intervals
from overhead_lens.traces.findings.recorded import Located, Recorded, Wording, idle_by
from overhead_lens.traces.intervals import Union, both, joined, union, without
from overhead_lens.traces.launch_figures.analysis import NOT_THE_HOST
from overhead_lens.traces.timeline import sum_by

_ELEMENTWISE = re.compile(r"elementwise_kernel|CatArrayBatchedCopy")
_WAITS = Attribution("wait", "device")
_BOUND_SHARE = 0.5
COMPUTES = "device_bound"
_OF_HOST = [name for name in BLAME if name not in NOT_THE_HOST]

_COMMUNICATES = Wording(
    "exposed_communication",
    "communication",
    "the device only communicates, and what comes next waits for it",
    "overlap it with compute (buckets of DDP, prefetching of FSDP), fewer and larger or smaller messages; analyze all ranks "
    "together to see whether one comes late",
)
_COPIES = Wording(
    "exposed_copies",
    "copy",
    "the device only copies, and what comes next waits for it",
    "copy on a stream of its own while the step before computes; keep on the device what is used again; within a device, fewer "
    "clone() and contiguous()",
)
_COMPUTES = Wording(
    COMPUTES,
    "compute",
    "the device computes, and the host is ahead of it",
    "nothing on the host saves this: faster, fewer or lower-precision kernels",
)
_HOST = Wording(
    "host_bound",
    "launch",
    "the device waits for the host, which launches its work piece by piece",
    "fewer launches per step: torch.compile, larger batches, CUDA graphs",
)
_GRAPHS = Wording(
    "graphs_could_close_idle",
    "launch",
    "the device idles while the host prepares launches one by one",
    'capture the step as a CUDA graph: torch.compile(mode="reduce-overhead") or torch.cuda.graph',
)
_STALLED = Wording(
    "stalled_queue",
    "queue",
    "launched work does not begin, though the device runs nothing else that was recorded",
    "start recording earlier, and record every process that uses the device: what holds it is not in the trace; also look for "
    "streams that wait for each other and for graph nodes without events",
)
_FUSIBLE = Wording(
    "fusible_kernels",
    "launch",
    "elementwise kernels follow one another on a stream, each with a launch of its own",
    "torch.compile fuses them into one kernel",
)


def device_causes(recorded: Recorded) -> Iterator[Located]:
    """Time in which a device does one kind of work alone while more is launched, or its host waits for it.

    Without this work, whatever waits for it could begin that much earlier. If nothing waits, the host bounds the time.
    """
    waits = recorded.spent(_WAITS.__eq__)
    for device in recorded.devices:
        compute, communication, copy = (device.by_kind[kind] for kind in (COMPUTE, COMMUNICATION, COPY))
        for wording, kind, alone in (
            (_COMMUNICATES, COMMUNICATION, without(communication, joined([compute, copy]))),
            (_COPIES, COPY, without(copy, joined([compute, communication]))),
            (_COMPUTES, COMPUTE, compute),
        ):
            if kind == COMPUTE and compute.total_ns < _BOUND_SHARE * recorded.wall_ns:
                continue
            when = both(alone, joined([waits, _queued(recorded, device, kind)]))
            work = np.flatnonzero(device.kind == kind)
            ends = device.start_ns[work] + recorded.events["dur_ns"][device.linked.rows[work]]
            ns = when.before(ends) - when.before(device.start_ns[work])
            counts = np.flatnonzero(ns)
            if len(counts):
                named = recorded.of_work(device, work[counts], ns[counts])
                place = recorded.place_of_row(int(device.linked.launch[work[np.argmax(ns)]]))
                yield from recorded.located(wording, when.total_ns, when, named, place, str(device.number))


def _queued(recorded: Recorded, device: DeviceTimeline, kind: int) -> Union:
    """Intervals with launched work that had not begun; for communication or copies, only other work counts.

    Work without a launch in the trace may have been launched long before.
    """
    waiting = np.flatnonzero((device.kind != kind) | (kind == COMPUTE))
    launch = device.linked.launch[waiting]
    called = np.where(launch >= 0, recorded.events["start_ns"][launch], recorded.analysis.window.start_ns)
    return union(called, device.start_ns[waiting] - called)


def stalled_queues(recorded: Recorded, known: Union) -> Iterator[Located]:
    """Idle time of a device with work launched that does not begin, without what other findings name (``known``)."""
    for device, stalled in zip(recorded.devices, recorded.stalled, strict=True):
        when = without(stalled, known)
        if when.total_ns:
            first = np.searchsorted(device.start_ns, when.end_ns, "left")
            first, number = np.unique(np.minimum(first, len(device.start_ns) - 1), return_inverse=True)
            ns = sum_by(number, when.end_ns - when.start_ns, len(first))
            named = recorded.of_work(device, first, ns)
            place = recorded.place_of_row(int(device.linked.launch[first[np.argmax(ns)]]))
            yield from recorded.located(_STALLED, when.total_ns, when, named, place, str(device.number))


def host_bound(recorded: Recorded, known: Union) -> Iterator[Located]:
    """Idle time of a device between its first and last work that its host is blamed for, where that is most of the idle time.

    Intervals in which a host does something else (``known``, and long ones without a launch) do not count. Graphs close the part
    of the same time that ends with work launched by itself: a graph launches all of its work at once.
    """
    for device in recorded.devices:
        number = str(device.number)
        budget = next(each for each in recorded.analysis.devices if each.device == number)
        when = without(idle_by(device, _OF_HOST), joined([known, long_intervals(recorded, device, known)]))
        if not when.total_ns:
            continue
        blamed = {name: both(when, idle_by(device, (name,))).total_ns for name in _OF_HOST}
        wording = [replace(each, category=max(_OF_HOST, key=blamed.__getitem__)) for each in (_HOST, _GRAPHS)]
        gaps = (device.busy.end_ns[:-1], device.busy.start_ns[1:])
        following = np.searchsorted(device.start_ns, gaps[1], "left")
        alone = (device.linked.launch[following] >= 0) & ~device.linked.is_graph[following]
        # The place is that of what ends the gap with the most of this time.
        spent_ns = when.before(gaps[1]) - when.before(gaps[0])
        launch = device.linked.launch[following[np.argmax(spent_ns)]] if len(spent_ns) else -1
        place = recorded.place_of_row(int(launch))
        if when.total_ns > budget.idle_ns / 2:
            named = recorded.frames(when, launching(recorded, device))
            yield from recorded.located(wording[0], when.total_ns, when, named, place, number)
        closing = both(when, union(gaps[0][alone], (gaps[1] - gaps[0])[alone]))
        named = recorded.frames(closing, launching(recorded, device))
        yield from recorded.located(wording[1], closing.total_ns, closing, named, place, number)


def fusible_kernels(recorded: Recorded) -> Iterator[Located]:
    """Launch time of consecutive elementwise kernels on a stream, except the longest launch of each run.

    Whether they can be fused depends on the data between them, which a trace does not hold: so this is a bound.
    """
    elementwise = where(recorded.events["name"], _ELEMENTWISE.search)
    starts_ns, lengths_ns = recorded.events["start_ns"], recorded.events["dur_ns"]
    for device in recorded.devices:
        order, run = _runs(recorded, device, elementwise[device.linked.rows])
        if not len(order):
            continue
        launch = device.linked.launch[order]
        calls_ns = lengths_ns[launch]
        first = np.flatnonzero(np.append(True, run[1:] != run[:-1]))
        when = union(starts_ns[launch], calls_ns)
        bound_ns = min(int(calls_ns.sum() - np.maximum.reduceat(calls_ns, first).sum()), recorded.at_most(when))
        longest = int(launch[first[np.argmax(np.diff(np.append(first, len(run))))]])
        named = recorded.of_work(device, order, calls_ns)
        yield from recorded.located(_FUSIBLE, bound_ns, when, named, recorded.place_of_row(longest), str(device.number))


def _runs(recorded: Recorded, device: DeviceTimeline, chosen: Bools) -> tuple[Ints, Ints]:
    """Device events in runs of two and more chosen ones on a stream, launched one by one: their order and run."""
    stream = recorded.events["stream"][device.linked.rows]
    order = np.lexsort((device.start_ns, stream))
    able = (chosen & (device.linked.launch >= 0) & ~device.linked.is_graph)[order]
    breaks = ~able | np.append(True, stream[order][1:] != stream[order][:-1]) | np.append(True, ~able[:-1])
    run = np.cumsum(breaks)
    in_runs = able & (np.bincount(run, weights=able)[run] > 1)
    return order[in_runs], run[in_runs]
