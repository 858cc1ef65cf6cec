"""What costs most by name: operators, kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Ints
from overhead_lens.traces.budgets import Cost
from overhead_lens.traces.device import KINDS, device_kinds
from overhead_lens.traces.host import HostEvents, ThreadTimeline
from overhead_lens.traces.host_budget import ThreadPieces
from overhead_lens.traces.timeline import sum_by

_MOST = 50
_OTHERS = "(others)"


def operator_costs(host: HostEvents, timelines: Sequence[ThreadTimeline], kernel_ns: Ints) -> tuple[Cost, ...]:
    """Operators of all threads by self time, and a row for all behind the costliest ``_MOST`` (see ``kernel_estimate``)."""
    self_ns, attribution = np.zeros(len(host.rows), dtype=np.int64), host.attribution.copy()
    for timeline in timelines:
        self_ns[timeline.events] = timeline.self_ns
        attribution[timeline.events[timeline.attribution == host.unknown]] = host.unknown
    chosen = np.flatnonzero(host.operator)
    if not len(chosen):
        return ()
    # The first event of a name decides, because it is written last.
    attributions = np.zeros(len(host.names), dtype=np.int64)
    attributions[host.name[chosen[::-1]]] = attribution[chosen[::-1]]
    categories = [host.attributions[number].category for number in attributions.tolist()]
    return _costs(host.name[chosen], self_ns[chosen], host.dur_ns[chosen], host.names, categories, kernel_ns[chosen])


def kernel_estimate(host: HostEvents, threads: Iterable[ThreadPieces]) -> Ints:
    """Per host event the self time beyond a dispatch, which is estimated to be a kernel; 0 without an estimate."""
    kernel_ns = np.zeros(len(host.rows), dtype=np.int64)
    for timeline, floor in ((thread.timeline, thread.floor) for thread in threads):
        if floor is not None:
            kernel_ns[timeline.events] = timeline.computes * np.maximum(timeline.self_ns - floor.ns, 0)
    return kernel_ns


def kernel_costs(events: Events, rows: Ints) -> tuple[Cost, ...]:
    """Device events, given by their rows, by name and their summed duration; a row for all behind the costliest ``_MOST``."""
    name = events["name"]
    codes, dur_ns = name.codes[rows].astype(np.int64), events["dur_ns"][rows]
    kinds = np.zeros(len(name.categories), dtype=np.int64)
    kinds[codes[::-1]] = device_kinds(events, rows[::-1])
    named = [KINDS[kind] for kind in kinds.tolist()]
    return _costs(codes, dur_ns, dur_ns, list(name.categories), named, np.zeros_like(dur_ns))


def _costs(
    name: Ints, self_ns: Ints, total_ns: Ints, names: Sequence[str], categories: Sequence[str], kernel_ns: Ints
) -> tuple[Cost, ...]:
    if not len(name):
        return ()
    own, total, kernel = (sum_by(name, values, len(names)) for values in (self_ns, total_ns, kernel_ns))
    count = np.bincount(name, minlength=len(names))
    order = [at for at in np.lexsort((-count, -own)).tolist() if count[at]]
    rows = [(names[at], categories[at], [at]) for at in order[:_MOST]]
    if len(order) > _MOST:
        rows.append((_OTHERS, "", order[_MOST:]))
    return tuple(
        Cost(title, category, *(int(values[chosen].sum()) for values in (count, own, total, kernel)))
        for title, category, chosen in rows
    )
