"""SQL over traces: DuckDB in memory, without access to files, the network or extensions.

Tables (times in integer ns since the earliest event of the trace):

- ``events``: every complete event: ``trace`` (number, from 0), ``rank``, ``name``, ``cat``, ``pid``, ``tid``, ``thread``,
  ``start_ns``, ``dur_ns``, ``correlation``, ``sequence``, ``device``, ``stream``, ``external``;
- ``operators``, ``kernels``: those of them that are operators, and work on a device;
- ``launches``: a device event with the call that launched it: ``trace``, ``call``, ``call_start_ns``, ``call_dur_ns``, ``tid``,
  ``kernel``, ``start_ns``, ``dur_ns``, ``latency_ns``, ``device``, ``stream``;
- ``host``: ``trace``, ``pid``, ``tid``, ``start_ns``, ``dur_ns``, ``category``: who owns each instant of each thread;
- ``idle``: ``trace``, ``device``, ``start_ns``, ``dur_ns``, ``blame``;
- ``memory``: ``trace``, ``device``, ``start_ns``, ``live_bytes``, ``reserved_bytes`` (-1 where unknown) after each memory event;
- ``allocations``: ``trace``, ``device``, ``start_ns``, ``end_ns``, ``bytes``, ``kind``, ``operator``, ``module``, ``line``: every
  block of memory; -1 for a time beyond the recording;
- ``modules``: the budget per module: ``trace``, ``node``, ``parent``, ``path``, ``name``, ``class``, ``number``, ``depth``,
  ``calls``, ``again``; own time on the busiest thread by category (``python_ns``, ...), their sum ``host_ns``, of it
  ``host_backward_ns``, with the modules below ``host_total_ns``; the same of all other threads: ``others_ns``,
  ``others_backward_ns``, ``others_total_ns``; ``device_ns``, ``device_forward_ns``, ``device_backward_ns``,
  ``communication_ns``, ``device_events``, ``device_total_ns``. What is outside of any module, and device events without a
  launch, are rows whose ``node`` is null;
- ``module_calls``: ``trace``, ``pid``, ``tid``, ``start_ns``, ``dur_ns``, ``node``, ``phase`` (``forward``, ``again``,
  ``backward``): calls of modules, and nodes of backward passes that belong to them;
- ``steps``: ``trace``, ``step``, ``start_ns``, ``wall_ns``;
- ``counters``: ``trace``, ``device`` (null where unknown), ``process``, ``name``, ``unit``, ``start_ns``, ``dur_ns`` (how long it
  holds), ``value``;
- ``metrics``: ``trace``, ``kernel``, ``ranges``, ``metric``, ``value``: what CUPTI counted, by kernel;
- ``work``: ``trace``, ``name``, ``device``, ``stream``, ``start_ns``, ``dur_ns``, ``bytes``, ``graph``, ``graph_node``,
  ``occupancy_percent``, ``blocks_per_sm``, ``warps_per_sm`` (null where a device event does not say);
- ``collectives``: ``trace``, ``name``, ``kind``, ``process_group``, ``number``, ``device``, ``step``, ``start_ns``, ``dur_ns``,
  ``hidden_ns``, ``exposed_ns``, ``dtype``, ``elements``, ``bytes``, ``group_size``, ``algorithm_gb_s``, ``bus_gb_s``;
- ``launch_figures``: ``trace``, ``device``, ``step`` (null for the whole), ``least_ns`` (null where unknown) and all of
  ``LaunchFigures``: kernels, launches, ``tklqt_ns`` and its parts, ``bound``;
- ``sequences``: ``trace``, ``sequence`` (number, from 0) and all of ``RepeatedSequence`` but its names, which ``names`` joins;
- ``repetitions``: ``trace``, ``sequence``, ``start_ns``, ``dur_ns``: every place of each sequence;
- ``critical_path``: ``trace``, ``step`` (-1 for none), ``start_ns``, ``dur_ns``, ``lane``, ``kind``, ``name``, ``operator``,
  ``module``, ``reached_by``: the parts of every critical path in order; made for queries that name it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, fields
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from overhead_lens.errors import UsageError
from overhead_lens.export.modules import module_table
from overhead_lens.export.names import readable
from overhead_lens.export.recorded import collective_table, counter_table, metric_table, work_table
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.traces.host import OPERATORS, threads_of
from overhead_lens.traces.launch_figures.model import LaunchFigures
from overhead_lens.traces.launches import link
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.traces.pieces import Analyzed
from overhead_lens.traces.sequences.model import RepeatedSequence

_TABLES = (
    "events", "launches", "host", "idle", "memory", "allocations", "modules", "module_calls", "launch_figures", "sequences",
    "repetitions", "steps", "counters", "metrics", "work", "collectives", "critical_path",
)  # fmt: skip
_MEMORY_TYPES = dict.fromkeys(("start_ns", "live_bytes", "reserved_bytes"), "int64")
_TIME_TYPES = dict.fromkeys(("start_ns", "dur_ns"), "int64")
_CALL_TYPES = {**_TIME_TYPES, "node": "int64"}
_REPETITION_TYPES = {"sequence": "int64", **_TIME_TYPES}
_ALLOCATION_TYPES = dict.fromkeys(("start_ns", "end_ns", "bytes"), "int64")

_PATH_TYPES = dict.fromkeys(("step", "start_ns", "dur_ns"), "int64")


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a query: names of the columns, and rows of values that JSON has."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def run_query(sql: str, traces: Sequence[Analyzed]) -> Answer:
    """The rows of a query.

    Raises:
        UsageError: DuckDB refuses it; its message on one line.
    """
    connection = duckdb.connect(":memory:")
    try:
        for name, table in _tables(traces).items():
            connection.from_arrow(table).create(name)
        connection.execute("create table operator_kinds (kind varchar)")
        connection.executemany("insert into operator_kinds values (?)", [[kind] for kind in sorted(OPERATORS)])
        connection.execute(
            "create view operators as select * from events where cat in (select kind from operator_kinds)"
        )
        connection.execute("create view kernels as select * from events where device >= 0")
        # From here on the user's own SQL: nothing outside of memory.
        connection.execute("set temp_directory = ''")
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
        result: Any = connection.execute(sql)
        if result is None:
            raise UsageError("the query failed: it holds no statement")
        if result.description is None:
            return Answer((), ())
        columns = _distinct([column[0] for column in result.description])
        return Answer(columns, tuple(tuple(_plain(value) for value in row) for row in result.fetchall()))
    except duckdb.Error as error:
        message = str(error).strip().splitlines()
        raise UsageError(f"the query failed: {message[0] if message else type(error).__name__}") from None
    finally:
        connection.close()


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, a repeated one with the first number that makes it its own: ``a, a_1``."""
    chosen: list[str] = []
    for name in names:
        tries = (name, *(f"{name}_{number}" for number in range(1, len(names) + 1)))
        chosen.append(next(text for text in tries if text not in chosen and (text == name or text not in names)))
    return tuple(chosen)


