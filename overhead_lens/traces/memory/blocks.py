"""Blocks of memory from allocations and releases, and how much of one device was live over time.

A release belongs to the last allocation of its address. What does not fit is repaired and counted::

    release first          of an address: it was allocated before the recording, and is live from its start
    allocation, allocation of one address: the release between them was not recorded; the first counts for no time
    release, release       of one address: the allocation between them was not recorded; it counts for no time

The allocator's own total is what was live, also of what was allocated before the recording and never released in it; where it
is less than the blocks that are known to be live, or is not there, these are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overhead_lens.errors import UsageError
from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Bools, Ints

_MOST_BYTES = 2.0**62

REALLOCATED = "allocation_without_release"
UNALLOCATED = "release_without_allocation"
UNADDRESSED = "event_without_address"
LOW_TOTAL = "total_below_live_blocks"


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of one device that are live for some time.

    Attributes:
        first, last: int64, shape ``(n,)``: events from which on and before which it is live; -1 for the start of the recording,
            the number of events for its end.
        bytes: int64, > 0.
    """

    first: Ints
    last: Ints
    bytes: Ints

    def live_after(self, event: int) -> Bools:
        """Which blocks are live after an event; -1 is before the first event."""
        return (self.first <= event) & (self.last > event)

    @property
    def recorded(self) -> Bools:
        """Which blocks were allocated during the recording."""
        return self.first >= 0


@dataclass(frozen=True, slots=True)
class Live:
    """One device over time.

    Attributes:
        rows: int64, shape ``(m,)``: rows of the memory frame, in order of time.
        start_ns: int64, shape ``(m,)``.
        live_bytes: int64, shape ``(m + 1,)``: before the first event, then after each; >= 0.
        reserved_bytes: The same of what the allocator held, from the first event on; None where unknown.
        unaddressed: int64, shape ``(m,)``: sizes of the events that name no address; 0 for the others.
        repairs: Inconsistent events by kind; no zeros.
    """

    rows: Ints
    start_ns: Ints
    blocks: Blocks
    unaddressed: Ints
    live_bytes: Ints
    reserved_bytes: Ints | None
    repairs: dict[str, int]

    def unaddressed_at(self, event: int) -> int:
        """Bytes that are live after an event and were surely allocated in the recording, by events that name no address."""
        running = np.cumsum(np.append(0, self.unaddressed[: event + 1]))
        return int(running[-1] - running.min())


def live_memory(memory: Events, rows: Ints) -> Live:
    """What was live of the device that ``rows`` of the memory frame are about.

    Raises:
        UsageError: The sizes add up to more than int64 holds.
    """
    rows = rows[np.argsort(memory["start_ns"][rows], kind="stable")]
    address, size, total, reserved = (
        memory[name][rows] for name in ("address", "bytes", "allocated_bytes", "reserved_bytes")
    )
    if np.abs(size).sum(dtype=np.float64) >= _MOST_BYTES:
        raise UsageError("the memory events of the trace add up to more than 4 EiB: they are damaged")
    blocks, repairs = _blocks(address, size)
    unaddressed = np.where(address < 0, size, 0)
    known = _known_live(blocks, len(rows)) + _unaddressed(unaddressed)
    live = known
    if len(total) and (total >= 0).all():
        live = np.maximum(np.concatenate(([max(0, int(total[0] - size[0]))], total)), known)
        repairs[LOW_TOTAL] = int((live[1:] != total).sum())
    return Live(
        rows,
        memory["start_ns"][rows],
        blocks,
        unaddressed,
        live,
        reserved if len(reserved) and (reserved >= 0).all() and reserved.any() else None,
        {reason: count for reason, count in repairs.items() if count},
    )


def _blocks(address: Ints, size: Ints) -> tuple[Blocks, dict[str, int]]:
    """Match releases with allocations; repairs, with zeros."""
    able = np.flatnonzero((address >= 0) & (size != 0))
    order = able[np.argsort(address[able], kind="stable")]
    where, allocates = address[order], size[order] > 0
    same = where[1:] == where[:-1]
    follows = np.concatenate((same, [False]))  # the next one is of the same address
    preceded = np.concatenate(([False], same))
    next_allocates = np.append(allocates[1:], False)
    previous_allocates = np.concatenate(([False], allocates[:-1]))
    released = allocates & follows & ~next_allocates
    unreleased = allocates & ~follows
    inherited = ~allocates & ~preceded
    at = np.flatnonzero(released)
    first = np.concatenate((order[at], order[unreleased], np.full(int(inherited.sum()), -1)))
    last = np.concatenate((order[at + 1], np.full(int(unreleased.sum()), len(size)), order[inherited]))
    sizes = np.concatenate((size[order[at]], size[order[unreleased]], -size[order[inherited]]))
    repairs = {
        REALLOCATED: int((allocates & follows & next_allocates).sum()),
        UNALLOCATED: int((~allocates & preceded & ~previous_allocates).sum()),
        UNADDRESSED: int((address < 0).sum()),
    }
    return Blocks(first.astype(np.int64), last.astype(np.int64), sizes.astype(np.int64)), repairs


def _known_live(blocks: Blocks, count: int) -> Ints:
    """Bytes of the blocks before the first event and after each."""
    change = np.zeros(count + 2, dtype=np.int64)
    np.add.at(change, blocks.first + 1, blocks.bytes)
    np.add.at(change, blocks.last + 1, -blocks.bytes)
    return np.cumsum(change)[: count + 1]


def _unaddressed(size: Ints) -> Ints:
    """Running sum of sizes without an address, shifted so that it is never negative."""
    running = np.concatenate(([0], np.cumsum(size)))
    return running - min(0, int(running.min()))
