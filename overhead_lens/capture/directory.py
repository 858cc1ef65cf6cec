"""A capture on disk: one directory whose ``meta.json``, written last, says that it is complete.

====================  ================================================================================
``meta.json``         what was measured, how, where; its presence means that the capture is complete
``clock.parquet``     every timed block: process, block, calls, wall_ns, reference_ns, minor_faults, system_ns, compiles
``kineto.json.gz``    torch.profiler's export of the measured loop, byte for byte what it wrote
``kineto_stack.json.gz``  the same with Python stacks, a few calls: for the picture, not for numbers
``stacks.txt.gz``     py-spy's folded stacks, a root frame ``sampler N`` before each
``calibration.json``  what torch.profiler's events cost here: calibration calls timed bare and recorded
``ablation.parquet``  every timed block of rungs, and of a ladder's single steps: process, kind (rung, step; of a ladder), rung,
                      block, calls, wall_ns, reference_ns, minor_faults (of rungs)
``callgrind.out.gz``  callgrind's counts of the measured loop, byte for byte what it wrote; with ``--instructions``
``trace.pftrace``     all of it for the Perfetto UI
``*.log``             what each worker printed
====================  ================================================================================
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from overhead_lens.errors import MeasurementError, UsageError

SCHEMA = "overhead-lens/capture/1"
LADDER_SCHEMA = "overhead-lens/ladder-capture/1"
SWEEP_SCHEMA = "overhead-lens/sweep-capture/1"
COUNTS_SCHEMA = "overhead-lens/counts/1"

META = "meta.json"
CLOCK = "clock.parquet"
KINETO = "kineto.json.gz"
KINETO_STACK = "kineto_stack.json.gz"
STACKS = "stacks.txt.gz"
PERFETTO = "trace.pftrace"
ABLATION = "ablation.parquet"
CALIBRATION = "calibration.json"
CALLGRIND = "callgrind.out.gz"

MARK = ".claimed"

# What the analysis takes from meta.json, with its type; all else is for people.
_REQUIRED: Mapping[str, type] = {
    "scenario": str,
    "variant": str,
    "compile": bool,
    "device": str,
    "params": dict,
    "work": dict,
    "trace": dict,
    "samples": dict,
}
_OPTIONAL: Mapping[str, tuple[type, ...]] = {
    "guards": (dict, type(None)),
    "peaks": (dict, type(None)),
    "instructions": (dict, type(None)),
    "published": (list,),
    "warnings": (list,),
    "environment": (dict,),
    "recorded_with": (str,),
}
_REQUIRED_OF_LADDER: Mapping[str, type] = {
    "scenario": str,
    "variant": str,
    "device": str,
    "params": dict,
    "names": list,
    "reasons": dict,
    "pairs": dict,
}
_REQUIRED_OF_PUBLISHED: Mapping[str, Any] = {
    "label": str,
    "ns": (int, float),
    "variant": str,
    "source": str,
    "params": dict,
    "rung": str,
}
_LEAST = {"process": 0, "block": 0, "calls": 1, "wall_ns": 0, "reference_ns": 1, "minor_faults": 0}
_LEAST_OF_LADDER = {name: least for name, least in _LEAST.items() if name != "minor_faults"}


@dataclass(frozen=True, slots=True)
class Capture:
    """A complete capture.

    Attributes:
        path: Its directory.
        meta: Contents of ``meta.json``.
        clock: Rows of ``clock.parquet``.
        folded: Lines of ``stacks.txt.gz``; empty without samples.
        calibration: Contents of ``calibration.json``; None without one.
        ablation: Rows of ``ablation.parquet``; None without one.
    """

    path: Path
    meta: Mapping[str, Any]
    clock: pd.DataFrame
    folded: tuple[str, ...]
    calibration: Mapping[str, Any] | None
    ablation: pd.DataFrame | None

    @property
    def kineto(self) -> Path | None:
        """The plain trace; None where none was recorded."""
        return _existing(self.path / KINETO)

    @property
    def kineto_stack(self) -> Path | None:
        """The trace with Python stacks; None where none was recorded."""
        return _existing(self.path / KINETO_STACK)

    @property
    def callgrind(self) -> Path | None:
        """Callgrind's counts; None where none were made."""
        return _existing(self.path / CALLGRIND)


