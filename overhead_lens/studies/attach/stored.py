"""Reads the stored watch of a process: ``meta.json`` and ``stacks.txt.gz``."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec

from overhead_lens.captures.directory import Kind, damaged, read_meta
from overhead_lens.captures.files import STACKS
from overhead_lens.captures.model import Recorded
from overhead_lens.readers.py_spy.threads import SampledThread, joined
from overhead_lens.samplers.blocks import read_blocks
from overhead_lens.studies.attach.slowdown import Reading


class ProcessMeta(Recorded, frozen=True, kw_only=True):
    """``meta.json`` of a watched process.

    Attributes:
        process_command: The process's command line; ``command`` is that of the recording.
        python, torch: Its versions; None if there is none, or it is unknown.
        duration_ns: How long it was watched.
        samples, errors: Stacks taken, and stacks that could not be read.
        before, during: Its CPU clock before it was watched, and meanwhile.
        unplaced: Why its threads were not placed while it was watched; empty if they were or need not be.
        running: Threads, and the share of the watch that each was on a core, by its CPU clock.
        in_system: Threads, and the share of the same time that each was in the operating system.
        sees: What the sampler sees and does not see, a sentence.
    """

    pid: int
    process_command: str
    python: str | None
    torch: str | None
    duration_ns: int
    rate_hz: int
    subprocesses: bool
    samples: int
    errors: int
    before: list[Reading]
    during: list[Reading]
    unplaced: str = ""
    running: list[tuple[int, float]] = msgspec.field(default_factory=list)
    in_system: list[tuple[int, float]] = msgspec.field(default_factory=list)
    sees: str
    warnings: list[str]


PROCESS = Kind("process", "overhead-lens/process-capture/1", ProcessMeta)


def read_process(path: Path) -> tuple[ProcessMeta, list[SampledThread]]:
    """Metadata and threads of a stored watch.

    Raises:
        UsageError: The directory holds no complete, sound watch of a process.
    """
    meta = read_meta(path, PROCESS)
    try:
        threads = joined(thread for block in read_blocks(path / STACKS, meta.pid) for thread in block.threads)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise damaged("process", path, f"{STACKS}: {error}") from error
    if not threads or meta.duration_ns <= 0:
        raise damaged("process", path, f"{STACKS}: it holds no thread")
    return meta, threads
