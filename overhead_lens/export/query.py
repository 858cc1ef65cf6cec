"""SQL over traces: DuckDB in memory, without access to files, the network or extensions.

``trace`` is the number of the trace in each of ``TABLES``, from 0. ``operators`` and ``kernels`` are views of ``events``:
operators, and work on a device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from overhead_lens.errors import UsageError
from overhead_lens.export.tables import TABLES
from overhead_lens.traces.host import OPERATORS
from overhead_lens.traces.pieces import Analyzed


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
        kinds = tuple(sorted(OPERATORS))
        connection.execute(f"create view operators as select * from events where cat in {kinds}")  # noqa: S608 (ours)
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
    """A JSON value, a decimal as a number; other values, infinities and NaN included, as text."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _tables(traces: Sequence[Analyzed]) -> dict[str, pa.Table]:
    tables = {}
    for name, made in TABLES.items():
        parts = [made(analyzed) for analyzed in traces]
        number = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        whole = pa.concat_tables(parts, promote_options="default").combine_chunks()
        tables[name] = whole.add_column(0, "trace", pa.array(number))
    return tables