def new_directory(parent: Path, label: str, now: datetime) -> Path:
    """Make a directory that no other run has: ``label-YYYYmmdd-HHMMSS``, numbered where two runs start together.

    Raises:
        MeasurementError: The place cannot be written.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip("-.") or "capture"
    stem = f"{safe}-{now:%Y%m%d-%H%M%S}"
    for attempt in range(1, 10_000):
        path = parent / (stem if attempt == 1 else f"{stem}-{attempt}")
        try:
            parent.mkdir(parents=True, exist_ok=True)
            path.mkdir()
        except FileExistsError:
            if not parent.is_dir():
                break
            continue
        except OSError as error:
            raise MeasurementError(cannot_write(parent, error)) from error
        return path
    raise MeasurementError(f"cannot make a directory in {parent}; choose another place with --output")


def claim_directory(path: Path) -> Path:
    """Make the directory that the user named; it may exist if it is empty.

    Raises:
        UsageError: It holds something.
        MeasurementError: It cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise UsageError(f"{path} is not empty; nothing is overwritten, name another --output")
        # Two runs that were given the same empty directory: only one can create the mark.
        (path / MARK).open("x").close()
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"{path} is taken; nothing is overwritten, name another --output") from error
    except OSError as error:
        raise MeasurementError(cannot_write(path, error)) from error
    return path


def release_directory(path: Path) -> None:
    """Take the mark of ``claim_directory`` away."""
    (path / MARK).unlink(missing_ok=True)


def cannot_write(path: Path, error: OSError) -> str:
    """The line for an output place that refuses."""
    return f"cannot write to {path}: {error.strerror or error}; choose another place with --output"


def write_clock(path: Path, rows: list[dict[str, int]]) -> None:
    """Write the raw block timings."""
    pd.DataFrame(rows).astype("int64").to_parquet(path / CLOCK, index=False)


def write_stacks(path: Path, folded: list[str]) -> None:
    """Write folded stacks of several samplers, each under a root frame of its own."""
    with gzip.open(path / STACKS, "wt", encoding="utf-8") as target:
        for number, text in enumerate(folded):
            target.writelines(f"sampler {number} (py-spy:1);{line}\n" for line in text.splitlines() if line)


def write_calibration(path: Path, calibration: Mapping[str, Any]) -> None:
    """Write what the profiler's events cost."""
    (path / CALIBRATION).write_text(json.dumps(calibration) + "\n", encoding="utf-8")


