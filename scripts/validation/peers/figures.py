"""Figures of a trace under a set of readings, computed by the plainest code: ns, counts, or by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from overhead_lens.traces.host import HOST_EVENTS, OPERATORS, RUNTIME
from scripts.validation.peers.readings import COMMUNICATION, COMPUTE, COPY, NEITHER, Read
from scripts.validation.peers.recording import chosen


class Between(NamedTuple):
    """What a figure is at least and at most."""

    least: float
    most: float


Figure = float | Mapping[str, float] | Between | None

_HTA_LAUNCHES = {
    "cudaLaunchKernel", "cudaLaunchKernelExC", "runFunction - job_prep_and_submit_for_execution", "cudaMemsetAsync",
    "cudaMemcpyAsync",
}  # fmt: skip
_HTA_QUEUE = _HTA_LAUNCHES | {
    "cuLaunchKernel", "hipLaunchKernel", "hipExtModuleLaunchKernel", "hipMemsetAsync", "hipMemcpyAsync",
    "hipMemcpyWithStream",
}  # fmt: skip
_HTA_WORK = {"kernel", "Kernel", "gpu_memset", "Memset", "gpu_memcpy", "Memcpy", "mtia_ccp_events"}
_TL_COLLECTIVE = re.compile(r"rccl|nccl|cross_device_reduce", re.IGNORECASE)


# ---------------------------------------------------------------- the device
def device_events(read: Read) -> Figure:
    """Events on the device."""
    return len(read.work)


def linked(read: Read) -> Figure:
    """Device events whose launch is in the trace."""
    work = read.work
    if "tl_flows" in read.readings:
        return len(work)
    known = work["launch"] >= 0
    if "hta_links" in read.readings:
        known &= (work["launch"] > 0) & (work["stream_number"] > 0)
    return int(known.sum())


def span(read: Read) -> Figure:
    """From the first start to the last end."""
    work = read.work
    if not len(work):
        return None
    starts, ends = _merged(work)
    return _ns(read, ends[-1] - starts[0])


def busy(read: Read) -> Figure:
    """Union of the device's events."""
    return _covered(read, read.work)


def idle(read: Read) -> Figure:
    """Span less busy."""
    whole, covered = span(read), busy(read)
    return None if whole is None else whole - covered  # type: ignore[operator]


def compute(read: Read) -> Figure:
    """Union of compute."""
    return _of_type(read, COMPUTE)


def communication(read: Read) -> Figure:
    """Union of communication."""
    return _of_type(read, COMMUNICATION)


def copies(read: Read) -> Figure:
    """Union of copies."""
    return _of_type(read, COPY)


def overlap(read: Read) -> Figure:
    """Time in which compute and communication run together."""
    if not len(read.work):
        return None
    if "hta_states" in read.readings:
        return _while_running(read, COMPUTE, COMMUNICATION)
    both = _of_kind(read, COMPUTE, COMMUNICATION)
    return compute(read) + communication(read) - _covered(read, both)  # type: ignore[operator]


def exposed_copies(read: Read) -> Figure:
    """Time in which copies alone run."""
    if not len(read.work):
        return None
    return busy(read) - _covered(read, _of_kind(read, COMPUTE, COMMUNICATION))  # type: ignore[operator]


def overlap_percent(read: Read) -> Figure:
    """Overlap as a share of communication."""
    whole = _covered(read, _of_kind(read, COMMUNICATION))
    if whole and "hta_states" in read.readings:
        return 100 * _while_running(read, COMMUNICATION, COMPUTE, kinds=(COMMUNICATION, COMPUTE)) / whole
    return 100 * overlap(read) / whole if whole else None  # type: ignore[operator]


def _of_type(read: Read, kind: str) -> Figure:
    if "hta_states" in read.readings and len(read.work):
        return _while_running(read, kind)
    return _covered(read, _of_kind(read, kind))


def _while_running(read: Read, *wanted: str, kinds: tuple[str, ...] = (COMPUTE, COMMUNICATION, COPY)) -> float:
    """Time in which all that is wanted runs, by a sum that each start adds a kind's bit to and each end takes it off."""
    times, changes = [], []
    for bit, kind in enumerate(kinds):
        starts, ends = _merged(_of_kind(read, kind))
        times += [starts, ends]
        changes += [np.full(len(starts), 1 << bit), np.full(len(ends), -(1 << bit))]
    time, change = np.concatenate(times), np.concatenate(changes)
    order = np.argsort(time, kind="stable")
    time, running = time[order], np.cumsum(change[order])[:-1]
    mask = sum(1 << bit for bit, kind in enumerate(kinds) if kind in wanted)
    runs = (running > 0) & (running & mask == mask)
    return _ns(read, np.diff(time)[runs].sum())


def _of_kind(read: Read, *kinds: str) -> pd.DataFrame:
    return chosen(read.work, read.work["kind"].isin(kinds))


