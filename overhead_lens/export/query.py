"""SQL over traces: DuckDB in memory, without access to files, the network or extensions.

A table is a row of ``_TABLES``; ``trace`` is the number of the trace, from 0, and times are integer ns since its earliest event.
``operators`` and ``kernels`` are views of ``events``: operators, and work on a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
from overhead_lens.traces.pieces import Analyzed
from overhead_lens.traces.sequences.model import RepeatedSequence


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
            raise UsageError("the query failed: it contains no statement")
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
    """A JSON value; other values, infinities and NaN included, as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _tables(traces: Sequence[Analyzed]) -> dict[str, pa.Table]:
    return {
        name: pa.concat_tables(
            [_numbered(number, made(analyzed)) for number, analyzed in enumerate(traces)], promote_options="default"
        ).combine_chunks()
        for name, made in _TABLES.items()
    }


def _numbered(number: int, table: pa.Table) -> pa.Table:
    return table.add_column(0, "trace", pa.array(np.full(len(table), number, dtype=np.int64)))


def _events(analyzed: Analyzed) -> pa.Table:
    events, rank = analyzed.trace.events, analyzed.analysis.rank
    columns: dict[str, Any] = {"rank": pa.repeat(pa.scalar(rank, pa.int64()), len(events))}
    columns |= {name: _column(events[name]) for name in events.columns}
    columns["thread"] = _thread_names(analyzed.trace)
    return pa.table(columns)


def _thread_names(trace: Trace) -> Any:
    number, threads = threads_of(trace.events, np.arange(len(trace.events)))
    return _text(number, [trace.thread_names.get(thread, "") for thread in threads])


def _launches(analyzed: Analyzed) -> pa.Table:
    events = analyzed.trace.events
    linked = link(events)
    known = linked.launch >= 0
    rows, calls = linked.rows[known], linked.launch[known]
    start_ns, dur_ns = events["start_ns"].to_numpy(), events["dur_ns"].to_numpy()
    name, tid = events["name"].cat, events["tid"].cat
    columns: dict[str, Any] = {
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


def _steps(analyzed: Analyzed) -> pa.Table:
    steps = analyzed.analysis.steps
    rows = [{"step": one.step, "start_ns": one.window.start_ns, "wall_ns": one.window.wall_ns} for one in steps]
    return _rows(rows, ["step", "start_ns", "wall_ns"])


def _figures(analyzed: Analyzed) -> pa.Table:
    rows = [
        {"device": device.device, "step": step, "least_ns": device.least_ns, **asdict(figures)}
        for device in analyzed.analysis.launch_figures
        for step, figures in ((None, device.whole), *((one.step, one.figures) for one in device.steps))
    ]
    names = [field.name for field in fields(LaunchFigures)]
    return _rows(rows, ["device", "step", "least_ns", *names], {"device", "bound"})


def _sequences(analyzed: Analyzed) -> pa.Table:
    many = analyzed.analysis.sequences
    rows = [{**asdict(one), "sequence": at, "names": " → ".join(one.names)} for at, one in enumerate(many)]
    names = [field.name for field in fields(RepeatedSequence)]
    return _rows(rows, ["sequence", *names], {"kind", "lane", "names", "operator", "module", "line"})


def _rows(rows: Sequence[Mapping[str, Any]], names: Sequence[str], texts: AbstractSet[str] = frozenset()) -> pa.Table:
    """A table of few rows; text that is not UTF-8 is escaped."""
    columns: dict[str, Any] = {}
    for name in names:
        values = [row[name] for row in rows]
        if name in texts:
            columns[name] = pa.array([None if one is None else readable(one) for one in values], pa.string())
        else:
            columns[name] = pa.array(values, pa.int64())
    return pa.table(columns)


def _pieces(name: str) -> Callable[[Analyzed], pa.Table]:
    """The table of a frame of the pieces."""
    return lambda analyzed: _frame(getattr(analyzed.pieces, name))


def _frame(frame: pd.DataFrame) -> pa.Table:
    return pa.table({name: _column(frame[name]) for name in frame.columns})


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


_TABLES: Mapping[str, Callable[[Analyzed], pa.Table]] = {
    # Every complete event.
    "events": _events,
    # A device event with the call that launched it.
    "launches": _launches,
    # Who owns each instant of each thread.
    "host": _pieces("host"),
    "idle": _pieces("idle"),
    # After each memory event; -1 where unknown.
    "memory": _pieces("memory"),
    # Every block of memory; -1 for a time beyond the recording.
    "allocations": _pieces("allocations"),
    # The budget per module; what is outside of any, and device events without a launch, are rows whose node is null.
    "modules": lambda analyzed: module_table(analyzed.analysis.modules),
    "module_calls": _pieces("module_calls"),
    # The step is null for the whole.
    "launch_figures": _figures,
    "sequences": _sequences,
    "repetitions": _pieces("repetitions"),
    "steps": _steps,
    # How long a value holds is its ``dur_ns``.
    "counters": lambda analyzed: counter_table(analyzed.pieces.tracks),
    # What CUPTI counted, by kernel.
    "metrics": lambda analyzed: metric_table(analyzed.analysis.counters.ranges),
    # Null where a device event does not say.
    "work": lambda analyzed: work_table(analyzed.trace),
    "collectives": lambda analyzed: collective_table(analyzed.analysis.collectives),
    # The parts of every path in order; made for queries that name it. The step is -1 for none.
    "critical_path": _pieces("critical_path"),
}
