"""How the peers read a trace where they read it otherwise: every reading is a change of the events or of a definition.

A figure is computed under a set of readings; under none it is the package's own definition. What a difference comes from is
proven by a set under which the figure is the peer's, and of which no reading can be left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd

from overhead_lens.readers.kineto.event import COPY_CATEGORIES, DEVICE_CATEGORIES
from overhead_lens.traces.device import KINDS, device_kinds
from overhead_lens.traces.host import RUNTIME
from scripts.validation.peers.recording import ABSENT, Recording, chosen

COMPUTE, COMMUNICATION, COPY, NEITHER = (*KINDS, "other")

REASONS = {
    "whole_us": "HTA rounds starts up and ends down to whole µs, so that every event is shorter, some of them below zero.",
    "stream_argument": "HTA takes what has an integer stream argument for device work: also host calls and synchronizations that "
    "carry one, and MTIA's control events, never a kernel without one.",
    "last_step": "HTA drops the last profiler step, and all device work that no earlier call launched.",
    "twice": "HTA counts a device event once for each host event of its correlation.",
    "hta_types": "HTA tells types by name: nccl...Kernel is communication, Memcpy, Memset and dma are memory, and *Sync is none.",
    "hta_states": "HTA adds up what lies between starts and ends in order of time: an event that rounding ends before it starts "
    "takes its type off what runs until then.",
    "hta_links": "HTA links by correlation alone, whatever the host event is, and not what is on stream 0.",
    "each_stream": "HTA takes each stream by itself and adds up: what one stream does while another waits is idle time too, and "
    "what overlaps within a stream is taken off.",
    "whole_gap": "HTA gives the whole gap to the host where the launch begins in it; here what follows the launch is queue.",
    "launch_names": "HTA knows cudaLaunchKernel, cudaLaunchKernelExC, cudaMemcpyAsync, cudaMemsetAsync and MTIA's by name, and "
    "no other launch: no driver's, no graph's, none of HIP.",
    "queue_names": "HTA's queue knows eleven launch calls by name, and no graph launch.",
    "each_pair": "HTA pairs every host event with every device event of its correlation, here a launch counts once.",
    "after_return": "HTA counts from the return of the call and at least 0: a kernel that starts sooner seems later.",
    "any_order": "HTA sorts equal times in no particular order: a launch may come before or after the kernel that starts then.",
    "last_start": "HTA's trace is from the first to the last start of any event, here to the last end of host or device work.",
    "float64": "TraceLens adds up float64 µs, which hold quarters of a µs where a trace counts from 1970, 1/2048 of one from "
    "a later base.",
    "tl_categories": "TraceLens knows kernel, gpu_memcpy and gpu_memset, not the older Kernel, Memcpy and Memset.",
    "tl_flows": "TraceLens leaves out device work whose arrow from the host is not in the trace: one arrow is one device event.",
    "tl_types": "TraceLens counts memory sets as compute, and ROCm's copy kernels as copies; rccl, nccl and cross_device_reduce "
    "are communication.",
    "tl_kernels": "TraceLens's kernels are those of the category kernel: no copies, no memory sets.",
}
"""What each reading is, in a sentence."""

_KERNELS = {"kernel", "gpu_memcpy", "gpu_memset"}
_HTA_COMMUNICATION = re.compile(r"^nccl.*Kernel")
_HTA_MEMORY = re.compile(r"(^Memcpy)|(^Memset)|(^dma)")
_HTA_NO_COMPUTE = re.compile(r"(^nccl.*Kernel)|(.*(Memcpy)|(Memset))|(.*Sync)")
_TL_COMMUNICATION = re.compile(r"rccl|nccl|cross_device_reduce", re.IGNORECASE)
_TL_COPY = re.compile(
    r"^(MEMORY_COPY_(HOST_TO_DEVICE|DEVICE_TO_HOST|DEVICE_TO_DEVICE)|__amd_rocclr_copyBuffer(Rect)?(Aligned)?)(\.kd)?$"
)
_TL_SET = re.compile(r"^__amd_rocclr_fillBuffer(Aligned)?(\.kd)?$")
_COLUMNS = ["row", "name", "cat", "start", "end", "stream_number", "key", "external_key", "correlation", "external"]
_SYNCHRONIZATIONS = ("Event Sync", "Context Sync")
_STEP = "ProfilerStep"


class Read:
    """A recording under a set of readings.

    Attributes:
        readings: The set.
        events: Those of the recording that remain, with ``device`` (bool), ``kind`` and ``launch`` (``row`` of the launching
            call, -1 for none) added.
        unit_ns: What their times count in.
    """

    def __init__(self, recording: Recording, readings: Collection[str]) -> None:
        self.readings = frozenset(readings)
        timed = _timed(recording, self.readings)
        self.unit_ns = timed.unit_ns
        events = timed.events[_COLUMNS].copy()
        events["device"] = self._on_device(events)
        events["kind"] = self._kinds(events)
        events["launch"] = _hta_launches(events) if "hta_links" in self.readings else _launches(events)
        if "tl_flows" in self.readings:
            events = events[~events["device"].to_numpy(dtype=bool) | _tl_linked(recording)]
        self.step_numbers = _step_numbers(events)
        if "last_step" in self.readings:
            events = _before_last_step(events, twice="twice" in self.readings)
            self.step_numbers = _step_numbers(events)
        self.events = events

    @cached_property
    def work(self) -> pd.DataFrame:
        """The device's events."""
        return chosen(self.events, self.events["device"])

    def _on_device(self, events: pd.DataFrame) -> Any:
        if "stream_argument" in self.readings:
            return events["stream_number"].to_numpy() != ABSENT
        return events["cat"].isin(_KERNELS if "tl_categories" in self.readings else DEVICE_CATEGORIES).to_numpy()

    def _kinds(self, events: pd.DataFrame) -> Any:
        kinds = np.full(len(events), NEITHER, dtype=object)
        at = np.flatnonzero(events["device"].to_numpy(dtype=bool))
        pairs = events[["name", "cat"]].iloc[at].astype(object)
        distinct = pairs.drop_duplicates()
        if "hta_types" in self.readings:
            told = [_hta_kind(name) for name in distinct["name"]]
        elif "tl_types" in self.readings:
            told = [_tl_kind(name, cat) for name, cat in distinct.itertuples(index=False)]
        else:
            frame = distinct.assign(device=0).astype({"name": "category", "cat": "category"})
            told = np.array(KINDS, dtype=object)[device_kinds(frame)].tolist()
        kind_of = dict(zip(distinct.itertuples(index=False, name=None), told, strict=True))
        kinds[at] = [kind_of[pair] for pair in pairs.itertuples(index=False, name=None)]
        return kinds


