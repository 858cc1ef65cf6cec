"""Reads a stored run: ``meta.json``, ``steps.parquet`` and ``stacks.txt.gz``."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import pandas as pd
from msgspec import Meta, Struct

from overhead_lens.captures.directory import Kind, damaged, read_meta
from overhead_lens.captures.files import STACKS
from overhead_lens.captures.model import Recorded
from overhead_lens.captures.tables import read_table
from overhead_lens.readers.py_spy.threads import SampledThread, read_threads

STEPS = "steps.parquet"

_COLUMNS = dict.fromkeys(
    ("begin_ns", "end_ns", "phase", "user_ns", "system_ns", "faults", "switches", "gc_ns", "compile_ns", "data_ns"), 0
)


class Place(Struct, frozen=True):
    """Lines of a file, of one function; empty for any function there."""

    file: str
    function: str
    first_line: int
    last_line: int


class Region(Struct, frozen=True):
    """A region of the program: where it stands, and how long it took in bare steps.

    Attributes:
        count: Times it was left.
        ns, squares_ns2: Sum of its times, and of their squares.
        blocks: Count and sum of blocks of consecutive times; none in runs of earlier versions.
    """

    name: str
    places: list[Place]
    count: Annotated[int, Meta(ge=1)]
    ns: float
    squares_ns2: float
    blocks: list[tuple[Annotated[int, Meta(ge=1)], float]] = msgspec.field(default_factory=list)


class Compilation(Struct, frozen=True):
    """A compilation, by ``time.perf_counter_ns``; ``reason`` is empty for a first one."""

    begin_ns: int
    end_ns: int
    reason: str


class RunMeta(Recorded, frozen=True, kw_only=True):
    """``meta.json`` of a run.

    Attributes:
        program: Command line of the program, without ours.
        exit_code: As the shell would say; negative for a signal.
        pid: The program's process.
        wall_ns: From the first line of the program to its end.
        found_by: Source of the steps: ``explicit``, ``profiler``, ``optimizer``, ``module``, ``loop`` or ``none``.
        where: The step's place as people read it, ``train.py:14``.
        home: The loop that the steps are iterations of; None where it is not known.
        before: Steps that passed before the first one was looked at.
        samples, errors: Stacks taken by the sampler in all turns, and stacks that it could not read.
        reason: Why there are no stacks; empty where there are.
        warnings: Of the recording.
    """

    program: list[str]
    exit_code: int
    pid: int
    wall_ns: int
    found_by: str
    where: str = ""
    home: Place | None = None
    before: int = 0
    samples: int = 0
    errors: int = 0
    reason: str = ""
    regions: list[Region] = msgspec.field(default_factory=list)
    compilations: list[Compilation] = msgspec.field(default_factory=list)
    rank: int | None = None
    warnings: list[str] = msgspec.field(default_factory=list)


RUN = Kind("run", "overhead-lens/run-capture/1", RunMeta)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was recorded.

    Attributes:
        steps: Fields of ``program.area.Step`` as int64 columns, one row a step; None without steps.
        threads: Sampled threads by turn of the sampler.
    """

    path: Path
    meta: RunMeta
    steps: pd.DataFrame | None
    threads: Sequence[Sequence[SampledThread]]


def read_run(path: Path) -> StoredRun:
    """Open a stored run.

    Raises:
        UsageError: The directory holds no complete, sound run.
    """
    meta = read_meta(path, RUN)
    try:
        steps = read_table(path / STEPS, _COLUMNS) if (path / STEPS).exists() else None
        return StoredRun(path, meta, steps, _turns(path / STACKS, meta.pid))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise damaged("run", path, error) from error


def _turns(path: Path, pid: int) -> list[list[SampledThread]]:
    if not path.exists():
        return []
    turns: dict[str, list[str]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as source:
        for line in source:
            turn, _, stack = line.partition(";")
            turns.setdefault(turn, []).append(stack)
    return [read_threads(lines, pid) for lines in turns.values()]
