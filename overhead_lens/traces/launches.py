"""Links device events to the calls that launched them, and finds the copies that block the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Bools, Floats, Ints, first_places, taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.budgets import Launches
from overhead_lens.traces.columns import where
from overhead_lens.traces.host import RUNTIME, HostEvents
from overhead_lens.traces.intervals import cut, distinct_values

_RANKS = {"median_ns": 0.5, "p99_ns": 0.99, "max_ns": 1.0}


@dataclass(frozen=True, slots=True)
class Linked:
    """Device events and their launches.

    Attributes:
        rows: int64: rows of the device events in the event frame.
        launch: int64: row of the launching call per device event, -1 where it is not in the trace.
        is_graph: bool: whether that call launched a captured graph.
    """

    rows: Ints
    launch: Ints
    is_graph: Bools

    def chosen(self, which: Ints | slice) -> Linked:
        """A selection of the device events."""
        return Linked(self.rows[which], self.launch[which], self.is_graph[which])


def link(events: Events) -> Linked:
    """Find the launch of every device event: the runtime or driver call with its correlation.

    If several calls have one correlation (a runtime call and the driver call inside it), the first to start is the launch.
    Old traces of AMD devices have no correlation and use ``External id`` in its place.
    """
    rows = np.flatnonzero(events["device"] >= 0)
    calls = runtime_rows(events)
    calls = calls[np.argsort(events["start_ns"][calls], kind="stable")]
    launch = np.full(len(rows), -1, dtype=np.int64)
    correlation, (rank, count) = events["correlation"], _ranks(events, calls, rows)
    for column in ("correlation", "external"):
        key = events[column]
        able = (key >= 0) & ((column == "correlation") | (correlation < 0))
        unlinked, candidates = np.flatnonzero(able[rows] & (launch < 0)), calls[able[calls]]
        keys = (key[at] * count + rank[at] for at in (candidates, rows[unlinked]))
        launch[unlinked] = taken(candidates, first_places(*keys))
    is_graph = where(events["name"], lambda name: torch_names.GRAPH_LAUNCH in name)[launch]
    return Linked(rows, launch, (launch >= 0) & is_graph)


def _ranks(events: Events, calls: Ints, work: Ints) -> tuple[Ints, int]:
    """The rank of each event and their number, where processes and devices of each have a prefix: ``[TP00] 4711``, ``[TP00] 0``.

    Tools that merge the traces of several ranks into one file leave the correlations as they are.
    """
    pid = events["pid"]
    prefixes = [text.rstrip("0123456789") for text in pid.categories]
    able, needed = ({prefixes[code] for code in np.flatnonzero(np.bincount(pid.codes[rows]))} for rows in (calls, work))
    ranks = sorted(able) if needed <= able else []
    number = np.array([ranks.index(prefix) if prefix in ranks else 0 for prefix in prefixes] or [0])
    return number[pid.codes], max(1, len(ranks))


def runtime_rows(events: Events) -> Ints:
    """Rows of runtime and driver calls."""
    return np.flatnonzero(where(events["cat"], RUNTIME.__contains__))


def calls_named(events: Events, *parts: str) -> Ints:
    """Rows of runtime and driver calls whose names contain one of ``parts``."""
    calls = runtime_rows(events)
    return calls[where(events["name"], lambda name: any(part in name for part in parts))[calls]]


@dataclass(frozen=True, slots=True)
class Queue:
    """Launches of a device that were called and have not started.

    Attributes:
        start_ns: int64: when their number changes, ascending.
        depth: int64: their number from each on.
    """

    start_ns: Ints
    depth: Ints

    def depths(self, windows: Sequence[tuple[int, int]], group: Ints) -> tuple[Floats, Ints]:
        """The mean and the largest depth in each group of ``windows`` (start, end)."""
        starts_ns, ends_ns = np.array(windows, dtype=np.int64).reshape(-1, 2).T
        parts = cut(starts_ns, ends_ns, self.start_ns[:-1], self.start_ns[1:])
        mine, depth = group[parts.interval], self.depth[parts.piece]
        spans_ns = np.bincount(group, weights=ends_ns - starts_ns)
        # int64 may not hold the sum.
        queued_ns = np.bincount(mine, weights=parts.dur_ns * depth.astype(float), minlength=len(spans_ns))
        deepest = np.zeros(len(spans_ns), dtype=np.int64)
        np.maximum.at(deepest, mine, depth)
        return np.round(queued_ns / np.maximum(1, spans_ns), 3), deepest


def queue_of(called_ns: Ints, started_ns: Ints) -> Queue:
    """The queue of launches by their calls and the starts of their first device events."""
    times = np.concatenate((np.minimum(called_ns, started_ns), started_ns))
    change = np.repeat(np.array([1, -1]), len(called_ns))
    order = np.argsort(times, kind="stable")
    times, depth = times[order], np.cumsum(change[order])
    last = np.flatnonzero(np.append(times[1:] != times[:-1], True)[: len(times)])
    return Queue(times[last], depth[last])


def launch_statistics(
    start_ns: Ints, linked: Linked, is_first: Bools, group: Ints, depths: tuple[Floats, Ints]
) -> list[Launches]:
    """Statistics of the launches of some device events, for groups of these.

    Args:
        start_ns: Per row of the event frame.
        linked: Device events.
        is_first: Whether each is the first of its launch, to whose group the launch belongs.
        group: Per device event, its number.
        depths: The mean and the largest depth of the queue in each group.
    """
    count = len(depths[0])
    mine, calls = group[is_first], linked.launch[is_first]
    latency_ns = start_ns[linked.rows[is_first]] - start_ns[calls]
    repaired = np.bincount(mine[latency_ns < 0], minlength=count)
    latency_ns = np.maximum(latency_ns, 0)
    calls_of = np.bincount(mine, minlength=count)
    ordered_ns = np.append(latency_ns[np.lexsort((latency_ns, mine))], 0)
    columns = {
        "count": calls_of,
        **{name: _ranked(ordered_ns, calls_of, share) for name, share in _RANKS.items()},
        "graph_launches": np.bincount(group[is_first & linked.is_graph], minlength=count),
        "graph_events": np.bincount(group[linked.is_graph], minlength=count),
        "repaired": repaired,
        "unlinked": np.bincount(group[linked.launch < 0], minlength=count),
        "queue_depth_mean": depths[0],
        "queue_depth_max": depths[1],
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [Launches(**dict(zip(columns, row, strict=True))) for row in rows]


def _ranked(ordered: Ints, counts: Ints, share: float) -> Ints:
    """Nearest-rank percentile of each group of values, which follow one another in order, a 0 behind them; 0 for none."""
    rank = np.maximum(np.ceil(share * counts).astype(np.int64) - 1, 0)
    return ordered[np.where(counts > 0, np.cumsum(counts) - counts + rank, len(ordered) - 1)]


def launching_operators(host: HostEvents, launch: Ints) -> Ints:
    """Row of the innermost operator around each launching call by its row, -1 for none."""
    return taken(host.rows, taken(host.around.nearest(host.operator), host.places(launch)))


def waits_from(events: Events, host: HostEvents, linked: Linked) -> Ints:
    """For each host event, the time from which it waits for the device as a copy; its end if it does not wait.

    An asynchronous copy waits if the host memory is not pinned: the CUDA Runtime API (API synchronization behavior) copies to
    pageable memory synchronously with respect to the host, and returns from a copy out of it once the memory was staged. Such a
    call is a launch for as long as the trace's other launches take (median), and waits for the device from then on::

        cudaMemcpyAsync   [launch|.......wait........)
        device             [gemm............][Memcpy DtoH (Device -> Pageable)]
    """
    start_ns, dur_ns = events["start_ns"], events["dur_ns"]
    pageable = where(events["name"], torch_names.PAGEABLE_COPY.match)
    asynchronous = where(events["name"], torch_names.ASYNCHRONOUS_COPY.match)
    launched = linked.launch >= 0
    calls, copies = linked.launch[launched], pageable[linked.rows[launched]]
    holding = distinct_values(calls[copies & asynchronous[calls]])
    others = np.zeros(len(dur_ns), dtype=bool)
    others[calls], others[holding] = True, False
    usual_ns = int(np.percentile(dur_ns[others], 50, method="lower")) if others.any() else 0
    ends_ns = host.start_ns + host.dur_ns
    at = host.places(holding)
    ends_ns[at] = np.minimum(start_ns[holding] + usual_ns, ends_ns[at])
    return ends_ns
