"""Reads memory snapshots: what ``torch.cuda.memory._dump_snapshot`` writes (torch/cuda/memory.py, ``_snapshot``).

Of its dictionary, ``device_traces`` holds for every device the events that were recorded, oldest first, and ``segments`` what the
allocator held at the end. From that end the events are counted backwards. A release counts from when it was asked for
(``free_requested``). Sizes are those that were asked for, without the allocator's rounding.
"""

from __future__ import annotations

import mmap
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from overhead_lens.errors import UsageError
from overhead_lens.readers.kineto.columns import CODES, NUMBERS, Columns
from overhead_lens.readers.kineto.event import DAMAGED
from overhead_lens.readers.kineto.frame import framed
from overhead_lens.readers.kineto.model import StackFrame, Trace
from overhead_lens.readers.snapshot import machine
from overhead_lens.stats.values import Ints

_WINDOW_BYTES = 16 << 20
_FIRST_ROWS = 1 << 12
_BYTES_OF_OBJECT, _BYTES_OF_EVENT = 24, 48
_CUDA = 1
_NS_PER_US = 1000
_MOST_US = 2**63 // _NS_PER_US
_MOST_BYTES = 1 << 50


def read_snapshot(path: Path) -> Trace:
    """Read a memory snapshot as a trace without events.

    Raises:
        UsageError: The file cannot be read, is not a snapshot, or wants more than plain data.
    """
    try:
        with path.open("rb") as file, closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as mapped:
            tables = _run(mapped, path)
            return _trace(tables, mapped, path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


class _Tables:
    """What the machine makes.

    Room is reserved by the size of the file, and becomes memory only once it is used: growing would need it twice.
    """

    def __init__(self, size_bytes: int) -> None:
        self.state = np.zeros(machine.STATE_SIZE, dtype=np.int64)
        self.state[[machine.TRACES, machine.SEGMENTS_LIST]] = -1
        self.stack: tuple[Ints, ...] = (
            np.zeros(machine.STACK_DEPTH, dtype=np.int8),
            np.zeros(machine.STACK_DEPTH, dtype=np.int64),
            np.zeros(machine.STACK_DEPTH, dtype=np.int64),
        )
        room = _FIRST_ROWS + size_bytes // _BYTES_OF_OBJECT
        self.memo: tuple[Ints, ...] = np.zeros(room, dtype=np.int8), np.zeros(room, dtype=np.int64)
        self.rows = [
            np.zeros((_room(table, size_bytes), width), dtype=np.int64) for table, width in enumerate(machine.WIDTHS)
        ]
        self.slots = np.full(2 * _FIRST_ROWS, -1, dtype=np.int64)

    def close(self) -> None:
        """Let go of what only the machine needs."""
        self.memo, self.stack, self.slots = (), (), np.zeros(0, dtype=np.int64)

    def grow(self) -> None:
        """Give every table that is nearly full twice the room."""
        if self.state[machine.MEMO] + 2 > len(self.memo[0]):
            more = len(self.memo[0])
            self.memo = tuple(np.concatenate((part, np.zeros(more, dtype=part.dtype))) for part in self.memo)
        for table, rows in enumerate(self.rows):
            spare = machine.STACK_DEPTH if table in (machine.STACK_FRAMES, machine.MEMBERS) else 2
            if self.count(table) + spare > len(rows):
                self.rows[table] = np.concatenate((rows, np.zeros_like(rows)))
        if 2 * self.count(machine.STACKS) + 4 > len(self.slots):
            self.slots = np.full(2 * len(self.slots), -1, dtype=np.int64)
            machine.rehash(self.rows[machine.STACKS], self.count(machine.STACKS), self.slots)

    def count(self, table: int) -> int:
        """Rows of a table in use."""
        return int(self.state[machine.COUNTS + table])

    def used(self, table: int) -> Ints:
        """Rows of a table."""
        used: Ints = self.rows[table][: self.count(table)]
        return used


def _room(table: int, size_bytes: int) -> int:
    deep = table in (machine.STACK_FRAMES, machine.MEMBERS)
    rows = size_bytes // _BYTES_OF_EVENT if table == machine.EVENTS else 0
    return 2 * machine.STACK_DEPTH if deep else _FIRST_ROWS + rows


def _run(mapped: mmap.mmap, path: Path) -> _Tables:
    text = np.frombuffer(mapped, dtype=np.uint8)
    letters = np.frombuffer("".join(machine.WORDS).encode(), dtype=np.uint8)
    ends = np.cumsum([len(word) for word in machine.WORDS])
    tables = _Tables(len(text))
    seen = 0
    while True:
        status = machine.run(
            text,
            seen + _WINDOW_BYTES,
            tables.state,
            *tables.stack,
            *tables.memo,
            *tables.rows,
            tables.slots,
            letters,
            ends,
        )
        if status == machine.NEED_ROOM:
            tables.grow()
        elif status == machine.PAUSED:
            seen = int(tables.state[machine.POSITION])
            _forget(mapped, seen)
        else:
            break
    del text
    tables.close()
    if status == machine.REFUSED:
        raise UsageError(
            f"{path} is refused: its pickle imports or calls code, and a memory snapshot contains only plain data"
        )
    if status != machine.DONE:
        at = int(tables.state[machine.POSITION])
        raise UsageError(f"{path} is not a readable memory snapshot: its pickle is damaged or cut off at byte {at:,}")
    if tables.state[machine.TRACES] < 0:
        raise UsageError(f"{path} is not a memory snapshot of torch.cuda.memory: it has no device_traces")
    return tables


def _forget(mapped: mmap.mmap, until: int) -> None:
    """Let the system take back the part of the file that has been read."""
    if hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED, 0, until - until % mmap.PAGESIZE)


