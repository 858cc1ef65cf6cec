"""A capture on disk: its directory is made, its files (``files.py``) are written, ``meta.json`` last, and read again."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from overhead_lens.capture.files import (
    ABLATION,
    CALIBRATION,
    CALLGRIND,
    CLOCK,
    KINETO,
    KINETO_STACK,
    MARK,
    META,
    STACKS,
)
from overhead_lens.capture.soundness import fault_of_capture, fault_of_ladder, fault_of_sweep
from overhead_lens.errors import MeasurementError, UsageError

SCHEMA = "overhead-lens/capture/1"
LADDER_SCHEMA = "overhead-lens/ladder-capture/1"
SWEEP_SCHEMA = "overhead-lens/sweep-capture/1"
COUNTS_SCHEMA = "overhead-lens/counts/1"


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


@contextmanager
def recording_directory(output: Path | None, parent: Path, label: str) -> Iterator[Path]:
    """The directory of what is being recorded: ``output``, or a new one under ``parent`` where none is named.

    Nothing of it stays where the input turns out to be wrong.

    Raises:
        UsageError: ``output`` holds something.
        MeasurementError: The place cannot be written.
    """
    made = [path for path in _with_parents(output or parent) if not path.exists()]
    if output is not None:
        folder = claim_directory(output)
    else:
        folder = new_directory(parent, label, datetime.now().astimezone())
        made = [folder, *made]
    try:
        yield folder
    except UsageError:
        _withdraw(folder, made)
        raise


def _with_parents(path: Path) -> list[Path]:
    return [path, *path.parents]


def _withdraw(folder: Path, made: list[Path]) -> None:
    """Empty ``folder``, which was empty before, and remove the directories that were ``made``, the innermost first."""
    with suppress(OSError):
        empty(folder)
        for path in made:
            path.rmdir()


def empty(folder: Path) -> None:
    """Remove everything in a directory; what links point to stays."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


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
    if fault := fault_of_capture(meta, clock, ablation):
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
    if fault := fault_of_ladder(meta, rows):
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
    if fault := fault_of_sweep(rows):
        raise UsageError(f"the sweep {path} is damaged: {fault}")
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
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) and _is_whole(row) for row in rows):
        raise ValueError(f"{path.name} holds no calibration")
    return dict(found)


def _is_whole(row: Mapping[str, Any]) -> bool:
    """Whether a row of a calibration has what its kind has."""
    more = {"bytes", "copy_ns"} if "bytes" in row else {"outer", "nested", "others", "span_ns"}
    of_kind = {"evaluated"} if row.get("kind") == "backward" else set()
    return {"flags", "kind", "name", "bare_ns", "traced_ns"} | more | of_kind <= set(row)


def _existing(path: Path) -> Path | None:
    return path if path.exists() else None
