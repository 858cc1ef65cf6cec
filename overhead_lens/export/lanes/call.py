"""One call out of a traced loop: the loop's calls separated, and the call of median length.

A trace does not say where a call begins. All calls of a loop raise the same outermost events, so they form one
equal group per call::

    loop     |-------------------------------------------------|
    events    |add| |mul|     |add| |mul|     |add| |mul|
    call      |-------------->|-------------->|
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from overhead_lens.budget.trace import loop_events
from overhead_lens.readers.kineto.event import DEVICE_CATEGORIES
from overhead_lens.stats.values import Ints
from overhead_lens.traces.timeline import Nesting
from overhead_lens.worker.loop import LOOP_NAME

Span = tuple[int, int]


def one_call(events: pd.DataFrame, calls: int) -> Span | None:
    """Start and end of the call of median length, in the events' time; None if the calls cannot be separated.

    A call lasts until the next one begins. The last of several calls is left out, since nothing marks its end.
    """
    host, window = loop_events(events)
    if host.empty or calls < 1:
        return None
    start_ns, end_ns = host["start_ns"].to_numpy(), (host["start_ns"] + host["dur_ns"]).to_numpy()
    loop = np.flatnonzero(host["name"].astype(str).str.endswith(f": {LOOP_NAME}") & (host["cat"] == "python_function"))
    outermost = np.flatnonzero(Nesting(start_ns, end_ns - start_ns).parent == (loop[0] if len(loop) else -1))
    firsts = _firsts(outermost, host["name"].to_numpy(), calls)
    if firsts is None:
        return None
    if calls == 1:
        return (int(start_ns[loop[0]]), int(end_ns[loop[0]])) if len(loop) else window
    begins = start_ns[firsts]
    chosen = np.argsort(np.diff(begins), kind="stable")[(calls - 2) // 2]
    return int(begins[chosen]), int(begins[chosen + 1])


def _firsts(outermost: Ints, names: np.ndarray, calls: int) -> Ints | None:
    """Positions of each call's first event, if the outermost events form that many equal groups."""
    size, rest = divmod(len(outermost), calls)
    if not size or rest:
        return None
    groups = names[outermost].reshape(calls, size)
    return outermost[::size] if (groups == groups[0]).all() else None


def events_of_call(events: pd.DataFrame, call: Span) -> pd.DataFrame:
    """Host events that begin in the call, on any thread, and the device work that they launched.

    Device work without a launch in the trace belongs to the call in which it begins.
    """
    on_device = events["cat"].isin(DEVICE_CATEGORIES)
    begins = events["start_ns"].between(*call, inclusive="left")
    host = begins & ~on_device & (events["cat"] != "Trace")
    launches = _correlations(events, ~on_device)
    mine = _correlations(events, host)
    work = on_device & (events["correlation"].isin(mine) | (begins & ~events["correlation"].isin(launches)))
    chosen: pd.DataFrame = events[host | work]
    return chosen


def _correlations(events: pd.DataFrame, rows: pd.Series[bool]) -> set[int]:
    return set(events.loc[rows & (events["correlation"] >= 0), "correlation"].tolist())


def categories_in(lane: pd.DataFrame, call: Span) -> pd.DataFrame:
    """Consecutive pieces cut to the call: ``start_ns``, ``dur_ns``, ``category``."""
    start_ns = lane["start_ns"].clip(*call)
    dur_ns = (lane["start_ns"] + lane["dur_ns"]).clip(*call) - start_ns
    cut: pd.DataFrame = lane.assign(start_ns=start_ns, dur_ns=dur_ns)[dur_ns > 0]
    return cut