def _trace(tables: _Tables, mapped: mmap.mmap, path: Path) -> Trace:
    memory, issues = _memory(tables)
    origin_ns = int(memory["start_ns"].min()) if len(memory) else 0
    memory["start_ns"] -= origin_ns
    values: dict[str, Any] = {name: np.zeros(0, dtype=np.int32) for name in CODES}
    values |= {name: np.zeros(0, dtype=np.int64) for name in NUMBERS}
    events = framed(Columns(np.zeros(0, dtype=np.int8), values, [])).events
    count = tables.count(machine.EVENTS)
    return Trace(
        str(path), events, count, len(mapped), origin_ns, issues, memory=memory, stacks=_stacks(tables, mapped)
    )


def _stacks(tables: _Tables, mapped: mmap.mmap) -> tuple[tuple[StackFrame, ...], ...]:
    """Every distinct stack, the innermost frame first."""
    texts: dict[int, str] = {}

    def told(place: int) -> str:
        if place not in texts:
            begin, size = place >> machine.LENGTH_BITS, place & ((1 << machine.LENGTH_BITS) - 1)
            texts[place] = mapped[begin : begin + size].decode("utf-8", "surrogateescape") if place >= 0 else ""
        return texts[place]

    frames = [StackFrame(told(file), line, told(name)) for file, line, name in tables.used(machine.FRAMES).tolist()]
    flat = tables.used(machine.STACK_FRAMES)[:, 0]
    return tuple(
        tuple(frames[frame] for frame in flat[first : first + count].tolist())
        for first, count, _ in tables.used(machine.STACKS).tolist()
    )


def _memory(tables: _Tables) -> tuple[pd.DataFrame, dict[str, int]]:
    """The memory frame, and what was left out of it."""
    members = tables.used(machine.MEMBERS)
    devices = members[members[:, machine.MEMBER_OF] == tables.state[machine.TRACES], machine.MEMBER].tolist()
    events = tables.used(machine.EVENTS)
    frames = []
    inside = 0
    for device, owner in enumerate(devices):
        mine = np.flatnonzero(events[:, machine.EVENT_OWNER] == owner)
        inside += len(mine)
        if len(mine):
            frames.append(_device(device, events, mine, _held_at_the_end(tables, device)))
    issues = {DAMAGED: len(events) - inside} if len(events) > inside else {}
    if not frames:
        nothing = np.zeros(0, dtype=np.int64)
        return _frame(0, events, nothing, nothing, nothing, nothing, nothing), issues
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True), issues


