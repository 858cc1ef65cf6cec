"""Module calls and their backward passes over time, for drawing and for queries."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.modules.scopes import OUTSIDE, Scopes

PHASES = ("forward", "again", "backward")
"""A call; a call in the backward pass, which computes again; a node of the backward pass that belongs to a module."""


def module_calls(scopes: Scopes, host: HostEvents) -> pd.DataFrame:
    """Every call of a module and every node of the backward pass that belongs to one, in order of start.

    Returns:
        ``thread`` (number in ``host.threads``), ``start_ns``, ``dur_ns``, ``node`` (place in the tree), ``phase`` (one of
        ``PHASES``). Nodes inside of nodes are left out.
    """
    inner = (scopes.parent >= 0) & scopes.backward[scopes.parent]
    chosen = np.flatnonzero((scopes.module != OUTSIDE) & (scopes.is_module | ~inner))
    event = scopes.event[chosen]
    phase = np.where(scopes.is_module[chosen], scopes.backward[chosen].astype(np.int64), PHASES.index("backward"))
    columns = {
        "thread": host.thread[event],
        "start_ns": host.start_ns[event],
        "dur_ns": host.dur_ns[event],
        "node": scopes.module[chosen],
        "phase": np.array(PHASES, dtype=object)[phase],
    }
    made: pd.DataFrame = pd.DataFrame(columns)
    return made
