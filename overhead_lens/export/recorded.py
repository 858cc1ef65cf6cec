"""Tables for queries of what counters, arguments and collectives tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from overhead_lens.export.names import readable
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.traces.collectives.model import Collective, bandwidths
from overhead_lens.traces.counters.model import RangedKernel
from overhead_lens.traces.counters.tracks import Track

_MILLION = 1e6
_WORK = {
    "bytes": "bytes",
    "graph": "graph",
    "graph_node": "graph_node",
    "occupancy_millionths": "occupancy_percent",
    "blocks_per_sm_millionths": "blocks_per_sm",
    "warps_per_sm_millionths": "warps_per_sm",
}


def counter_table(tracks: Sequence[Track]) -> pa.Table:
    """Every value of every counter, and how long it holds."""
    counts = [len(track.values) for track in tracks]
    which = pa.array(np.repeat(np.arange(len(tracks)), counts), pa.int32())
    columns: dict[str, Any] = {
        name: pa.DictionaryArray.from_arrays(which, pa.array(texts, pa.string())).cast(pa.string())
        for name, texts in (
            ("process", [readable(track.process) for track in tracks]),
            ("name", [readable(track.name) for track in tracks]),
            ("unit", [track.unit for track in tracks]),
        )
    }
    device = pa.array([track.device for track in tracks], pa.int64())
    columns["device"] = device.take(which)
    for name, parts in (
        ("start_ns", [track.start_ns for track in tracks]),
        ("dur_ns", [track.dur_ns for track in tracks]),
    ):
        columns[name] = pa.array(np.concatenate([np.zeros(0, dtype=np.int64), *parts]), pa.int64())
    columns["value"] = pa.array(np.concatenate([np.zeros(0), *(track.values for track in tracks)]), pa.float64())
    return pa.table(columns)


def collective_table(many: Sequence[Collective]) -> pa.Table:
    """Every communication kernel."""
    rates = [bandwidths(one.kind, one.bytes, one.group_size, one.dur_ns) for one in many]
    return pa.table(
        {
            "name": _texts(one.name for one in many),
            "kind": _texts(one.kind for one in many),
            "process_group": _texts(one.group for one in many),
            "number": pa.array([one.index for one in many], pa.int64()),
            "device": pa.array([one.device for one in many], pa.int64()),
            "step": pa.array([one.step for one in many], pa.int64()),
            "start_ns": pa.array([one.start_ns for one in many], pa.int64()),
            "dur_ns": pa.array([one.dur_ns for one in many], pa.int64()),
            "hidden_ns": pa.array([one.hidden_ns for one in many], pa.int64()),
            "exposed_ns": pa.array([one.exposed_ns for one in many], pa.int64()),
            "dtype": _texts(one.dtype for one in many),
            "elements": pa.array([one.elements for one in many], pa.int64()),
            "bytes": pa.array([one.bytes for one in many], pa.int64()),
            "group_size": pa.array([one.group_size for one in many], pa.int64()),
            "algorithm_gb_s": pa.array([algorithm for algorithm, _ in rates], pa.float64()),
            "bus_gb_s": pa.array([bus for _, bus in rates], pa.float64()),
        }
    )


def metric_table(ranges: Sequence[RangedKernel]) -> pa.Table:
    """Metrics of the kernels that CUPTI counted, by name."""
    rows = [(one, metric, value) for one in ranges for metric, value in one.metrics.items()]
    return pa.table(
        {
            "kernel": _texts(one.name for one, _, _ in rows),
            "ranges": pa.array([one.ranges for one, _, _ in rows], pa.int64()),
            "metric": _texts(metric for _, metric, _ in rows),
            "value": pa.array([value for _, _, value in rows], pa.float64()),
        }
    )


def work_table(trace: Trace) -> pa.Table:
    """Properties of device events from their arguments; null if absent."""
    work, events = trace.work, trace.events
    rows = work["row"].to_numpy()
    name = events["name"].cat
    texts = pa.array([readable(text) for text in name.categories], pa.string())
    columns: dict[str, Any] = {
        "name": pa.DictionaryArray.from_arrays(pa.array(name.codes.to_numpy()[rows], pa.int32()), texts).cast(
            pa.string()
        ),
        **{column: events[column].to_numpy()[rows] for column in ("device", "stream", "start_ns", "dur_ns")},
    }
    for column, shown in _WORK.items():
        values = work[column].to_numpy()
        scaled = values / _MILLION if column.endswith("_millionths") else values
        columns[shown] = pa.array(scaled, mask=values < 0)
    return pa.table(columns)


def _texts(texts: Iterable[str]) -> Any:
    return pa.array([readable(text) for text in texts], pa.string())
