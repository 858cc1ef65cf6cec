"""Occupancy, rates of copies, and nodes of graphs, from the arguments of device events."""

from __future__ import annotations

from typing import Any

import numpy as np

from overhead_lens.readers.kineto.model import Trace
from overhead_lens.stats.values import Bools, Floats, Ints, first_places, taken
from overhead_lens.traces.counters.model import CopyRate, DeviceOccupancy, GraphNode, GraphWork, KernelOccupancy
from overhead_lens.traces.device import COPY, device_kinds
from overhead_lens.traces.intervals import distinct_values
from overhead_lens.traces.timeline import sum_by

_MOST_KERNELS = 50
_MOST_GRAPHS = 20
_MOST_NODES = 10
_MILLION = 1_000_000
_MOST_BYTES = 1 << 50


class DeviceWork:
    """Device events with what they say of themselves.

    Attributes:
        rows: int64: rows of the device events in the event frame.
        is_copy: Whether each is a copy or sets memory.
        device, start_ns, dur_ns, name: int64; the name as its code.
        names: The names by code.
    """

    def __init__(self, trace: Trace, rows: Ints) -> None:
        events = trace.columns
        self.rows = rows
        name = events["name"]
        self.names = name.categories.tolist()
        self.name = name.codes[rows].astype(np.int64)
        self.device = events["device"][rows]
        self.start_ns = events["start_ns"][rows]
        self.dur_ns = events["dur_ns"][rows]
        self.is_copy: Bools = device_kinds(events, rows) == COPY
        self._columns = trace.work
        self._at = first_places(self._columns["row"], rows)

    def column(self, name: str) -> Ints:
        """A column of the work frame per device event; -1 where it does not say."""
        return taken(self._columns[name].astype(np.int64), self._at)

    def groups(self, which: Bools) -> list[tuple[int, Ints]]:
        """Device and its events of those chosen."""
        return [
            (number, np.flatnonzero(which & (self.device == number)))
            for number in distinct_values(self.device[which]).tolist()
        ]


def occupancies(work: DeviceWork, trace: Trace) -> tuple[tuple[DeviceOccupancy, ...], tuple[KernelOccupancy, ...]]:
    """Occupancy of the devices that say it, and of their kernels by time, at most ``_MOST_KERNELS``.

    Kineto's 0 % with at least one warp per SM is a failed calculation: it allows no dynamic shared memory beyond the default
    (libkineto/src/DeviceProperties.cpp, ``maxDynamicSharedSizeBytes``).
    """
    occupancy, blocks, warps = (
        work.column(f"{name}_millionths") for name in ("occupancy", "blocks_per_sm", "warps_per_sm")
    )
    is_known = (occupancy >= 0) | (blocks >= 0)
    uncomputed = (occupancy == 0) & (warps >= _MILLION)
    occupancy = np.where(uncomputed, -1, occupancy)
    devices, kernels = [], []
    for number, mine in work.groups(~work.is_copy & is_known):
        is_its = ~work.is_copy & (work.device == number)
        whole_ns = int(work.dur_ns[is_its].sum())
        properties = next((each for each in trace.device_properties if each.get("id") == number), {})
        dur_ns, unfilled = work.dur_ns[mine], (blocks[mine] >= 0) & (blocks[mine] < _MILLION)
        devices.append(
            DeviceOccupancy(
                device=str(number),
                kernel_ns=whole_ns,
                known_ns=int(dur_ns[occupancy[mine] >= 0].sum()),
                occupancy_percent=_mean(occupancy[mine], dur_ns),
                unfilled_ns=int(dur_ns[unfilled].sum()),
                sms=_positive(properties.get("numSms")),
                warps_per_sm_most=_most_warps(properties),
            )
        )
        names, code = np.unique(work.name[mine], return_inverse=True)
        total_ns = sum_by(code, dur_ns, len(names))
        for at in np.argsort(-total_ns, kind="stable")[:_MOST_KERNELS].tolist():
            own = mine[code == at]
            kernels.append(
                KernelOccupancy(
                    device=str(number),
                    name=work.names[names[at]],
                    count=len(own),
                    total_ns=int(total_ns[at]),
                    occupancy_percent=_mean(occupancy[own], work.dur_ns[own]),
                    blocks_per_sm=_mean(blocks[own], work.dur_ns[own]),
                    warps_per_sm=_mean(warps[own], work.dur_ns[own]),
                    unfilled_ns=int(work.dur_ns[own][(blocks[own] >= 0) & (blocks[own] < _MILLION)].sum()),
                    uncomputed=int(uncomputed[own].sum()),
                )
            )
    return tuple(devices), tuple(sorted(kernels, key=lambda one: -one.total_ns)[:_MOST_KERNELS])


