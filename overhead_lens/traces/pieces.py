"""What a trace's analysis looks like over time, for drawing and for queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from overhead_lens.readers.kineto.model import Trace
from overhead_lens.traces.columns import Columns
from overhead_lens.traces.counters.tracks import Track
from overhead_lens.traces.model import TraceAnalysis

HOST: Columns = {"pid": str, "tid": str, "start_ns": int, "dur_ns": int, "category": str}
IDLE: Columns = {"device": int, "start_ns": int, "dur_ns": int, "blame": str}
QUEUE: Columns = {"device": int, "start_ns": int, "depth": int}
MEMORY: Columns = {"device": str, "start_ns": int, "live_bytes": int, "reserved_bytes": int}
MODULE_CALLS: Columns = {"pid": str, "tid": str, "start_ns": int, "dur_ns": int, "node": int, "phase": str}
REPETITIONS: Columns = {"sequence": int, "start_ns": int, "dur_ns": int}


@dataclass(frozen=True, slots=True)
class TracePieces:
    """Frames over the whole window, times in ns since the earliest event.

    Attributes:
        host: ``HOST``: consecutive pieces of every host thread.
        idle: ``IDLE``: idle time of every device inside its span.
        queue: ``QUEUE``: launches that were called and had not started, from each time on.
        memory: ``MEMORY``: bytes after each event; ``reserved_bytes`` is -1 where unknown.
        allocations: ``traces.memory.analysis.ALLOCATION_COLUMNS``: every block; -1 for a time beyond the recording.
        module_calls: ``MODULE_CALLS``: every call of a module, and every node of a backward pass that belongs to one; ``node``
            is its place in the tree of the analysis.
        repetitions: ``REPETITIONS``: every place of each sequence; ``sequence`` is its number in ``TraceAnalysis.sequences``.
        critical_path: ``traces.critical_path.model.PART_COLUMNS``: the parts of every path; empty if it was not asked for.
    """

    host: pd.DataFrame
    idle: pd.DataFrame
    queue: pd.DataFrame
    memory: pd.DataFrame
    allocations: pd.DataFrame
    module_calls: pd.DataFrame
    repetitions: pd.DataFrame
    critical_path: pd.DataFrame
    tracks: Sequence[Track] = ()


@dataclass(frozen=True, slots=True)
class Analyzed:
    """A trace with all that was found out about it."""

    trace: Trace
    analysis: TraceAnalysis
    pieces: TracePieces
