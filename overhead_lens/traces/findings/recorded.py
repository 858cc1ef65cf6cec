"""What findings look at: a trace with the parts of its analysis, and what several of them ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overhead_lens.stats.values import Bools, Ints
from overhead_lens.traces.columns import passing
from overhead_lens.traces.device import DeviceTimeline
from overhead_lens.traces.findings.model import Evidence
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.memory.context import FUNCTION
from overhead_lens.traces.model import TraceAnalysis

MOST_EVIDENCE = 5


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trace and what its analysis has made of it.

    Attributes:
        events: Event frame.
        host: Its host events.
        devices: By number.
        analysis: The budgets.
    """

    events: pd.DataFrame
    host: HostEvents
    devices: Sequence[DeviceTimeline]
    analysis: TraceAnalysis

    def calls(self, chosen: Bools) -> Ints:
        """Positions of the host events of some names that last."""
        return np.flatnonzero(chosen[self.host.name] & (self.host.dur_ns > 0))

    def line_around(self, event: int) -> str:
        """Innermost Python function outside of torch around a host event; empty where there is none."""
        host = self.host
        start_ns = host.start_ns[event]
        is_open = (host.thread == host.thread[event]) & (host.start_ns <= start_ns)
        is_open &= host.start_ns + host.dur_ns > start_ns
        around = np.flatnonzero(is_open & passing(host.names, lambda name: FUNCTION.match(name) is not None)[host.name])
        if not len(around):
            return ""
        return host.names[int(host.name[around[np.lexsort((-host.dur_ns[around], host.start_ns[around]))][-1]])]

    def position_of(self, row: int) -> int:
        """Position of a row of the event frame among the host events; -1 for none."""
        found = np.flatnonzero(self.host.rows == row)
        return int(found[0]) if len(found) else -1

    def line_of_row(self, row: int) -> str:
        """The same as ``line_around`` for a row of the event frame, -1 for none."""
        at = self.position_of(row) if row >= 0 else -1
        return self.line_around(at) if at >= 0 else ""


def evidence(names: Sequence[str], codes: Ints, ns: Ints) -> tuple[Evidence, ...]:
    """How often each name is there and its time, the most time first."""
    used, number = np.unique(codes, return_inverse=True)
    sums = np.zeros(len(used), dtype=np.int64)
    np.add.at(sums, number, ns)
    counts = np.bincount(number, minlength=len(used))
    order = np.lexsort((used, -sums))[:MOST_EVIDENCE]
    return tuple(Evidence(names[int(used[at])], int(counts[at]), int(sums[at])) for at in order)
