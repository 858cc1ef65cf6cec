"""Allocations and releases drawn for tests."""

from __future__ import annotations

from typing import Any

from tests.drawn.timelines import MAIN
from tests.drawn.trace_text import Number

CPU, CUDA = (0, -1), (1, 0)


def memory(
    at_ns: int,
    size: int,
    address: int | None = 1,
    total: int | None = None,
    reserved: int | None = None,
    device: tuple[int, int] = CUDA,
    thread: tuple[Any, Any] = MAIN,
) -> dict:
    """An allocation, or with a negative size a release."""
    named = {"Addr": address, "Total Allocated": total, "Total Reserved": reserved}
    arguments = {"Bytes": size, "Device Type": device[0], "Device Id": device[1]}
    arguments |= {name: value for name, value in named.items() if value is not None}
    time = Number(f"{at_ns // 1000}.{at_ns % 1000:03d}")
    return {"ph": "i", "s": "t", "name": "[memory]", "pid": thread[0], "tid": thread[1], "ts": time, "args": arguments}