def _mean(millionths: Ints, dur_ns: Ints) -> float | None:
    """Mean of what is known, weighted by duration; without duration unweighted."""
    known = millionths >= 0
    if not known.any():
        return None
    weights: Floats = dur_ns[known].astype(np.float64)
    if not weights.any():
        weights = np.ones(len(weights))
    return float(millionths[known].astype(np.float64) @ weights / weights.sum() / _MILLION)


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _most_warps(properties: dict[str, Any]) -> int | None:
    threads, warp = _positive(properties.get("maxThreadsPerMultiprocessor")), _positive(properties.get("warpSize"))
    return threads // warp if threads and warp else None


def copy_rates(work: DeviceWork) -> tuple[CopyRate, ...]:
    """Copies and settings of memory by device and name, the longest first."""
    size = work.column("bytes")
    size = np.where(size < _MOST_BYTES, size, -1)
    made = []
    for number, mine in work.groups(work.is_copy):
        for code in distinct_values(work.name[mine]).tolist():
            own = mine[work.name[mine] == code]
            sized = own[size[own] >= 0]
            if not len(sized):
                continue
            bytes_, total_ns = sum(size[sized].tolist()), int(work.dur_ns[sized].sum())
            lasting = sized[work.dur_ns[sized] > 0]
            best = float((size[lasting] / work.dur_ns[lasting]).max()) if len(lasting) else None
            rate = bytes_ / total_ns if total_ns else None
            name = work.names[code]
            made.append(CopyRate(str(number), name, len(sized), bytes_, total_ns, rate, best, len(own) - len(sized)))
    return tuple(sorted(made, key=lambda one: -one.total_ns))


def graph_work(work: DeviceWork, launch: Ints) -> tuple[GraphWork, ...]:
    """Executable graphs by time, at most ``_MOST_GRAPHS``; ``launch`` is the row of each event's launch, -1 for none."""
    graph, node = work.column("graph"), work.column("graph_node")
    made = []
    for number, mine in work.groups((graph > 0) & (node >= 0)):
        for identifier in distinct_values(graph[mine]).tolist():
            own = mine[graph[mine] == identifier]
            launches = distinct_values(launch[own])
            made.append(
                GraphWork(
                    device=str(number),
                    graph=identifier,
                    launches=int((launches >= 0).sum()),
                    nodes=len(distinct_values(node[own])),
                    events=len(own),
                    total_ns=int(work.dur_ns[own].sum()),
                    costliest=_nodes(work, node, own),
                )
            )
    return tuple(sorted(made, key=lambda one: -one.total_ns)[:_MOST_GRAPHS])


def _nodes(work: DeviceWork, node: Ints, own: Ints) -> tuple[GraphNode, ...]:
    numbers, first, code = np.unique(node[own], return_index=True, return_inverse=True)
    total_ns, count = sum_by(code, work.dur_ns[own], len(numbers)), np.bincount(code)
    order = np.argsort(-total_ns, kind="stable")[:_MOST_NODES].tolist()
    return tuple(
        GraphNode(int(numbers[at]), work.names[work.name[own[first[at]]]], int(count[at]), int(total_ns[at]))
        for at in order
    )
