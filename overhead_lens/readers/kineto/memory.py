"""Allocations and releases that torch.profiler recorded (``profile_memory=True``): the arguments of ``[memory]`` instants."""

from __future__ import annotations

from typing import Any

import msgspec

from overhead_lens.readers.kineto.event import ABSENT, integer

ARGUMENTS = {
    "Addr": "address",
    "Bytes": "bytes",
    "Total Allocated": "allocated_bytes",
    "Total Reserved": "reserved_bytes",
    "Device Type": "device_type",
    "Device Id": "device",
}
"""Arguments, and their columns."""

NUMBERS = tuple(ARGUMENTS.values())

Numbers = tuple[int, int, int, int, int, int]


class _Arguments(msgspec.Struct, gc=False):
    address: Any = msgspec.field(default=None, name="Addr")
    size: Any = msgspec.field(default=None, name="Bytes")
    allocated: Any = msgspec.field(default=None, name="Total Allocated")
    reserved: Any = msgspec.field(default=None, name="Total Reserved")
    device_type: Any = msgspec.field(default=None, name="Device Type")
    device: Any = msgspec.field(default=None, name="Device Id")


MOST_BYTES = 1 << 50
"""No size or total reaches this; one that does is none."""

_DECODER = msgspec.json.Decoder(_Arguments)


def memory_numbers(arguments: bytes) -> Numbers | None:
    """Values of ``NUMBERS`` from the text of ``args``, -1 where absent; None if it does not say how many bytes."""
    try:
        read = _DECODER.decode(arguments)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(read.size, bool) or not isinstance(read.size, int) or not -MOST_BYTES < read.size < MOST_BYTES:
        return None
    totals = (_total(read.allocated), _total(read.reserved))
    return (integer(read.address), read.size, *totals, integer(read.device_type), integer(read.device))


def _total(value: Any) -> int:
    number = integer(value)
    return number if 0 <= number < MOST_BYTES else ABSENT
