"""Memory that a program shares with ``overhead-lens run``: words for the two to talk, and one row a step.

A file in the capture's folder, mapped by both. So the rows outlive a program that is killed or ends by ``os._exit``, and nothing
is open in the program that a child of it could inherit.
"""

from __future__ import annotations

import mmap
import os
import struct
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

FILE = ".steps"
NOTES = "program.jsonl"

_WORDS = 64
_ROW = struct.Struct("10q")
_MOST_ROWS = 1_000_000
_ROW_BYTES = _ROW.size
_FIRST = _WORDS * 8
_BYTES = _FIRST + _MOST_ROWS * _ROW_BYTES
# A step ends in a microsecond: names of this module are found faster than attributes.
_pack = _ROW.pack_into
_ROWS, _LOST, _LAST_NS = 7, 12, 13


class Word(IntEnum):
    """Words at the start of the area, int64.

    The recorder writes ``RESUMED``, ``ANSWERED``, ``RELEASED``, ``REFUSED`` and ``PLACED``, both write ``ENOUGH``, and the
    program all others: it numbers its requests in ``REQUESTED``, and the recorder answers with the same number. Odd requests
    tell it to sample, even ones to rest.
    """

    STARTED_NS = 0  # the program's own code began, perf_counter_ns
    FINISHED_NS = 1  # ... and ended
    FOUND = 2  # steps are being measured
    REQUESTED = 3
    ANSWERED = 4
    ENOUGH = 5  # no more stacks of these steps are needed
    REFUSED = 6  # there is no sampler, or none any more
    ROWS = _ROWS
    THREAD = 8  # the thread with the steps, as the operating system knows it
    PLACED = 9  # the core on which the thread with the steps is kept, counted from 1; a child inherits it
    HELD = 10  # number of the request for which the program is held
    RELEASED = 11  # number of the last request whose hold is over
    LOST = _LOST  # steps for whose rows there was no room
    LAST_NS = _LAST_NS  # end of the last of them
    RESUMED = 14  # number of the last request for which the sampler has gone on


class Phase(IntEnum):
    """The instrument that was active during a step; ``AFTERWARDS`` what recorded devices is still there and slows launches."""

    WARM_UP = 0
    BARE = 1
    ATTACHING = 2
    SAMPLED = 3
    TRACED = 4
    AFTERWARDS = 5


class StepRecord(NamedTuple):
    """One step: its time, and counters of the main thread at its end.

    Attributes:
        begin_ns, end_ns: By ``time.perf_counter_ns``.
        phase: A ``Phase``.
        user_ns, system_ns, faults, switches: CPU time, minor page faults, involuntary context switches; 0 where steps are short.
        gc_ns, compile_ns, data_ns: Time in the garbage collector, in compilations, in waiting for a DataLoader.
    """

    begin_ns: int
    end_ns: int
    phase: int
    user_ns: int
    system_ns: int
    faults: int
    switches: int
    gc_ns: int
    compile_ns: int
    data_ns: int


class Area:
    """The shared memory; ``create`` in the recorder, ``open`` in the program."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._words = memoryview(memory)[: _WORDS * 8].cast("q")
        self._next = _FIRST

    @classmethod
    def create(cls, folder: Path) -> Area:
        """A fresh area in ``folder``.

        Raises:
            OSError: There is no room for all of it.
        """
        with (folder / FILE).open("wb") as file:
            # Where a disk is full, writing to a page that is not there would kill the program (SIGBUS).
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, _BYTES)
            file.truncate(_BYTES)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Area:
        """The area in ``folder``."""
        with (folder / FILE).open("r+b") as file:
            return cls(mmap.mmap(file.fileno(), _BYTES))

    def read(self, word: Word) -> int:
        """The value of a word."""
        return self._words[word]

    def write(self, word: Word, value: int) -> None:
        """Set a word."""
        self._words[word] = value

    def add(self, *row: int) -> None:
        """Append the fields of a ``StepRecord``; those beyond the area's end are lost, and counted."""
        if self._next < _BYTES:
            _pack(self._memory, self._next, *row)
            self._next += _ROW_BYTES
            self._words[_ROWS] += 1
        else:
            self._words[_LOST] += 1
            self._words[_LAST_NS] = row[1]

    def restart(self) -> None:
        """Drop all rows."""
        self._next = _FIRST
        self._words[_ROWS] = self._words[_LOST] = self._words[_LAST_NS] = 0

    def close(self, folder: Path) -> None:
        """Remove the file in ``folder``, with its rows; the words remain as they are."""
        words = self._words
        self._words = memoryview(bytes(words)).cast("q")
        words.release()
        self._memory.close()
        (folder / FILE).unlink(missing_ok=True)

    def rows(self) -> list[StepRecord]:
        """The rows so far."""
        end = _FIRST + self._words[Word.ROWS] * _ROW_BYTES
        return [StepRecord(*fields) for fields in _ROW.iter_unpack(self._memory[_FIRST:end])]