def _timed(recording: Recording, readings: Collection[str]) -> Recording:
    """The recording with its times as a peer has them."""
    events = recording.events
    start, end = events["ts_us"].to_numpy(), (events["ts_us"] + events["dur_us"]).to_numpy()
    if "whole_us" in readings and recording.has_decimals:
        whole = {"start": np.ceil(start).astype(np.int64), "end": np.floor(end).astype(np.int64)}
        return replace(recording, events=events.assign(**whole), unit_ns=1_000)
    if "float64" in readings:
        return replace(recording, events=events.assign(start=start, end=end), unit_ns=1_000)
    return recording


def _hta_kind(name: str) -> str:
    if _HTA_COMMUNICATION.match(name):
        return COMMUNICATION
    if _HTA_MEMORY.match(name):
        return COPY
    return NEITHER if _HTA_NO_COMPUTE.match(name) else COMPUTE


def _tl_kind(name: str, cat: str) -> str:
    if cat in COPY_CATEGORIES - {"gpu_memset", "Memset"} or (cat == "kernel" and _TL_COPY.match(name)):
        return COPY
    if cat == "kernel" and _TL_SET.match(name):
        return COMPUTE
    return COMMUNICATION if _TL_COMMUNICATION.search(name) else COMPUTE


def _launches(events: pd.DataFrame) -> Any:
    """Row of the first runtime or driver call of the same correlation, or of the same External id where there is none."""
    launch = np.full(len(events), ABSENT, dtype=np.int64)
    is_call, is_work = events["cat"].isin(RUNTIME).to_numpy(), events["device"].to_numpy(dtype=bool)
    key, external, start, row = (events[column].to_numpy() for column in ("key", "external_key", "start", "row"))
    for values, able in ((key, key >= 0), (external, (external >= 0) & (key < 0))):
        calls = np.flatnonzero(is_call & able)
        first: dict[int, int] = {}
        for at in calls[np.argsort(start[calls], kind="stable")].tolist():
            first.setdefault(values[at], row[at])
        for at in np.flatnonzero(is_work & able & (launch < 0)).tolist():
            launch[at] = first.get(values[at], ABSENT)
    return launch


