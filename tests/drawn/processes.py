"""Drawing watches of processes: stacks of their threads, readings of their CPU clock."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from overhead_lens.captures.directory import write_meta
from overhead_lens.studies.attach.slowdown import Reading
from overhead_lens.studies.attach.stored import PROCESS, ProcessMeta

S = 1_000_000_000
SEES = "it sees what it sees"
WORK = "train (train.py:3)"
SLEEP = "train (train.py:4);clock_nanosleep (libc.so.6)"


def readings(*cpu_ns: int) -> list[Reading]:
    """The CPU clock read once a second."""
    return [Reading(at * S, value) for at, value in enumerate(cpu_ns)]


STEADY = readings(0, S, 2 * S, 3 * S)


def draw_process(folder: Path, *lines: str, **changed: Any) -> Path:
    """A stored watch."""
    folder.mkdir()
    with gzip.open(folder / "stacks.txt.gz", "wt") as target:
        target.writelines(f"{line}\n" for line in lines)
    fields: dict[str, Any] = {
        "pid": 10,
        "process_command": "python train.py",
        "python": "3.11.7",
        "torch": "2.13.0",
        "duration_ns": 10 * S,
        "rate_hz": 50,
        "subprocesses": False,
        "samples": 1000,
        "errors": 0,
        "before": STEADY,
        "during": [Reading(3 * S, 3 * S), Reading(13 * S, 12 * S)],
        "sees": SEES,
        "warnings": [],
    }
    write_meta(folder, PROCESS, ProcessMeta(**{**fields, **changed}))
    return folder


def thread(tid: int, name: str, work: int, sleep: int = 0) -> list[str]:
    lines = [f"thread ({tid}): {name};{WORK} {work}", f"thread ({tid}): {name};{SLEEP} {sleep}"]
    return [line for line in lines if not line.endswith(" 0")]
