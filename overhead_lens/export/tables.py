"""The tables of a query. A table is a row of ``TABLES``; its times are integer ns since the earliest event of its trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from overhead_lens.export.names import readable
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.traces.collectives.model import bandwidths
from overhead_lens.traces.host import threads_of
from overhead_lens.traces.launch_figures.model import LaunchFigures
from overhead_lens.traces.launches import link
from overhead_lens.traces.modules.model import ModuleTime
from overhead_lens.traces.pieces import Analyzed
from overhead_lens.traces.sequences.model import RepeatedSequence

_OUTSIDE, _UNLINKED = "(outside any module)", "(no launch in the trace)"
_MILLION = 1e6

_Row = Mapping[str, Any]


def _whole(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, pa.int64())


def _texts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, pa.string())


def _reals(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, pa.float64())


def _table(columns: Mapping[str, Any], rows: Iterable[_Row]) -> pa.Table:
    """A table of few rows: null where a row lacks a column; text that is not UTF-8 is escaped."""
    plain = [
        {name: readable(value) if isinstance(value, str) else value for name, value in row.items()} for row in rows
    ]
    return pa.Table.from_pylist(plain, pa.schema(list(columns.items())))


def _values(model: Any) -> dict[str, Any]:
    return {field.name: getattr(model, field.name) for field in fields(model)}


def _events(analyzed: Analyzed) -> pa.Table:
    events, names = analyzed.trace.events, analyzed.trace.thread_names
    columns: dict[str, Any] = {"rank": pa.repeat(pa.scalar(analyzed.analysis.rank, pa.int64()), len(events))}
    columns |= _columns(events, *events.columns)
    number, threads = threads_of(analyzed.trace.columns, np.arange(len(events)))
    return pa.table({**columns, "thread": _text(number, [names.get(thread, "") for thread in threads])})


def _launches(analyzed: Analyzed) -> pa.Table:
    events = analyzed.trace.events
    linked = link(analyzed.trace.columns)
    known = linked.launch >= 0
    kernels, calls = events.iloc[linked.rows[known]], events.iloc[linked.launch[known]]
    latency_ns = np.maximum(0, kernels["start_ns"].to_numpy() - calls["start_ns"].to_numpy())
    of_call = {"call": "name", "call_start_ns": "start_ns", "call_dur_ns": "dur_ns", "tid": "tid"}
    columns: dict[str, Any] = {name: _column(calls[column]) for name, column in of_call.items()}
    columns |= {"kernel": _column(kernels["name"]), **_columns(kernels, "start_ns", "dur_ns")}
    launched = kernels[["device", "start_ns"]].reset_index(drop=True).assign(launch=linked.launch[known])
    is_first = ~launched.sort_values("start_ns", kind="stable").duplicated(["launch", "device"]).sort_index().to_numpy()
    columns |= {"latency_ns": latency_ns, "is_first": is_first}
    return pa.table({**columns, **_columns(kernels, "device", "stream")})


def _steps(analyzed: Analyzed) -> pa.Table:
    rows = ({"step": step.step, **_values(step.window)} for step in analyzed.analysis.steps)
    return _table(_whole("step", "start_ns", "wall_ns"), rows)


def _figures(analyzed: Analyzed) -> pa.Table:
    rows = (
        {"device": device.device, "step": step, "least_ns": device.least_ns, **_values(figures)}
        for device in analyzed.analysis.launch_figures
        for step, figures in ((None, device.whole), *((one.step, one.figures) for one in device.steps))
    )
    figures = _whole("step", "least_ns", *(field.name for field in fields(LaunchFigures)))
    return _table({**_texts("device"), **figures, **_texts("bound")}, rows)


def _sequences(analyzed: Analyzed) -> pa.Table:
    many = analyzed.analysis.sequences
    rows = ({**_values(one), "sequence": at, "names": " → ".join(one.names)} for at, one in enumerate(many))
    columns = _whole("sequence", *(field.name for field in fields(RepeatedSequence)))
    return _table({**columns, **_texts("kind", "lane", "names", "operator", "module", "line")}, rows)


def _modules(analyzed: Analyzed) -> pa.Table:
    """A row for each module, one for what is outside, one for what has no launch; none without modules."""
    categories = [f"{category}_ns" for category in HOST_CATEGORIES]
    host = ("host_ns", "host_backward_ns", "host_total_ns", "others_ns", "others_backward_ns", "others_total_ns")
    device = ("device_ns", "device_forward_ns", "device_backward_ns", "communication_ns", "device_events")
    columns = {**_whole("node", "parent"), **_texts("path", "name", "class")}
    columns |= _whole("number", "depth", "calls", "again", *categories, *host, *device, "device_total_ns")

    def times(own: ModuleTime, total: ModuleTime) -> dict[str, Any]:
        spent = {f"{category}_ns": own.host.get(category, 0) for category in HOST_CATEGORIES}
        summed = {f"{bearer}_total_ns": getattr(total, f"{bearer}_ns") for bearer in ("host", "others", "device")}
        return {**{name: getattr(own, name) for name in (*host, *device) if name not in summed}, **spent, **summed}

    def rows() -> Iterator[_Row]:
        modules = analyzed.analysis.modules
        if modules is None:
            return
        for place, node in enumerate(modules.nodes):
            named = {"node": place, "path": modules.path(place), "class": node.class_name}
            yield {**_values(node), **named, **times(node.own, node.total)}
        yield {"path": _OUTSIDE, "name": _OUTSIDE, **times(modules.outside, modules.outside)}
        unlinked = {"device_ns": modules.unlinked_ns, "device_events": modules.unlinked_events}
        yield {"path": _UNLINKED, "name": _UNLINKED, **unlinked, "device_total_ns": modules.unlinked_ns}

    return _table(columns, rows())


def _counters(analyzed: Analyzed) -> pa.Table:
    tracks = analyzed.pieces.tracks
    which = np.repeat(np.arange(len(tracks)), [len(track.values) for track in tracks])
    columns = {name: _text(which, [getattr(track, name) for track in tracks]) for name in ("process", "name", "unit")}
    columns["device"] = pa.array([track.device for track in tracks], pa.int64()).take(pa.array(which, pa.int64()))
    for name in ("start_ns", "dur_ns"):
        parts = [getattr(track, name) for track in tracks]
        columns[name] = pa.array(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))
    columns["value"] = pa.array(np.concatenate([np.zeros(0), *(track.values for track in tracks)]), pa.float64())
    return pa.table(columns)


def _metrics(analyzed: Analyzed) -> pa.Table:
    rows = (
        {"kernel": one.name, "ranges": one.ranges, "metric": metric, "value": value}
        for one in analyzed.analysis.counters.ranges
        for metric, value in one.metrics.items()
    )
    return _table({**_texts("kernel"), **_whole("ranges"), **_texts("metric"), **_reals("value")}, rows)


def _work(analyzed: Analyzed) -> pa.Table:
    work = analyzed.trace.work
    events = analyzed.trace.events.take(work["row"])
    columns = _columns(events, "name", "device", "stream", "start_ns", "dur_ns")
    for name in ("bytes", "graph", "graph_node", "occupancy_percent", "blocks_per_sm", "warps_per_sm"):
        counted = name in work
        values = work[name if counted else f"{name.removesuffix('_percent')}_millionths"]
        columns[name] = pa.array(values if counted else values / _MILLION, mask=values < 0)
    return pa.table(columns)


def _collectives(analyzed: Analyzed) -> pa.Table:
    columns = {**_texts("name", "kind", "process_group"), **_whole("number", "device", "step", "start_ns", "dur_ns")}
    columns |= {**_whole("hidden_ns", "exposed_ns"), **_texts("dtype"), **_whole("elements", "bytes", "group_size")}
    columns |= _reals("algorithm_gb_s", "bus_gb_s")

    def row(one: Any) -> _Row:
        algorithm, bus = bandwidths(one.kind, one.bytes, one.group_size, one.dur_ns)
        named = {"process_group": one.group, "number": one.index, "exposed_ns": one.exposed_ns}
        return {**_values(one), **named, "algorithm_gb_s": algorithm, "bus_gb_s": bus}

    return _table(columns, map(row, analyzed.analysis.collectives))


def _pieces(name: str) -> Callable[[Analyzed], pa.Table]:
    """The table of a frame of the pieces."""

    def table(analyzed: Analyzed) -> pa.Table:
        frame: pd.DataFrame = getattr(analyzed.pieces, name)
        return pa.table(_columns(frame, *frame.columns))

    return table


def _columns(frame: pd.DataFrame, *names: str) -> dict[str, Any]:
    return {name: _column(frame[name]) for name in names}


def _column(series: pd.Series[Any]) -> Any:
    if isinstance(series.dtype, pd.CategoricalDtype):
        return _text(series.cat.codes.to_numpy(), list(series.cat.categories))
    if series.dtype == object:
        codes, texts = pd.factorize(series.to_numpy())
        return _text(codes, list(texts))
    return pa.array(series.to_numpy())


def _text(codes: Any, texts: Sequence[object]) -> Any:
    """Text by number; what is not UTF-8 is escaped."""
    names = pa.array([readable(text) if text else "" for text in texts], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names).cast(pa.string())


TABLES: Mapping[str, Callable[[Analyzed], pa.Table]] = {
    # Every complete event.
    "events": _events,
    # A device event with the call that launched it, and whether it is the first of that call on its device.
    "launches": _launches,
    # Who owns each instant of each thread.
    "host": _pieces("host"),
    "idle": _pieces("idle"),
    # After each memory event; -1 where unknown.
    "memory": _pieces("memory"),
    # Every block of memory; -1 for a time beyond the recording.
    "allocations": _pieces("allocations"),
    # The budget per module; what is outside of any, and device events without a launch, are rows whose node is null.
    "modules": _modules,
    "module_calls": _pieces("module_calls"),
    # The step is null for the whole.
    "launch_figures": _figures,
    "sequences": _sequences,
    "repetitions": _pieces("repetitions"),
    "steps": _steps,
    # Every value of every counter; how long it holds is its ``dur_ns``.
    "counters": _counters,
    # What CUPTI counted, by kernel.
    "metrics": _metrics,
    # Null where a device event does not say.
    "work": _work,
    # Every communication kernel.
    "collectives": _collectives,
    # The parts of every path in order; made for queries that name it. The step is -1 for none.
    "critical_path": _pieces("critical_path"),
}
