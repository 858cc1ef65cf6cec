"""What a trace's analysis looks like over time, for drawing and for queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from overhead_lens.readers.kineto.model import Trace
from overhead_lens.traces.counters.tracks import Track
from overhead_lens.traces.model import TraceAnalysis


@dataclass(frozen=True, slots=True)
class TracePieces:
    """Frames over the whole window, times in ns since the earliest event.

    Attributes:
        host: ``pid``, ``tid``, ``start_ns``, ``dur_ns``, ``category``: consecutive pieces of every host thread.
        idle: ``device``, ``start_ns``, ``dur_ns``, ``blame``: idle time of every device inside its span.
        queue: ``device``, ``start_ns``, ``depth``: launches that were called and had not started, from each time on.
        memory: ``device``, ``start_ns``, ``live_bytes``, ``reserved_bytes`` (-1 where unknown): after each event.
        allocations: ``device``, ``start_ns``, ``end_ns``, ``bytes``, ``kind``, ``operator``, ``module``, ``line``: every block;
            -1 for a time beyond the recording.
        module_calls: ``pid``, ``tid``, ``start_ns``, ``dur_ns``, ``node``, ``phase``: every call of a module, and every node of a
            backward pass that belongs to one; ``node`` is its place in the tree of the analysis.
        tracks: Every counter.
        repetitions: ``sequence`` (number in ``TraceAnalysis.sequences``), ``start_ns``, ``dur_ns``: every place of each.
        critical_path: ``traces.critical_path.model.PART_COLUMNS``: the parts of every path; empty where it was not asked for.
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
