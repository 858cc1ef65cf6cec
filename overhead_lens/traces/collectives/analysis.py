"""The collectives of one trace: each with its size and its overlap with compute, and summed by kind and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from overhead_lens.readers.kineto.event import integer
from overhead_lens.readers.kineto.model import Events, Trace
from overhead_lens.stats.values import Ints
from overhead_lens.traces.collectives.described import GROUP_KEYS, descriptions, recorded_arguments
from overhead_lens.traces.collectives.model import Collective, CollectiveCost, bandwidths
from overhead_lens.traces.device import COMMUNICATION, device_kinds
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.intervals import Union
from overhead_lens.traces.launches import Linked
from overhead_lens.traces.window import Window, window_at

_MOST = 100
NOT_CALLED = -(2**62)
"""A time before all others, for launches that are not in the trace."""


def described_collectives(
    trace: Trace, host: HostEvents, linked: Linked, compute: Mapping[int, Union], steps: Sequence[tuple[int, Window]]
) -> tuple[Collective, ...]:
    """Communication kernels in order of start, numbered within name and group; ``compute`` by device, ``steps`` in order."""
    events = trace.columns
    start_ns, dur_ns = events["start_ns"], events["dur_ns"]
    chosen = _chosen(events, linked)
    rows, launch = linked.rows[chosen], linked.launch[chosen]
    names = events["name"][rows]
    arguments = trace.arguments(rows.tolist())
    device = events["device"][rows]
    hidden_ns = _hidden(start_ns[rows], dur_ns[rows], device, compute)
    called_ns = np.where(launch >= 0, start_ns[launch], NOT_CALLED)
    columns = (start_ns[rows].tolist(), dur_ns[rows].tolist(), device.tolist(), hidden_ns.tolist())
    described = descriptions(trace, host, rows, launch, arguments)
    inside = window_at([window for _, window in steps], called_ns).tolist()
    seen: dict[tuple[str, str], int] = {}
    made = []
    pairs = zip(arguments, recorded_arguments(trace, host, launch), strict=True)
    for name, (own, around), description, at, (start, dur, number, hidden) in zip(
        names, pairs, described, inside, zip(*columns, strict=True), strict=True
    ):
        step = steps[at][0] if at >= 0 else None
        said = {**around, **own}
        group = " ".join(str(said[key]) for key in GROUP_KEYS if said.get(key))
        called = str(own.get("Collective name") or name)
        index = seen[called, group] = seen.get((called, group), -1) + 1
        sequence = integer(said.get("Seq"))
        seq = None if sequence < 0 else sequence
        made.append(Collective(called, group, index, start, dur, *description, number, hidden, step, seq))
    return tuple(made)


def collective_rows(events: Events, linked: Linked) -> Ints:
    """Rows of the communication kernels in the order of ``described_collectives``."""
    return linked.rows[_chosen(events, linked)]


def _chosen(events: Events, linked: Linked) -> Ints:
    chosen = np.flatnonzero(device_kinds(events, linked.rows) == COMMUNICATION)
    return chosen[np.argsort(events["start_ns"][linked.rows[chosen]], kind="stable")]


def _hidden(start_ns: Ints, dur_ns: Ints, device: Ints, compute: Mapping[int, Union]) -> Ints:
    hidden = np.zeros(len(start_ns), dtype=np.int64)
    for number, busy in compute.items():
        mine = np.flatnonzero(device == number)
        ends = start_ns[mine] + dur_ns[mine]
        hidden[mine] = busy.before(ends) - busy.before(start_ns[mine])
    return hidden


def collective_costs(many: Sequence[Collective]) -> tuple[CollectiveCost, ...]:
    """Collectives by kind, group, type and size, the most exposed first, the first ``_MOST``."""
    costs = [_cost(list(alike)) for _, alike in groupby(sorted(many, key=_sort_key), _sort_key)]
    costs.sort(key=lambda cost: (-cost.exposed_ns, -cost.total_ns))
    return tuple(costs[:_MOST])


def _sort_key(one: Collective) -> tuple[str, str, str, str, int, int]:
    name = one.kind or one.name
    size = -1 if one.elements is None else one.elements
    return name, one.group, one.dtype, "" if one.kind else one.name, size, one.group_size or 0


def _cost(alike: Sequence[Collective]) -> CollectiveCost:
    first = alike[0]
    durations = sorted(one.dur_ns for one in alike)
    total_ns = sum(durations)
    size = None if first.bytes is None else first.bytes * len(alike)
    algorithm, bus = bandwidths(first.kind, size, first.group_size, total_ns)
    _, best = bandwidths(first.kind, first.bytes, first.group_size, durations[0])
    hidden_ns = sum(one.hidden_ns for one in alike)
    return CollectiveCost(
        name=first.name,
        kind=first.kind,
        group=first.group,
        group_size=first.group_size,
        dtype=first.dtype,
        elements=first.elements,
        bytes=first.bytes,
        count=len(alike),
        total_ns=total_ns,
        hidden_ns=hidden_ns,
        exposed_ns=total_ns - hidden_ns,
        min_ns=durations[0],
        median_ns=durations[(len(durations) - 1) // 2],
        max_ns=durations[-1],
        algorithm_gb_s=algorithm,
        bus_gb_s=bus,
        best_bus_gb_s=best,
    )
