"""Reads a stored run: ``meta.json``, ``steps.parquet`` and ``stacks.txt.gz``."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from overhead_lens.captures.directory import Kind, damaged, read_meta
from overhead_lens.captures.files import STACKS
from overhead_lens.captures.model import Recorded
from overhead_lens.captures.tables import read_table
from overhead_lens.program.area import StepRecord
from overhead_lens.samplers.blocks import SampledBlock, read_blocks

if TYPE_CHECKING:
    import pandas as pd

STEPS = "steps.parquet"

FoundBy = Literal["explicit", "profiler", "optimizer", "module", "loop", "none"]

_COLUMNS = dict.fromkeys(StepRecord._fields, 0)


class Place(Struct, frozen=True):
    """Lines of a file, of one function; empty for any function there."""

    file: str
    function: str
    first_line: int
    last_line: int


class StoredRegion(Struct, frozen=True):
    """A region of the program: its place, and its time in bare steps.

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
        home: The loop that the steps are iterations of; None if it is not known.
        thread, thread_name: The thread with the steps; 0 and empty for the main one.
        begun_ns, first_ns, settled_ns: When the program began, the steps' source was first seen, and their times had settled, by
            ``time.perf_counter_ns``; 0 if that did not happen.
        sampled_ns: When the sampler's first turn began; 0 if none did.
        earlier: How many of its turns, from the first one on, are taken for those of steps that were given up for others.
        before: Steps that passed before the first one was looked at.
        lost, last_ns: Number of steps that exceeded the room for rows, and the end of the last of them; 0 if none did.
        samples, errors: Stacks taken by the sampler in all turns, and stacks that it could not read.
        rate_hz: Stacks a second that were requested in the turns.
        reason: Why there are no stacks; empty where there are.
        traced_regions: When recorded steps entered and left each region, by ``time.perf_counter_ns``: the first times of each.
        unplaced: Why the program's threads were not placed while it was sampled; empty where they were or need not be.
        running: Threads, and the share of the time between the turns that each was on a core, by its CPU clock.
        in_system: Threads, and the share of the same time that each was in the operating system.
    """

    program: list[str]
    exit_code: int
    pid: int
    wall_ns: int
    found_by: FoundBy
    where: str = ""
    home: Place | None = None
    thread: int = 0
    thread_name: str = ""
    first_ns: int = 0
    settled_ns: int = 0
    sampled_ns: int = 0
    earlier: int = 0
    begun_ns: int = 0
    before: int = 0
    lost: int = 0
    last_ns: int = 0
    samples: int = 0
    errors: int = 0
    reason: str = ""
    rate_hz: int = 100
    unplaced: str = ""
    running: list[tuple[int, float]] = msgspec.field(default_factory=list)
    in_system: list[tuple[int, float]] = msgspec.field(default_factory=list)
    regions: list[StoredRegion] = msgspec.field(default_factory=list)
    traced_regions: dict[str, list[tuple[int, int]]] = msgspec.field(default_factory=dict)
    compilations: list[Compilation] = msgspec.field(default_factory=list)
    rank: int | None = None
    warnings: list[str] = msgspec.field(default_factory=list)


RUN = Kind("run", "overhead-lens/run-capture/1", RunMeta)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was recorded.

    Attributes:
        steps: Fields of ``program.area.StepRecord`` as int64 columns, one row a step; None without steps.
        blocks: Sampled threads, in the order of time.
    """

    path: Path
    meta: RunMeta
    steps: pd.DataFrame | None
    blocks: Sequence[SampledBlock]


def read_run(path: Path) -> StoredRun:
    """Open a stored run.

    Raises:
        UsageError: The directory holds no complete, sound run.
    """
    meta = read_meta(path, RUN)
    try:
        steps = read_table(path / STEPS, _COLUMNS) if (path / STEPS).exists() else None
        return StoredRun(path, meta, steps, read_blocks(path / STACKS, meta.pid))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise damaged("run", path, error) from error
