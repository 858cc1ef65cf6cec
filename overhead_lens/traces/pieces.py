"""What a trace's analysis looks like over time, for drawing and for queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overhead_lens.readers.kineto.model import Events, Trace, categorical, frame_of
from overhead_lens.stats.values import Ints
from overhead_lens.taxonomy.categories import BLAME, HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.columns import Columns, chosen
from overhead_lens.traces.counters.tracks import Track
from overhead_lens.traces.critical_path.model import PART_COLUMNS
from overhead_lens.traces.device import DeviceTimeline
from overhead_lens.traces.intervals import cut
from overhead_lens.traces.memory.analysis import ALLOCATION_COLUMNS, DeviceLife, module_name
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.traces.modules.analysis import module_calls

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


def analyze_over_time(trace: Trace, classifier: Classifier, *, critical_path: bool = False) -> Analyzed:
    """The analysis together with its data over time."""
    analyzer = Analyzer(trace, classifier, critical_path=critical_path)
    return Analyzed(trace, analyzer.analysis(), pieces_of(analyzer))


def pieces_of(analyzer: Analyzer) -> TracePieces:
    """The data over time."""
    names = np.array(HOST_CATEGORIES, dtype=object)
    divided = [thread.divided() for thread in analyzer.threads.values()]
    of_piece = np.repeat(np.arange(len(divided)), [len(starts_ns) for starts_ns, _, _ in divided])
    hosts = [
        {"start_ns": starts_ns, "dur_ns": dur_ns, "category": names[categories]}
        for starts_ns, dur_ns, categories in divided
    ]
    host = _joined(hosts, {name: HOST[name] for name in ("start_ns", "dur_ns", "category")})
    repetitions = [
        {"sequence": number, "start_ns": one.start_ns, "dur_ns": one.end_ns - one.start_ns}
        for number, one in enumerate(analyzer.repeated)
    ]
    return TracePieces(
        _with_thread(host, list(analyzer.threads), of_piece),
        _joined([_idle(device) for device in analyzer.devices], IDLE),
        _joined([_queue(device) for device in analyzer.devices], QUEUE),
        _joined([life.over_time() for life in analyzer.memory], MEMORY),
        _allocations(analyzer.memory),
        _module_calls(analyzer),
        _joined(repetitions, REPETITIONS),
        _joined(analyzer.paths.tables() if analyzer.with_path else [], PART_COLUMNS),
        analyzer.counted.tracks,
    )


def _joined(tables: Sequence[Events], columns: Columns) -> pd.DataFrame:
    """Tables as one frame; an empty frame with the same columns for none."""
    empty = {name: np.zeros(0, dtype=np.int64 if kind is int else object) for name, kind in columns.items()}
    made: pd.DataFrame = (
        pd.concat(map(frame_of, tables), ignore_index=True)[list(columns)] if tables else pd.DataFrame(empty)
    )
    return made


def _idle(device: DeviceTimeline) -> Events:
    idle, span = device.idle, np.array(device.span)
    inside = cut(span[:1], span[1:], idle.start_ns, idle.start_ns + idle.dur_ns)
    blame = np.array(BLAME, dtype=object)[idle.blame[inside.piece]]
    return {"device": device.number, "start_ns": inside.start_ns, "dur_ns": inside.dur_ns, "blame": blame}


def _queue(device: DeviceTimeline) -> Events:
    return {"device": device.number, "start_ns": device.queue.start_ns, "depth": device.queue.depth}


def _allocations(lives: Sequence[DeviceLife]) -> pd.DataFrame:
    """The blocks of all devices, with the names of where they were allocated."""
    made = _joined([life.allocations() for life in lives], ALLOCATION_COLUMNS)
    if lives:
        names = [*lives[0].where.names, ""]
        for column, texts in (("operator", names), ("module", map(module_name, names)), ("line", names)):
            made[column] = categorical(chosen(texts, made[column].to_numpy()))
    return made


def _module_calls(analyzer: Analyzer) -> pd.DataFrame:
    if analyzer.module_scopes is None:
        return _joined([], MODULE_CALLS)
    calls = frame_of(module_calls(analyzer.module_scopes, analyzer.host))
    return _with_thread(calls, analyzer.host.threads, calls.pop("thread").to_numpy())


def _with_thread(frame: pd.DataFrame, threads: Sequence[tuple[str, str]], of_row: Ints) -> pd.DataFrame:
    """A frame with ``pid`` and ``tid`` in front."""
    for place, column in enumerate(("pid", "tid")):
        # As categories: pandas cannot join names that cannot be encoded.
        values = categorical(chosen([thread[place] for thread in threads], of_row))
        frame.insert(place, column, pd.Series(values, index=frame.index))
    return frame
