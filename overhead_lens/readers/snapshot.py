"""Reads memory snapshots: what ``torch.cuda.memory._dump_snapshot`` writes (torch/cuda/memory.py, ``_snapshot``).

``device_traces`` holds the recorded events of every device, oldest first, and ``segments`` what the allocator held at the end.
Events are counted backwards from that end. A release counts from when it was requested (``free_requested``). Sizes are the
requested ones, without the allocator's rounding.

A pickle can import and call anything, so the unpickler refuses every import: what is left builds plain data. A snapshot of 126 MB
(700,000 events of 25 frames) takes 0.7 GB and 5 s.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from overhead_lens.errors import UsageError
from overhead_lens.readers.kineto.columns import Texts
from overhead_lens.readers.kineto.event import DAMAGED, dicts
from overhead_lens.readers.kineto.frame import nothing
from overhead_lens.readers.kineto.model import StackFrame, Trace
from overhead_lens.stats.values import Ints

_CUDA = 1
_NS_PER_US = 1000
_MOST_US = 2**63 // _NS_PER_US
_MOST_BYTES = 1 << 50
_RESERVES = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}

Entry = Mapping[Any, Any]


def read_snapshot(path: Path) -> Trace:
    """Read a memory snapshot as a trace without events.

    Raises:
        UsageError: The file cannot be read, is not a snapshot, or wants more than plain data.
    """
    with _no_collection():
        try:
            with path.open("rb") as file:
                snapshot = _PlainData(file).load()
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error}") from None
        except _RefusedError:
            raise UsageError(
                f"{path} is refused: its pickle imports or calls code, and a memory snapshot contains only plain data"
            ) from None
        except Exception as error:
            raise UsageError(
                f"{path} is not a readable memory snapshot: its pickle is damaged or cut off ({type(error).__name__})"
            ) from None
        traces = snapshot.get("device_traces") if isinstance(snapshot, dict) else None
        if not isinstance(traces, list):
            raise UsageError(f"{path} is not a memory snapshot of torch.cuda.memory: it has no device_traces")
        return _trace(traces, snapshot.get("segments"), path)


class _RefusedError(Exception):
    """The pickle wants to import something."""


class _PlainData(pickle.Unpickler):
    """Builds numbers, texts, lists, tuples, sets and dictionaries; no other opcode gets anything that it could call."""

    def find_class(self, *_: object) -> NoReturn:
        raise _RefusedError

    def persistent_load(self, _: object) -> NoReturn:
        raise _RefusedError


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without the garbage collector, which would look at millions of new objects again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _trace(traces: list[Any], segments: Any, path: Path) -> Trace:
    stacks = _Stacks()
    tables, count, damaged = [_columns(0, *[np.zeros(0, dtype=np.int64)] * 6)], 0, 0
    for device, entries in enumerate(traces):
        events = [entry for entry in dicts(entries) if "action" in entry and "size" in entry]
        count += len(events)
        damaged += (len(entries) if isinstance(entries, list) else 1) - len(events)
        if events:
            tables.append(_device(device, events, _held_at_the_end(segments, device), stacks))
    memory: dict[str, Any] = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    memory["start_ns"] -= int(memory["start_ns"].min()) if len(memory["start_ns"]) else 0
    nobody = Texts(np.zeros(len(memory["start_ns"]), dtype=np.int8), np.array([""], dtype=object))
    memory |= {"pid": nobody, "tid": nobody}
    issues = {DAMAGED: damaged} if damaged else {}
    size_bytes, numbers = path.stat().st_size, tuple(stacks.numbers)
    return Trace(str(path), nothing().events, count, size_bytes, issues, memory=memory, stacks=numbers)


class _Stacks:
    """Distinct stacks, the innermost frame first, with their numbers."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[StackFrame, ...], int] = {}
        self._seen: dict[tuple[int, ...], int] = {}

    def number(self, frames: Any) -> int:
        """Number of a stack; -1 for none, or if an element is not a frame."""
        if not isinstance(frames, list) or not frames:
            return -1
        identity = tuple(map(id, frames))  # a pickle shares its frames
        if identity not in self._seen:
            self._seen[identity] = self._new(frames)
        return self._seen[identity]

    def _new(self, frames: list[Any]) -> int:
        if not all(isinstance(frame, dict) and "filename" in frame and "name" in frame for frame in frames):
            return -1
        texts = tuple(
            StackFrame(_text(frame["filename"]), _int(frame.get("line")), _text(frame["name"])) for frame in frames
        )
        return self.numbers.setdefault(texts, len(self.numbers))