def _covered(read: Read, events: pd.DataFrame) -> float | None:
    if not len(read.work):
        return None
    starts, ends = _merged(events)
    return _ns(read, (ends - starts).sum()) if len(starts) else 0


def _merged(events: pd.DataFrame) -> tuple[Any, Any]:
    """Starts and ends of the union; an event that ends before it starts is a piece of negative length, as HTA has it."""
    start, end = events["start"].to_numpy(), events["end"].to_numpy()
    order = np.argsort(start, kind="quicksort")
    start, end = start[order], end[order]
    if not len(start):
        return start, end
    reached = np.maximum.accumulate(end)
    begins = np.flatnonzero(np.concatenate(([True], start[1:] > reached[:-1])))
    return start[begins], np.maximum.reduceat(end, begins)


def _ns(read: Read, value: Any) -> float:
    """An amount of the recording's unit in ns."""
    return float(value) * read.unit_ns if isinstance(value, (float, np.floating)) else int(value) * read.unit_ns


# ---------------------------------------------------------------- idle time
def waits_for_host(read: Read) -> Figure:
    """Idle time before the launch of what ends it has returned."""
    return _idle_split(read, before=True)


def waits_for_device(read: Read) -> Figure:
    """Idle time after that."""
    return _idle_split(read, before=False)


def _idle_split(read: Read, *, before: bool) -> Figure:
    work = read.work
    if "each_stream" in read.readings:
        work = work[work["cat"].isin(_HTA_WORK)]
    if not len(work):
        return None
    hosts = read.events.drop_duplicates("row").sort_values("row")
    row, begins, ends = (hosts[column].to_numpy() for column in ("row", "start", "end"))
    total = 0
    parts = work.groupby("stream_number", sort=False) if "each_stream" in read.readings else [(0, work)]
    for _, part in parts:
        gap_start, gap_end, launch = _gaps(part, one_by_one="each_stream" in read.readings)
        at = np.minimum(np.searchsorted(row, launch), len(row) - 1)
        # Whose launch is unknown waits for nobody knows what, which is not the queue.
        is_known = row[at] == launch
        called, returned = (np.where(is_known, times[at], gap_end) for times in (begins, ends))
        if "whole_gap" in read.readings:
            waits = np.where(is_known & (called > gap_start), gap_end - gap_start, 0)
        else:
            waits = np.clip(returned, gap_start, gap_end) - gap_start
        total += (waits if before else gap_end - gap_start - waits).sum()
    return _ns(read, total)


def _gaps(work: pd.DataFrame, *, one_by_one: bool) -> tuple[Any, Any, Any]:
    """Start and end of each gap and the launch of the event that ends it."""
    start, end, launch = (work[column].to_numpy() for column in ("start", "end", "launch"))
    order = np.argsort(start, kind="quicksort" if one_by_one else "stable")
    start, end, launch = start[order], end[order], launch[order]
    reached = end if one_by_one else np.maximum.accumulate(end)
    after = np.arange(1, len(start)) if one_by_one else 1 + np.flatnonzero(start[1:] > reached[:-1])
    return reached[after - 1], start[after], launch[after]


# ---------------------------------------------------------------- launches
def launch_count(read: Read) -> Figure:
    """Launches with their device event."""
    latencies = _latencies(read)
    return 0 if latencies is None else len(latencies)


def launch_median(read: Read) -> Figure:
    """Median latency."""
    return nearest_rank(_latencies(read), 0.5)


def launch_p99(read: Read) -> Figure:
    """The latency's 99th percentile."""
    return nearest_rank(_latencies(read), 0.99)


def launch_max(read: Read) -> Figure:
    """The longest latency."""
    return nearest_rank(_latencies(read), 1.0)


def nearest_rank(values: Any, share: float) -> float | None:
    """Percentile by nearest rank; None for no value."""
    if values is None or not len(values):
        return None
    return float(np.sort(values)[max(0, int(np.ceil(share * len(values))) - 1)])


def _latencies(read: Read) -> Any:
    """Latency of each launch in ns, from the start of the call to the start of its first device event."""
    work, names = read.work, _HTA_LAUNCHES if "launch_names" in read.readings else None
    if not len(work) and "each_pair" not in read.readings:
        return None
    pairs = _pairs(read, names)
    called, returned, started = (pairs[column].to_numpy() for column in ("start_call", "end_call", "start_work"))
    latency = np.maximum(started - called, 0)
    if "after_return" in read.readings:
        latency = np.maximum(latency, returned - called)
    return latency * read.unit_ns


def queue_max(read: Read) -> Figure:
    """Most launches at one time that had been called and had not started."""
    work, names = read.work, _HTA_QUEUE if "queue_names" in read.readings else None
    if not len(work):
        return None
    pairs = _pairs(read, names)
    if not len(pairs):
        return None if names else 0
    parts = pairs.groupby("stream_work") if "each_stream" in read.readings else [(0, pairs)]
    depths = [_depth(part) for _, part in parts]
    least, most = (max(depth[at] for depth in depths) for at in (0, 1))
    return Between(least, most) if "any_order" in read.readings else least


