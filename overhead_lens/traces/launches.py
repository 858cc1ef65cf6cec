"""Links device events to the calls that launched them, and finds the copies that block the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overhead_lens.stats.values import Bools, Ints, first_places, taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.budgets import Launches
from overhead_lens.traces.columns import where
from overhead_lens.traces.host import RUNTIME, HostEvents
from overhead_lens.traces.intervals import distinct_values

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


def link(events: pd.DataFrame) -> Linked:
    """Find the launch of every device event: the runtime or driver call with its correlation.

    If several calls have one correlation (a runtime call and the driver call inside it), the first to start is the launch.
    Old traces of AMD devices have no correlation and use ``External id`` in its place.
    """
    rows = np.flatnonzero(events["device"].to_numpy() >= 0)
    calls = runtime_rows(events)
    calls = calls[np.argsort(events["start_ns"].to_numpy()[calls], kind="stable")]
    launch = np.full(len(rows), -1, dtype=np.int64)
    correlation = events["correlation"].to_numpy()
    for column in ("correlation", "external"):
        key = events[column].to_numpy()
        able = (key >= 0) & ((column == "correlation") | (correlation < 0))
        unlinked, candidates = np.flatnonzero(able[rows] & (launch < 0)), calls[able[calls]]
        launch[unlinked] = taken(candidates, first_places(key[candidates], key[rows[unlinked]]))
    is_graph = where(events["name"], lambda name: torch_names.GRAPH_LAUNCH in name)[launch]
    return Linked(rows, launch, (launch >= 0) & is_graph)


def runtime_rows(events: pd.DataFrame) -> Ints:
    """Rows of runtime and driver calls."""
    return np.flatnonzero(where(events["cat"], RUNTIME.__contains__))


def launch_statistics(start_ns: Ints, linked: Linked, group: Ints, spans_ns: Sequence[int]) -> list[Launches]:
    """Statistics of the launches of some device events, for groups of these.

    Args:
        start_ns: Per row of the event frame.
        linked: Device events, in order of start within each group.
        group: Per device event, as a number in ``spans_ns``.
        spans_ns: Time over which the mean queue depth of each group is taken.
    """
    count = len(spans_ns)
    known = np.flatnonzero(linked.launch >= 0)
    keys, first = np.unique(group[known] * len(start_ns) + linked.launch[known], return_index=True)
    mine, calls = np.divmod(keys, len(start_ns))
    first_ns = start_ns[linked.rows[known[first]]]
    latency_ns = first_ns - start_ns[calls]
    repaired = np.bincount(mine[latency_ns < 0], minlength=count)
    latency_ns = np.maximum(latency_ns, 0)
    calls_of = np.bincount(mine, minlength=count)
    ordered_ns = np.append(latency_ns[np.lexsort((latency_ns, mine))], 0)
    owner, _, depth = queue_depth(mine, np.minimum(start_ns[calls], first_ns), first_ns)
    deepest = np.zeros(count, dtype=np.int64)
    np.maximum.at(deepest, owner, depth)
    total_ns = np.bincount(mine, weights=latency_ns, minlength=count)  # int64 may not hold it
    columns = {
        "count": calls_of,
        **{name: _ranked(ordered_ns, calls_of, share) for name, share in _RANKS.items()},
        "graph_launches": np.bincount(mine[linked.is_graph[known[first]]], minlength=count),
        "graph_events": np.bincount(group[known[linked.is_graph[known]]], minlength=count),
        "repaired": repaired,
        "unlinked": np.bincount(group[linked.launch < 0], minlength=count),
        "queue_depth_max": deepest,
    }
    means = [round(ns / max(1, span_ns), 3) for ns, span_ns in zip(total_ns.tolist(), spans_ns, strict=True)]
    rows = zip(*(column.tolist() for column in columns.values()), means, strict=True)
    return [Launches(**dict(zip((*columns, "queue_depth_mean"), row, strict=True))) for row in rows]


def queue_depth(group: Ints, called_ns: Ints, started_ns: Ints) -> tuple[Ints, Ints, Ints]:
    """Launches of each group that were called and have not started on the device: groups, times, and the depth from each on."""
    times, groups = np.concatenate((called_ns, started_ns)), np.concatenate((group, group))
    change = np.repeat(np.array([1, -1]), len(called_ns))
    order = np.lexsort((change, times, groups))
    times, groups, depth = times[order], groups[order], np.cumsum(change[order])
    last = np.flatnonzero(np.append((times[1:] != times[:-1]) | (groups[1:] != groups[:-1]), True)[: len(times)])
    return groups[last], times[last], depth[last]


def _ranked(ordered: Ints, counts: Ints, share: float) -> Ints:
    """Nearest-rank percentile of each group of values, which follow one another in order, a 0 behind them; 0 for none."""
    rank = np.maximum(np.ceil(share * counts).astype(np.int64) - 1, 0)
    return ordered[np.where(counts > 0, np.cumsum(counts) - counts + rank, len(ordered) - 1)]


def launching_operators(host: HostEvents, launch: Ints) -> Ints:
    """Row of the innermost operator around each launching call by its row, -1 for none."""
    return taken(host.rows, taken(host.around.nearest(host.operator), host.places(launch)))


def waits_from(events: pd.DataFrame, host: HostEvents, linked: Linked) -> Ints:
    """For each host event, the time from which it waits for the device as a copy; its end if it does not wait.

    An asynchronous copy waits if the host memory is not pinned: the CUDA Runtime API (API synchronization behavior) copies to
    pageable memory synchronously with respect to the host, and returns from a copy out of it once the memory was staged. Such a
    call is a launch for as long as the trace's other launches take (median), and waits for the device from then on::

        cudaMemcpyAsync   [launch|.......wait........)
        device             [gemm............][Memcpy DtoH (Device -> Pageable)]
    """
    start_ns, dur_ns = events["start_ns"].to_numpy(), events["dur_ns"].to_numpy()
    pageable = where(events["name"], torch_names.PAGEABLE_COPY.match)
    asynchronous = where(events["name"], torch_names.ASYNCHRONOUS_COPY.match)
    launched = linked.launch >= 0
    calls, copies = linked.launch[launched], pageable[linked.rows[launched]]
    holding = distinct_values(calls[copies & asynchronous[calls]])
    others = np.zeros(len(events), dtype=bool)
    others[calls], others[holding] = True, False
    usual_ns = int(np.percentile(dur_ns[others], 50, method="lower")) if others.any() else 0
    ends_ns = host.start_ns + host.dur_ns
    at = host.places(holding)
    ends_ns[at] = np.minimum(start_ns[holding] + usual_ns, ends_ns[at])
    return ends_ns
