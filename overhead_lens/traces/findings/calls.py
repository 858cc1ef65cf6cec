"""Findings about calls that could be fewer: of fusible kernels, to the driver's allocator, pageable copies, data loading."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from overhead_lens.stats.values import Ints
from overhead_lens.traces.columns import passing
from overhead_lens.traces.device import DeviceTimeline
from overhead_lens.traces.findings.model import Evidence, Finding
from overhead_lens.traces.findings.recorded import MOST_EVIDENCE, Recorded, evidence
from overhead_lens.traces.intervals import union

_ELEMENTWISE = re.compile(r"elementwise_kernel|triton_poi_|CatArrayBatchedCopy")
_DRIVER_ALLOCATIONS = re.compile(r"(cuda|hip)(Malloc|Free|MallocManaged|HostAlloc|FreeHost|HostMalloc|HostFree)$")
_PAGEABLE = re.compile(r"Memcpy .*Pageable")
_LOADING = re.compile(r"enumerate\(DataLoader\)#")
_OPERATOR_SHARE = 0.1


def fusible_kernels(recorded: Recorded) -> Iterator[Finding]:
    """Launch time of elementwise kernels that follow one another on a stream, but for the longest launch of each run.

    Whether they can be fused depends on the data between them, which a trace does not hold: so this is a bound.
    """
    name = recorded.events["name"].cat
    elementwise = passing(name.categories, lambda text: _ELEMENTWISE.search(text) is not None)
    codes = name.codes.to_numpy()
    for device in recorded.devices:
        order, run = _runs(recorded, device, elementwise[codes[device.linked.rows]])
        if not len(order):
            continue
        rows, launch = device.linked.rows[order], device.linked.launch[order]
        calls_ns = recorded.events["dur_ns"].to_numpy()[launch]
        first = np.flatnonzero(np.append(True, run[1:] != run[:-1]))
        bound = int(calls_ns.sum() - np.maximum.reduceat(calls_ns, first).sum())
        if bound > 0:
            yield Finding(
                "fusible_kernels",
                "launch",
                str(device.number),
                "elementwise kernels follow one another on a stream, each with a launch of its own",
                bound,
                evidence(list(name.categories), codes[rows], calls_ns),
                recorded.line_of_row(int(launch[first[np.argmax(np.diff(np.append(first, len(run))))]])),
                "torch.compile fuses them into one kernel",
            )


def _runs(recorded: Recorded, device: DeviceTimeline, chosen: Ints) -> tuple[Ints, Ints]:
    """Device events in runs of two and more chosen ones on a stream, launched one by one: their order and run."""
    stream = recorded.events["stream"].to_numpy()[device.linked.rows]
    order = np.lexsort((device.start_ns, stream))
    able = (chosen & (device.linked.launch >= 0) & ~device.linked.is_graph)[order]
    breaks = ~able | np.append(True, stream[order][1:] != stream[order][:-1]) | np.append(True, ~able[:-1])
    run = np.cumsum(breaks)
    kept = able & (np.bincount(run, weights=able)[run] > 1)
    return order[kept], run[kept]


def driver_allocations(recorded: Recorded) -> Iterator[Finding]:
    """Time of the calls that get memory from the driver or give it back, most of which wait for the device."""
    calls = recorded.calls(passing(recorded.host.names, lambda text: _DRIVER_ALLOCATIONS.match(text) is not None))
    yield from _of_calls(
        recorded,
        calls,
        "driver_allocations",
        "allocation",
        "memory is got from the driver, or given back to it, within the recording",
        "warm up before measuring; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; no empty_cache() within a step",
    )


def data_loading(recorded: Recorded) -> Iterator[Finding]:
    """Time in which a thread waited for the next batch of a DataLoader, or made it itself."""
    calls = recorded.calls(passing(recorded.host.names, lambda text: _LOADING.match(text) is not None))
    yield from _of_calls(
        recorded,
        calls,
        "data_loading",
        "wait",
        "the loop takes its batches from a DataLoader that is not ahead of it",
        "more workers, persistent_workers=True, pin_memory=True, a larger prefetch_factor",
    )


def _of_calls(
    recorded: Recorded, calls: Ints, name: str, category: str, summary: str, remedy: str
) -> Iterator[Finding]:
    """What calls take, those inside others counted once."""
    if not len(calls):
        return
    host = recorded.host
    bound = sum(
        union(host.start_ns[mine], host.dur_ns[mine]).total_ns
        for mine in (calls[host.thread[calls] == thread] for thread in np.unique(host.thread[calls]))
    )
    longest = int(calls[np.argmax(host.dur_ns[calls])])
    named = evidence(host.names, host.name[calls], host.dur_ns[calls])
    yield Finding(name, category, "", summary, bound, named, recorded.line_around(longest), remedy)


def pageable_copies(recorded: Recorded) -> Iterator[Finding]:
    """Time of copies between a device and memory of the host that is not pinned: the host waits for them."""
    name = recorded.events["name"].cat
    pageable = passing(name.categories, lambda text: _PAGEABLE.match(text) is not None)
    codes = name.codes.to_numpy()
    for device in recorded.devices:
        at = np.flatnonzero(pageable[codes[device.linked.rows]])
        rows = device.linked.rows[at]
        dur_ns = recorded.events["dur_ns"].to_numpy()[rows]
        if dur_ns.sum():
            longest = int(at[np.argmax(dur_ns)])
            yield Finding(
                "pageable_copies",
                "copy",
                str(device.number),
                "copies from or to memory that is not pinned",
                int(dur_ns.sum()),
                evidence(list(name.categories), codes[rows], dur_ns),
                recorded.line_of_row(int(device.linked.launch[longest])),
                "pin the memory (DataLoader(pin_memory=True), tensor.pin_memory()) and copy with non_blocking=True",
            )


def dispatcher_of_small_operators(recorded: Recorded) -> Iterator[Finding]:
    """Without a device: what the busiest thread spends in the dispatcher, from a tenth of the window on."""
    analysis = recorded.analysis
    if analysis.devices or not analysis.threads:
        return
    ns = next(category.ns for category in analysis.host if category.category == "dispatcher")
    if ns < _OPERATOR_SHARE * analysis.window.wall_ns or not ns:
        return
    led = [cost for cost in analysis.operators if cost.category == "dispatcher"][:MOST_EVIDENCE]
    yield Finding(
        "many_small_operators",
        "dispatcher",
        "",
        "much of the time goes into getting from operators to their kernels",
        ns,
        tuple(Evidence(cost.name, cost.count, cost.self_ns) for cost in led),
        "",
        "torch.compile, fewer and larger operators, torch.inference_mode() where no gradient is needed",
    )
