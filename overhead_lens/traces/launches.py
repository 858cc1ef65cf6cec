"""Links device events to the calls that launched them, and finds the copies that block the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from overhead_lens.stats.values import Bools, Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.budgets import Launches
from overhead_lens.traces.columns import where
from overhead_lens.traces.host import OPERATORS, RUNTIME, HostEvents, threads_of
from overhead_lens.traces.intervals import distinct_values
from overhead_lens.traces.timeline import Nesting


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
    launch = np.full(len(rows), -1, dtype=np.int64)
    start_ns, correlation = events["start_ns"].to_numpy(), events["correlation"].to_numpy()
    for column in ("correlation", "external"):
        key = events[column].to_numpy()
        able = (key >= 0) & ((column == "correlation") | (correlation < 0))
        _match(launch, np.flatnonzero(able[rows] & (launch < 0)), rows, calls[able[calls]], key, start_ns)
    is_graph = np.zeros(len(rows), dtype=bool)
    is_graph[launch >= 0] = where(events["name"], lambda name: torch_names.GRAPH_LAUNCH in name)[launch[launch >= 0]]
    return Linked(rows, launch, is_graph)


def runtime_rows(events: pd.DataFrame) -> Ints:
    """Rows of runtime and driver calls."""
    return np.flatnonzero(where(events["cat"], RUNTIME.__contains__))


def _match(launch: Ints, asking: Ints, rows: Ints, calls: Ints, key: Ints, start_ns: Ints) -> None:
    """For each device event in ``asking``, set ``launch`` to the earliest call with the same key."""
    if not len(asking) or not len(calls):
        return
    calls = calls[np.lexsort((start_ns[calls], key[calls]))]
    wanted = key[rows[asking]]
    at = np.minimum(np.searchsorted(key[calls], wanted, "left"), len(calls) - 1)
    equal = key[calls[at]] == wanted
    launch[asking[equal]] = calls[at[equal]]


def launch_statistics(start_ns: Ints, linked: Linked, span_ns: int) -> Launches:
    """Statistics of the launches of some device events.

    Args:
        start_ns: Per row of the event frame.
        linked: These, in order of start.
        span_ns: Time over which the mean queue depth is taken.
    """
    rows, launch, is_graph = linked.rows, linked.launch, linked.is_graph
    known = launch >= 0
    calls, first = np.unique(launch[known], return_index=True)
    first_ns = start_ns[rows[known][first]]
    latency_ns = first_ns - start_ns[calls]
    repaired = latency_ns < 0
    latency_ns = np.sort(np.where(repaired, 0, latency_ns))
    called_ns = np.minimum(start_ns[calls], first_ns)
    return Launches(
        count=len(calls),
        median_ns=_rank(latency_ns, 0.5),
        p99_ns=_rank(latency_ns, 0.99),
        max_ns=_rank(latency_ns, 1.0),
        graph_launches=len(distinct_values(launch[known & is_graph])),
        graph_events=int((known & is_graph).sum()),
        repaired=int(repaired.sum()),
        unlinked=int((~known).sum()),
        queue_depth_max=int(queue_depth(called_ns, first_ns)[1].max(initial=0)),
        queue_depth_mean=round(float(latency_ns.sum(dtype=np.float64)) / max(1, span_ns), 3),
    )


def queue_depth(called_ns: Ints, started_ns: Ints) -> tuple[Ints, Ints]:
    """Launches that were called and have not started on the device: times and the depth from each on."""
    times = np.concatenate((called_ns, started_ns))
    change = np.concatenate((np.ones(len(called_ns), dtype=np.int64), -np.ones(len(started_ns), dtype=np.int64)))
    order = np.lexsort((change, times))
    times, depth = times[order], np.cumsum(change[order])
    last = np.flatnonzero(np.append(times[1:] != times[:-1], True)) if len(times) else np.zeros(0, dtype=np.int64)
    return times[last], depth[last]


def _rank(sorted_ns: Ints, share: float) -> int:
    """Nearest-rank percentile of sorted values; 0 for none."""
    return int(sorted_ns[max(0, int(np.ceil(share * len(sorted_ns))) - 1)]) if len(sorted_ns) else 0


def launching_operators(events: pd.DataFrame, linked: Linked) -> Ints:
    """Row of the innermost operator around the launch of each device event, on the launch's thread; -1 for none."""
    operator = np.full(len(linked.rows), -1, dtype=np.int64)
    is_operator = where(events["cat"], OPERATORS.__contains__)
    calls, number = np.unique(linked.launch[linked.launch >= 0], return_inverse=True)
    thread, _ = threads_of(events, np.arange(len(events)))
    above = np.full(len(calls), -1, dtype=np.int64)
    for code in distinct_values(thread[calls]):
        mine = np.flatnonzero(thread[calls] == code)
        operators = np.flatnonzero(is_operator & (thread == code))
        rows = np.concatenate((operators, calls[mine]))
        nesting = Nesting(events["start_ns"].to_numpy()[rows], events["dur_ns"].to_numpy()[rows])
        near = nesting.nearest(np.arange(len(rows)) < len(operators))[len(operators) :]
        above[mine] = np.append(rows, -1)[near]
    operator[linked.launch >= 0] = above[number]
    return operator


def waits_from(events: pd.DataFrame, host: HostEvents, linked: Linked) -> Ints:
    """For each host event, the time from which it waits for the device as a copy; its end if it does not wait.

    An asynchronous copy waits if the host memory is not pinned: the CUDA Runtime API (API synchronization behavior) copies to
    pageable memory synchronously with respect to the host, and returns from a copy out of it once the memory was staged. Such a
    call is a launch for as long as the trace's other launches take (median), and waits for the device from then on::

        cudaMemcpyAsync   [launch|.......wait........)
        device             [gemm............][Memcpy DtoH (Device -> Pageable)]
    """
    start_ns, dur_ns = events["start_ns"].to_numpy(), events["dur_ns"].to_numpy()
    pageable = where(events["name"], lambda name: torch_names.PAGEABLE_COPY.match(name) is not None)
    asynchronous = where(events["name"], lambda name: torch_names.ASYNCHRONOUS_COPY.match(name) is not None)
    launched = linked.launch >= 0
    calls, copies = linked.launch[launched], pageable[linked.rows[launched]]
    holding = distinct_values(calls[copies & asynchronous[calls]])
    others = np.setdiff1d(calls, holding)
    usual_ns = int(np.percentile(dur_ns[others], 50, method="lower")) if len(others) else 0
    ends_ns = host.start_ns + host.dur_ns
    at = np.searchsorted(host.rows, holding)
    ends_ns[at] = np.minimum(start_ns[holding] + usual_ns, ends_ns[at])
    return ends_ns
