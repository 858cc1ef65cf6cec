"""Analyses as parquet tables, for questions over many traces.

Columns: ``_COLUMNS``. ``error`` is null for a sound trace, ``step`` -1 for the whole window; ``axis`` is ``host``, ``device`` or
``idle``, ``bearer`` a thread or device, ``name`` a category, kind or blame.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from overhead_lens.errors import UsageError
from overhead_lens.export.names import readable
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.traces.budgets import Cost, DeviceBudget
from overhead_lens.traces.model import TraceAnalysis, TraceFailure

_COLUMNS = {
    "traces": ("trace", "path", "rank", "world_size", "events", "wall_ns", "steps", "error"),
    "budgets": ("trace", "step", "axis", "bearer", "name", "ns"),
    "costs": ("trace", "kind", "name", "category", "count", "self_ns", "total_ns"),
    "issues": ("trace", "reason", "count"),
}
_TEXTS = frozenset({"path", "error", "axis", "bearer", "name", "kind", "category", "reason"})
"""Columns of text; all others are int64."""

_WHOLE = -1

_Row = tuple[Any, ...]


def check_directory(directory: Path) -> None:
    """Refuse to write where something is.

    Raises:
        UsageError: The directory holds something, is the current one, or the path is not a directory.
    """
    if not directory.name:
        raise UsageError(f"--parquet makes a directory of its own: name one below {directory}")
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} exists and is not an empty directory; name a new one")


def write_parquet(directory: Path, results: Sequence[TraceAnalysis | TraceFailure]) -> None:
    """Write the tables; the directory appears with all of them or not at all.

    Raises:
        UsageError: It cannot be written, or holds something.
    """
    check_directory(directory)
    part = directory.with_name(f".{secrets.token_hex(8)}.part")
    try:
        part.mkdir(parents=True)
        for name, rows in _tables(results).items():
            schema = pa.schema([(key, pa.string() if key in _TEXTS else pa.int64()) for key in _COLUMNS[name]])
            columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            pq.write_table(pa.table(arrays, schema=schema), part / f"{name}.parquet", compression="zstd")
        if directory.exists():
            directory.rmdir()
        part.rename(directory)
    except OSError as error:
        raise UsageError(f"cannot write {directory}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _tables(results: Sequence[TraceAnalysis | TraceFailure]) -> dict[str, list[_Row]]:
    tables: dict[str, list[_Row]] = {name: [] for name in _COLUMNS}
    for number, result in enumerate(results):
        if isinstance(result, TraceFailure):
            tables["traces"].append((number, readable(result.path), *[None] * 5, readable(result.error)))
            continue
        sizes = (result.rank, result.world_size, result.events, result.window.wall_ns, len(result.steps))
        tables["traces"].append((number, readable(result.path), *sizes, None))
        tables["budgets"] += [(number, *row) for row in _budgets(result)]
        tables["costs"] += [(number, *row) for row in _costs("operator", result.operators)]
        tables["costs"] += [(number, *row) for row in _costs("kernel", result.kernels)]
        tables["issues"] += [(number, reason, count) for reason, count in result.issues.items()]
    return tables


def _budgets(analysis: TraceAnalysis) -> Iterator[_Row]:
    for thread in analysis.threads:
        yield from _host(_WHOLE, f"{thread.pid}/{thread.tid}", thread.host)
    for device in analysis.devices:
        yield from _device(_WHOLE, device)
    for step in analysis.steps:
        if analysis.threads:
            yield from _host(step.step, f"{analysis.threads[0].pid}/{analysis.threads[0].tid}", step.host)
        for device in step.devices:
            yield from _device(step.step, device)


def _host(step: int, bearer: str, host: Sequence[HostCategory]) -> Iterator[_Row]:
    for category in host:
        yield step, "host", readable(bearer), category.category, category.ns


def _device(step: int, device: DeviceBudget) -> Iterator[_Row]:
    kinds = device.kinds
    for name, ns in (
        ("span", device.span_ns),
        ("busy", device.busy_ns),
        ("compute", kinds.compute_ns),
        ("communication", kinds.communication_ns),
        ("copy", kinds.copy_ns),
        ("overlap", kinds.overlap_ns),
    ):
        yield step, "device", device.device, name, ns
    for name, ns in device.idle_blame.items():
        yield step, "idle", device.device, name, ns


def _costs(kind: str, costs: Sequence[Cost]) -> Iterator[_Row]:
    for cost in costs:
        yield kind, readable(cost.name), cost.category, cost.count, cost.self_ns, cost.total_ns