def _plain(value: Any) -> Any:
    """A value that JSON has; others, infinities and NaN among them, as their text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _tables(traces: Sequence[Analyzed]) -> dict[str, pa.Table]:
    parts: dict[str, list[pa.Table]] = {name: [] for name in _TABLES}
    for number, analyzed in enumerate(traces):
        idle = analyzed.pieces.idle.astype({"device": "int64", "start_ns": "int64", "dur_ns": "int64"})
        parts["events"].append(_events(number, analyzed))
        parts["launches"].append(_launches(number, analyzed.trace.events))
        parts["host"].append(_numbered(number, analyzed.pieces.host.astype(_TIME_TYPES)))
        parts["idle"].append(_numbered(number, idle))
        parts["memory"].append(_numbered(number, analyzed.pieces.memory.astype(_MEMORY_TYPES)))
        parts["allocations"].append(_numbered(number, analyzed.pieces.allocations.astype(_ALLOCATION_TYPES)))
        parts["modules"].append(module_table(number, analyzed.analysis.modules))
        parts["module_calls"].append(_numbered(number, analyzed.pieces.module_calls.astype(_CALL_TYPES)))
        parts["launch_figures"].append(_figures(number, analyzed.analysis))
        parts["sequences"].append(_sequences(number, analyzed.analysis))
        repetitions = analyzed.pieces.repetitions.astype(_REPETITION_TYPES)
        parts["repetitions"].append(_numbered(number, repetitions))
        parts["critical_path"].append(_numbered(number, analyzed.pieces.critical_path.astype(_PATH_TYPES)))
        parts["steps"].append(_steps(number, analyzed.analysis))
        for name, table in (
            ("counters", counter_table(analyzed.pieces.tracks)),
            ("metrics", metric_table(analyzed.analysis.counters.ranges)),
            ("work", work_table(analyzed.trace)),
            ("collectives", collective_table(analyzed.analysis.collectives)),
        ):
            parts[name].append(table.add_column(0, "trace", _constant(number, len(table))))
    return {
        name: pa.concat_tables(tables, promote_options="default").combine_chunks() for name, tables in parts.items()
    }


def _events(number: int, analyzed: Analyzed) -> pa.Table:
    events = analyzed.trace.events
    columns: dict[str, Any] = {
        "trace": _constant(number, len(events)),
        "rank": pa.array(
            np.full(len(events), analyzed.analysis.rank or 0),
            pa.int64(),
            mask=np.full(len(events), analyzed.analysis.rank is None),
        ),
    }
    columns |= {name: _column(events[name]) for name in events.columns}
    columns["thread"] = _thread_names(analyzed.trace)
    return pa.table(columns)


def _thread_names(trace: Trace) -> Any:
    number, threads = threads_of(trace.events, np.arange(len(trace.events)))
    return _text(number, [trace.thread_names.get(thread, "") for thread in threads])


def _launches(number: int, events: pd.DataFrame) -> pa.Table:
    linked = link(events)
    known = linked.launch >= 0
    rows, calls = linked.rows[known], linked.launch[known]
    start_ns, dur_ns = events["start_ns"].to_numpy(), events["dur_ns"].to_numpy()
    name, tid = events["name"].cat, events["tid"].cat
    columns: dict[str, Any] = {
        "trace": _constant(number, len(rows)),
        "call": _text(name.codes.to_numpy()[calls], list(name.categories)),
        "call_start_ns": start_ns[calls],
        "call_dur_ns": dur_ns[calls],
        "tid": _text(tid.codes.to_numpy()[calls], list(tid.categories)),
        "kernel": _text(name.codes.to_numpy()[rows], list(name.categories)),
        "start_ns": start_ns[rows],
        "dur_ns": dur_ns[rows],
        "latency_ns": np.maximum(0, start_ns[rows] - start_ns[calls]),
        "device": events["device"].to_numpy()[rows],
        "stream": events["stream"].to_numpy()[rows],
    }
    return pa.table(columns)


def _steps(number: int, analysis: TraceAnalysis) -> pa.Table:
    steps = analysis.steps
    columns = {
        "step": [step.step for step in steps],
        "start_ns": [step.window.start_ns for step in steps],
        "wall_ns": [step.window.wall_ns for step in steps],
    }
    arrays = {name: pa.array(values, pa.int64()) for name, values in columns.items()}
    return pa.table({"trace": _constant(number, len(steps)), **arrays})


def _figures(number: int, analysis: TraceAnalysis) -> pa.Table:
    rows = [
        {"device": device.device, "step": step, "least_ns": device.least_ns, **asdict(figures)}
        for device in analysis.launch_figures
        for step, figures in ((None, device.whole), *((one.step, one.figures) for one in device.steps))
    ]
    names = [field.name for field in fields(LaunchFigures)]
    return _rows(number, rows, ["device", "step", "least_ns", *names], {"device", "bound"})


def _sequences(number: int, analysis: TraceAnalysis) -> pa.Table:
    rows = [
        {**asdict(one), "sequence": at, "names": " → ".join(one.names)} for at, one in enumerate(analysis.sequences)
    ]
    names = [field.name for field in fields(RepeatedSequence)]
    return _rows(number, rows, ["sequence", *names], {"kind", "lane", "names", "operator", "module", "line"})


def _rows(number: int, rows: Sequence[Mapping[str, Any]], names: Sequence[str], texts: AbstractSet[str]) -> pa.Table:
    """A table of few rows; text that is no UTF-8 is escaped."""
    columns: dict[str, Any] = {"trace": _constant(number, len(rows))}
    for name in names:
        values = [row[name] for row in rows]
        if name in texts:
            columns[name] = pa.array([None if one is None else readable(one) for one in values], pa.string())
        else:
            columns[name] = pa.array(values, pa.int64())
    return pa.table(columns)


def _numbered(number: int, frame: pd.DataFrame) -> pa.Table:
    return pa.table({"trace": _constant(number, len(frame)), **{name: _column(frame[name]) for name in frame.columns}})


def _constant(number: int, count: int) -> Any:
    return pa.array(np.full(count, number, dtype=np.int64))


def _column(series: pd.Series[Any]) -> Any:
    if isinstance(series.dtype, pd.CategoricalDtype):
        return _text(series.cat.codes.to_numpy(), list(series.cat.categories))
    if series.dtype == object:
        codes, texts = pd.factorize(series.to_numpy())
        return _text(codes, list(texts))
    return pa.array(series.to_numpy())


def _text(codes: Any, texts: Sequence[object]) -> Any:
    """Text by number; what is no UTF-8 is escaped."""
    names = pa.array([readable(text) if text else "" for text in texts], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names).cast(pa.string())