def _held_at_the_end(segments: Any, device: int) -> tuple[int, int]:
    """Bytes of the device that tensors had, and that the allocator held; -1 where the snapshot does not say."""
    if not isinstance(segments, list):
        return -1, -1
    mine = [each for each in dicts(segments) if "total_size" in each and _int(each.get("device")) == device]
    blocks = [block for each in mine for block in dicts(each.get("blocks")) if block.get("state") == "active_allocated"]
    sizes = [_int(block.get("requested_size"), -1) for block in blocks]
    used = [size if size >= 0 else _int(block.get("size")) for size, block in zip(sizes, blocks, strict=True)]
    return _sum(used), _sum([_int(each["total_size"]) for each in mine])


def _sum(sizes: Sequence[int]) -> int:
    """Sizes that a device can have; -1 for a damaged one."""
    return sum(sizes) if all(0 <= size < _MOST_BYTES for size in sizes) else -1


def _device(device: int, events: Sequence[Entry], held: tuple[int, int], stacks: _Stacks) -> dict[str, Ints]:
    """The numbers of the memory frame of one device."""
    actions = [_text(event["action"]) for event in events]
    sizes = np.array([_int(event["size"]) for event in events], dtype=np.int64)
    sizes = np.where((sizes < 0) | (sizes >= _MOST_BYTES), 0, sizes)
    release = "free_requested" if "free_requested" in actions else "free_completed"
    signs = {"alloc": 1, release: -1}
    change = sizes * np.array([signs.get(action, 0) for action in actions], dtype=np.int64)
    reserves = sizes * np.array([_RESERVES.get(action, 0) for action in actions], dtype=np.int64)
    live, reserved = _backwards(change, held[0]), _backwards(reserves, held[1])
    time_us = np.array([_int(event.get("time_us"), -1) for event in events], dtype=np.int64)
    start_ns = (time_us if ((time_us > 0) & (time_us < _MOST_US)).all() else np.arange(len(events))) * _NS_PER_US
    rows = np.flatnonzero((change != 0) | (reserves != 0))
    mine = [events[row] for row in rows.tolist()]
    address = np.array([_int(event.get("addr", event.get("address"))) for event in mine], dtype=np.int64)
    stack = np.array([stacks.number(event.get("frames")) for event in mine], dtype=np.int64)
    return _columns(device, start_ns[rows], address, change[rows], live[rows], reserved[rows], stack)


def _backwards(change: Ints, end: int) -> Ints:
    """The value after each change, computed backwards from the known last value; -1 where it is not."""
    after = np.cumsum(change)
    return np.maximum(after + (end - int(after[-1])), 0) if end >= 0 else np.full(len(change), -1)


def _columns(
    device: int, start_ns: Ints, address: Ints, change: Ints, live: Ints, reserved: Ints, stack: Ints
) -> dict[str, Ints]:
    return {
        "start_ns": start_ns,
        "address": address,
        "bytes": change,
        "allocated_bytes": live,
        "reserved_bytes": reserved,
        "device_type": np.full(len(start_ns), _CUDA),
        "device": np.full(len(start_ns), device),
        "stack": stack,
    }


def _int(value: Any, default: int = 0) -> int:
    return value if type(value) is int and -(2**63) <= value < 2**63 else default


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