def write_ablation(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the raw block timings of the rungs."""
    pd.DataFrame(rows).to_parquet(path / ABLATION, index=False)


def write_blocks(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the raw block timings of a sweep."""
    pd.DataFrame(rows).to_parquet(path / CLOCK, index=False)


def write_meta(path: Path, meta: Mapping[str, Any], schema: str = SCHEMA) -> None:
    """Write ``meta.json``, whole or not at all: with it the capture is complete."""
    for log in path.glob("*.log"):
        if log.stat().st_size == 0:
            log.unlink()
    release_directory(path)
    partial = path / f".{META}.partial"
    partial.write_text(json.dumps({"schema": schema, **meta}, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, path / META)


def read_capture(path: Path) -> Capture:
    """Open a complete capture.

    Raises:
        UsageError: Not a capture, an interrupted one, one of an unknown schema, or a damaged one.
    """
    meta = _read_meta(path)
    try:
        clock = pd.read_parquet(path / CLOCK)
        folded = _read_lines(path / STACKS)
        calibration = _read_calibration(path / CALIBRATION)
        ablation = _read_ablation(path / ABLATION)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise UsageError(f"the capture {path} is damaged: {str(error).splitlines()[0]}") from error
    fault = _fault_of_meta(meta) or _fault_of_clock(clock)
    if not fault and ablation is not None:
        fault = _fault_of_columns(ablation, ABLATION, _LEAST_OF_LADDER, ("rung",))
    if fault:
        raise UsageError(f"the capture {path} is damaged: {fault}")
    return Capture(path, meta, clock, folded, calibration, ablation)


def read_ladder(path: Path) -> tuple[dict[str, Any], pd.DataFrame]:
    """Metadata and timed blocks of a stored ladder.

    Raises:
        UsageError: Not a ladder, an interrupted one, or a damaged one.
    """
    meta = _read_meta(path, LADDER_SCHEMA)
    try:
        rows = _read_ablation(path / ABLATION)
    except (OSError, EOFError, ValueError) as error:
        raise UsageError(f"the ladder {path} is damaged: {(str(error).splitlines() or [''])[0]}") from error
    if rows is None:
        raise UsageError(f"the ladder {path} is damaged: it has no {ABLATION}")
    fault = (
        _fault_of_types(meta, _REQUIRED_OF_LADDER)
        or _fault_of_reasons(meta)
        or _fault_of_published(meta)
        or _fault_of_ablation(rows)
    )
    if fault:
        raise UsageError(f"the ladder {path} is damaged: {fault}")
    return meta, rows


def read_sweep(path: Path) -> tuple[dict[str, Any], pd.DataFrame]:
    """Metadata and timed blocks of a stored sweep.

    Raises:
        UsageError: Not a sweep, an interrupted one, or a damaged one.
    """
    meta = _read_meta(path, SWEEP_SCHEMA)
    try:
        rows = pd.read_parquet(path / CLOCK)
    except (OSError, EOFError, ValueError) as error:
        raise UsageError(f"the sweep {path} is damaged: {str(error).splitlines()[0]}") from error
    missing = {"process", "variant", "point", "block", "calls", "wall_ns", "reference_ns"} - set(rows.columns)
    if missing or rows.empty:
        raise UsageError(f"the sweep {path} is damaged: {CLOCK} has no {', '.join(sorted(missing)) or 'rows'}")
    return meta, rows


def read_counts(path: Path) -> tuple[dict[str, Any], Path]:
    """Metadata and callgrind's output of stored instruction counts.

    Raises:
        UsageError: Not such counts, or interrupted ones.
    """
    meta = _read_meta(path, COUNTS_SCHEMA)
    output = path / CALLGRIND
    if not output.is_file():
        raise UsageError(f"the counts {path} are damaged: they have no {CALLGRIND}")
    return meta, output


def is_ladder(path: Path) -> bool:
    """Whether the directory holds a ladder rather than a capture of one call."""
    return schema_of(path) == LADDER_SCHEMA


def is_sweep(path: Path) -> bool:
    """Whether the directory holds a sweep rather than a capture of one call."""
    return schema_of(path) == SWEEP_SCHEMA


def schema_of(path: Path) -> object:
    """The schema that ``meta.json`` names; None where nothing can be read."""
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return meta.get("schema") if isinstance(meta, dict) else None


def _fault_of_meta(meta: Mapping[str, Any]) -> str | None:
    if fault := _fault_of_types(meta, _REQUIRED):
        return fault
    work = [meta["work"].get(name) for name in ("units", "flops", "bytes")]
    if not all(isinstance(each, int) for each in work) or work[0] < 1:
        return f"{META}: work is {meta['work']}"
    counted = meta.get("instructions") or {}
    if counted and not (isinstance(counted.get("calls"), int) and counted["calls"] > 0):
        return f"{META}: instructions are {counted}"
    return _fault_of_peaks(meta.get("peaks") or {})


def _fault_of_peaks(peaks: Mapping[str, Any]) -> str | None:
    """Peaks are divided by: what the analysis takes of them must be there and positive."""
    if not peaks:
        return None
    copy = peaks.get("copy")
    levels = copy if isinstance(copy, list) and copy and all(isinstance(each, dict) for each in copy) else [{}]
    rates = [peaks.get("flops_per_s"), *(level.get(name) for level in levels for name in ("bytes", "bytes_per_s"))]
    sound = all(isinstance(rate, (int, float)) and rate > 0 for rate in rates)
    return None if sound else f"{META}: peaks are {peaks}"


def _fault_of_types(meta: Mapping[str, Any], required: Mapping[str, type]) -> str | None:
    for name, kind in required.items():
        if not isinstance(meta.get(name), kind):
            return f"{META}: {name} is {f'not of type {kind.__name__}' if name in meta else 'missing'}"
    for name, kinds in _OPTIONAL.items():
        if name in meta and not isinstance(meta[name], kinds):
            return f"{META}: {name} is not of type {kinds[0].__name__}"
    return None


def _fault_of_reasons(meta: Mapping[str, Any]) -> str | None:
    for name in ("reasons", "pairs"):
        if not all(reason is None or isinstance(reason, str) for reason in meta[name].values()):
            return f"{META}: {name} are {meta[name]}"
    return None


def _fault_of_published(meta: Mapping[str, Any]) -> str | None:
    for each in meta.get("published", ()):
        sound = isinstance(each, dict) and all(
            isinstance(each.get(name), kind) for name, kind in _REQUIRED_OF_PUBLISHED.items()
        )
        if not sound:
            return f"{META}: a published figure is {each}"
    return None


def _fault_of_ablation(rows: pd.DataFrame) -> str | None:
    if fault := _fault_of_columns(rows, ABLATION, _LEAST_OF_LADDER, ("kind", "rung", "minor_faults")):
        return fault
    timed = rows[rows["kind"] == "rung"]
    if timed.empty:
        return f"{ABLATION} has no rows of a rung"
    faults = pd.to_numeric(timed["minor_faults"], errors="coerce")
    return None if (faults >= 0).all() else f"{ABLATION}: minor_faults must hold numbers of at least 0"


def _fault_of_clock(clock: pd.DataFrame) -> str | None:
    return _fault_of_columns(clock, CLOCK, _LEAST)


def _fault_of_columns(
    rows: pd.DataFrame, file: str, least_of: Mapping[str, int], others: tuple[str, ...] = ()
) -> str | None:
    missing = sorted({*least_of, *others} - set(rows.columns))
    if missing or rows.empty:
        return f"{file} has no {', '.join(missing) or 'rows'}"
    for name, least in least_of.items():
        if not pd.api.types.is_integer_dtype(rows[name]) or rows[name].isna().any() or rows[name].min() < least:
            return f"{file}: {name} must hold integers of at least {least}"
    return None


def _read_meta(path: Path, wanted: str = SCHEMA) -> dict[str, Any]:
    if not os.path.isdir(path):  # noqa: PTH112  (Path.is_dir raises for a name that is too long)
        raise UsageError(f"no capture {path}")
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} is not a complete capture: it has no {META} (was it interrupted?)") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"the capture {path} is damaged: {META}: {error}") from error
    schema = meta.get("schema") if isinstance(meta, dict) else None
    if schema == LADDER_SCHEMA and wanted == SCHEMA:
        raise UsageError(f"{path} is a ladder, not the capture of a call; `overhead-lens report` shows it")
    if schema != wanted:
        raise UsageError(f"the capture {path} has schema {schema!r}; this version reads {wanted!r}")
    result: dict[str, Any] = meta
    return result


def _read_lines(path: Path) -> tuple[str, ...]:
    if not path.exists():
        return ()
    with gzip.open(path, "rt", encoding="utf-8") as source:
        return tuple(source)


def _read_ablation(path: Path) -> pd.DataFrame | None:
    """Timed blocks of rungs; None where there is no file."""
    return pd.read_parquet(path) if path.exists() else None


def _read_calibration(path: Path) -> dict[str, Any] | None:
    """A calibration; None where there is no file.

    Raises:
        ValueError: The file holds something else.
    """
    if not path.exists():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    needed = {"flags", "kind", "name", "bare_ns", "traced_ns", "outer", "nested", "others", "span_ns"}
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) and needed <= set(row) for row in rows):
        raise ValueError(f"{path.name} holds no calibration")
    return dict(found)


def _existing(path: Path) -> Path | None:
    return path if path.exists() else None