def _held_at_the_end(tables: _Tables, device: int) -> tuple[int, int]:
    """Bytes of the device that tensors had, and that the allocator held; -1 where the snapshot does not say."""
    segments, blocks = tables.used(machine.SEGMENTS), tables.used(machine.BLOCKS)
    if tables.state[machine.SEGMENTS_LIST] < 0:
        return -1, -1
    mine = segments[segments[:, machine.SEGMENT_DEVICE] == device]
    inside = np.isin(blocks[:, machine.BLOCK_OWNER], mine[:, machine.SEGMENT_BLOCKS])
    inside &= blocks[:, machine.BLOCK_STATE] == machine.ALLOCATED
    return _sum(blocks[inside, machine.BLOCK_SIZE]), _sum(mine[:, machine.SEGMENT_SIZE])


def _sum(sizes: Ints) -> int:
    """Sizes that a device can have; -1 for a damaged one."""
    return int(sizes.sum()) if ((sizes >= 0) & (sizes < _MOST_BYTES)).all() else -1


_RESERVES = {
    machine.SEGMENT_ALLOC: 1, machine.SEGMENT_MAP: 1, machine.SEGMENT_FREE: -1, machine.SEGMENT_UNMAP: -1,
}  # fmt: skip


def _device(device: int, events: Ints, rows: Ints, held: tuple[int, int]) -> pd.DataFrame:
    """The memory frame of one device, which some rows of the events are about."""
    action, size = events[rows, machine.EVENT_ACTION], events[rows, machine.EVENT_SIZE]
    size = np.where((size < 0) | (size >= _MOST_BYTES), 0, size)
    asked = (action == machine.FREE_REQUESTED).any()
    releases = action == (machine.FREE_REQUESTED if asked else machine.FREE_COMPLETED)
    change = np.where(action == machine.ALLOC, size, np.where(releases, -size, 0))
    reserves = np.zeros(len(rows), dtype=np.int64)
    for which, sign in _RESERVES.items():
        reserves[action == which] = sign * size[action == which]
    live, reserved = _backwards(change, held[0]), _backwards(reserves, held[1])
    mine = np.flatnonzero((change != 0) | (reserves != 0))
    time_us = events[rows, machine.EVENT_TIME]
    start_ns = (time_us if ((time_us > 0) & (time_us < _MOST_US)).all() else np.arange(len(rows))) * _NS_PER_US
    return _frame(device, events, rows[mine], change[mine], live[mine], reserved[mine], start_ns[mine])


def _backwards(change: Ints, end: int) -> Ints:
    """The value after each change, where the last is known; -1 where it is not."""
    after = np.cumsum(change)
    return np.maximum(after + (end - int(after[-1])), 0) if end >= 0 else np.full(len(change), -1)


def _frame(
    device: int, events: Ints, rows: Ints, change: Ints, live: Ints, reserved: Ints, start_ns: Ints
) -> pd.DataFrame:
    nowhere: Any = pd.Index([""], dtype=object)
    nobody = pd.Categorical.from_codes(np.zeros(len(rows), dtype=np.int8), categories=nowhere)
    columns = {
        "pid": nobody,
        "tid": nobody,
        "start_ns": start_ns,
        "address": events[rows, machine.EVENT_ADDRESS],
        "bytes": change,
        "allocated_bytes": live,
        "reserved_bytes": reserved,
        "device_type": np.full(len(rows), _CUDA),
        "device": np.full(len(rows), device),
        "stack": events[rows, machine.EVENT_STACK],
    }
    made: pd.DataFrame = pd.DataFrame(columns)
    return made