def _on_gpu(events: pd.DataFrame) -> Any:
    """What HTA's filter takes for device work, which is not all that it counts as such."""
    is_work = events["device"].to_numpy(dtype=bool) & (events["key"].to_numpy() >= 0)
    return is_work | events["name"].isin(_SYNCHRONIZATIONS).to_numpy()


def _hta_launches(events: pd.DataFrame) -> Any:
    """Row of the last host event of the same correlation; the file's first event where there is none."""
    on_gpu, key, row = _on_gpu(events), events["key"].to_numpy(), events["row"].to_numpy()
    hosts = np.flatnonzero(~on_gpu & (key != ABSENT))
    last = dict(zip(key[hosts].tolist(), row[hosts].tolist(), strict=True))
    return np.array(
        [last.get(value, 0) if gpu else ABSENT for value, gpu in zip(key.tolist(), on_gpu.tolist(), strict=True)],
        dtype=np.int64,
    )


def _step_numbers(events: pd.DataFrame) -> list[str]:
    names = events["name"].cat
    used = np.unique(names.codes.to_numpy()[~events["device"].to_numpy(dtype=bool)])
    return sorted(name for name in names.categories[used] if name.startswith(_STEP))


def _before_last_step(events: pd.DataFrame, *, twice: bool) -> pd.DataFrame:
    """What HTA keeps of a trace of several steps."""
    steps = {name for name in events["name"].cat.categories if _STEP in name}
    if len(steps) < 2:
        return events
    on_gpu = _on_gpu(events)
    hosts, gpu = events[~on_gpu], events[on_gpu]
    hosts = hosts[hosts["start"] < hosts.loc[hosts["name"].isin(steps), "start"].max()]
    gpu = gpu.merge(hosts["key"], on="key", how="inner") if twice else chosen(gpu, gpu["key"].isin(hosts["key"]))
    kept: pd.DataFrame = pd.concat([gpu, hosts])
    return kept


@lru_cache(maxsize=1)
def _tl_linked(recording: Recording) -> Any:
    """Whether TraceLens links each event to its launch."""
    events = recording.events
    is_call = events["cat"].isin({"cuda_runtime", "cuda_driver"}).to_numpy()
    names = events["name"].astype(object).to_numpy()[is_call]
    launches = events["correlation"].to_numpy()[is_call][["launch" in name.lower() for name in names]]
    by_correlation = len(launches) > 0 and launches[0] is not None
    link = events["correlation" if by_correlation else "external"].to_numpy()
    places = dict(zip(zip(events["pid"], events["tid"], link, strict=True), range(len(events)), strict=True))
    linked = np.zeros(len(events), dtype=bool)
    work: dict[Any, list[int]] = {}
    for at in np.flatnonzero(events["cat"].isin(_KERNELS)).tolist():
        work.setdefault(link[at], []).append(at)
    for name, call in zip(names, link[is_call], strict=True):
        if name in {"cudaGraphLaunch", "hipGraphLaunch"}:
            linked[work.get(call, [])] = call is not None
        elif call in recording.flow_starts and call in recording.flow_ends:
            at = places.get((*recording.flow_ends[call], call))
            if at is not None:
                linked[at] = True
    return linked