def _depth(pairs: pd.DataFrame) -> tuple[int, int]:
    """The longest queue, where of what happens at one time the starts come first and where the calls do."""
    called, started = pairs["start_call"].to_numpy(), pairs["start_work"].to_numpy()
    change = np.repeat([1, -1], len(pairs))
    times = np.concatenate((np.minimum(called, started), started))
    least, most = (int(np.cumsum(change[np.lexsort((sign * change, times))]).max()) for sign in (1, -1))
    return least, most


def _pairs(read: Read, names: set[str] | None) -> pd.DataFrame:
    """Calls with what they launched: ``start_call``, ``end_call``, ``start_work``, ``stream_work``."""
    events, work = read.events, read.work
    keys = set(events.loc[events["name"].isin(names), "key"]) if names is not None else None
    renamed = {"start": "start_work", "stream_number": "stream_work"}
    columns = ["start", "stream_number"]
    if "each_pair" in read.readings:
        hosts, work = events[~events["device"].to_numpy(dtype=bool) & (events["key"] >= 0)], work[work["key"] >= 0]
        if names is not None and "queue_names" in read.readings:
            hosts = hosts[hosts["name"].isin(names)]
        elif keys is not None:
            hosts, work = hosts[hosts["key"].isin(keys)], work[work["key"].isin(keys)]
        calls = hosts[["key", "start", "end"]].rename(columns={"start": "start_call", "end": "end_call"})
        return _joined(calls, work[["key", *columns]].rename(columns=renamed), "key")
    calls = events[events["cat"].isin(RUNTIME)]
    if names is not None:
        calls = calls[calls["key"].isin(keys)]
    calls = calls[["row", "start", "end"]].rename(columns={"row": "launch", "start": "start_call", "end": "end_call"})
    first = work.sort_values("start", kind="stable").drop_duplicates("launch")
    return _joined(calls, first[["launch", *columns]].rename(columns=renamed), "launch")


def _joined(calls: pd.DataFrame, work: pd.DataFrame, on: str) -> pd.DataFrame:
    pairs: pd.DataFrame = calls.merge(work, on=on, how="inner")
    return pairs


# ---------------------------------------------------------------- by name
def operator_count(read: Read) -> Figure:
    """Calls of each operator."""
    return _by_name(_operators(read), "count", 1)


def operator_total(read: Read) -> Figure:
    """Summed duration of each operator."""
    return _by_name(_operators(read), "sum", read.unit_ns)


def kernel_count(read: Read) -> Figure:
    """Runs of each kernel."""
    return _by_name(_kernels(read), "count", 1)


def kernel_sum(read: Read) -> Figure:
    """Summed duration of each kernel."""
    return _by_name(_kernels(read), "sum", read.unit_ns)


def kernel_mean(read: Read) -> Figure:
    """Mean duration of each kernel."""
    return _by_name(_kernels(read), "mean", read.unit_ns)


def collective_count(read: Read) -> Figure:
    """Communication kernels."""
    return len(_collectives(read))


def collective_sum(read: Read) -> Figure:
    """Their summed duration."""
    events = _collectives(read)
    return _ns(read, (events["end"] - events["start"]).sum()) if len(events) else 0


def _operators(read: Read) -> pd.DataFrame:
    return chosen(read.events, read.events["cat"].isin(OPERATORS))


def _kernels(read: Read) -> pd.DataFrame:
    if "tl_kernels" in read.readings:
        return chosen(read.work, read.work["cat"] == "kernel")
    return chosen(read.work, read.work["kind"] != NEITHER) if "hta_types" in read.readings else read.work


def _collectives(read: Read) -> pd.DataFrame:
    if "tl_kernels" not in read.readings:
        return _of_kind(read, COMMUNICATION)
    kernels = read.work[read.work["cat"] == "kernel"]
    has_link = kernels["correlation"].notna() | kernels["external"].notna()
    return chosen(
        kernels, has_link & np.array([bool(_TL_COLLECTIVE.search(name)) for name in kernels["name"]], dtype=bool)
    )


def _by_name(events: pd.DataFrame, what: str, unit_ns: int) -> Mapping[str, float]:
    duration = (events["end"] - events["start"]).groupby(events["name"].astype(object).to_numpy())
    return {str(name): float(value) * unit_ns for name, value in getattr(duration, what)().items()}


# ---------------------------------------------------------------- the trace
def steps(read: Read) -> Figure:
    """Steps."""
    return len(read.step_numbers)


def duration(read: Read) -> Figure:
    """Length of the trace."""
    events = read.events
    if "last_start" in read.readings:
        return _ns(read, events["start"].max() - events["start"].min())
    chosen = events[events["cat"].isin(HOST_EVENTS) | events["device"].to_numpy(dtype=bool)]
    return _ns(read, chosen["end"].max() - chosen["start"].min()) if len(chosen) else 0
