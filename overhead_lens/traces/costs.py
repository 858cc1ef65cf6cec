"""What costs most by name: operators, kernels, collectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from overhead_lens.readers.kineto.model import Trace
from overhead_lens.stats.values import Ints
from overhead_lens.traces.device import COMMUNICATION, KINDS, device_kinds
from overhead_lens.traces.host import HostEvents, ThreadTimeline
from overhead_lens.traces.model import Collective, Cost
from overhead_lens.traces.timeline import sum_by

_MOST = 50
_GROUP_KEYS = ("Process Group Name", "Process Group Ranks")


def operator_costs(host: HostEvents, timelines: Sequence[ThreadTimeline]) -> tuple[Cost, ...]:
    """Operators of all threads by self time, the costliest ``_MOST``."""
    self_ns = np.zeros(len(host.rows), dtype=np.int64)
    for timeline in timelines:
        self_ns[timeline.events] = timeline.self_ns
    chosen = np.flatnonzero(host.operator)
    if not len(chosen):
        return ()
    # Of the events of one name the first decides, which is written last.
    attributions = np.zeros(len(host.names), dtype=np.int64)
    attributions[host.name[chosen[::-1]]] = host.attribution[chosen[::-1]]
    return _costs(
        host.name[chosen],
        self_ns[chosen],
        host.dur_ns[chosen],
        host.names,
        [host.attributions[number].category for number in attributions.tolist()],
    )


def kernel_costs(events: pd.DataFrame) -> tuple[Cost, ...]:
    """Device events by name and their summed duration, the costliest ``_MOST``."""
    rows = np.flatnonzero(events["device"].to_numpy() >= 0)
    name = events["name"].cat
    codes, dur_ns = name.codes.to_numpy()[rows].astype(np.int64), events["dur_ns"].to_numpy()[rows]
    kinds = np.zeros(len(name.categories), dtype=np.int64)
    kinds[codes[::-1]] = device_kinds(events)[rows[::-1]]
    return _costs(codes, dur_ns, dur_ns, list(name.categories), [KINDS[kind] for kind in kinds.tolist()])


def _costs(
    name: Ints, self_ns: Ints, total_ns: Ints, names: Sequence[str], categories: Sequence[str]
) -> tuple[Cost, ...]:
    if not len(name):
        return ()
    own, total = (sum_by(name, values, len(names)) for values in (self_ns, total_ns))
    count = np.bincount(name, minlength=len(names))
    order = [at for at in np.lexsort((-count, -own)).tolist() if count[at]][:_MOST]
    return tuple(Cost(names[at], categories[at], int(count[at]), int(own[at]), int(total[at])) for at in order)


def collectives(trace: Trace) -> tuple[Collective, ...]:
    """Communication kernels in order of start, numbered within their name and process group."""
    events = trace.events
    rows = np.flatnonzero((events["device"].to_numpy() >= 0) & (device_kinds(events) == COMMUNICATION))
    rows = rows[np.argsort(events["start_ns"].to_numpy()[rows], kind="stable")]
    names = events["name"].cat.categories[events["name"].cat.codes.to_numpy()[rows]]
    times = zip(*(events[column].to_numpy()[rows].tolist() for column in ("start_ns", "dur_ns")), strict=True)
    seen: dict[tuple[str, str], int] = {}
    numbered = []
    for name, (start_ns, dur_ns), arguments in zip(names, times, trace.arguments(rows.tolist()), strict=True):
        group = " ".join(str(arguments[key]) for key in _GROUP_KEYS if arguments.get(key))
        called = str(arguments.get("Collective name") or name)
        index = seen[called, group] = seen.get((called, group), -1) + 1
        numbered.append(Collective(called, group, index, start_ns, dur_ns))
    return tuple(numbered)
