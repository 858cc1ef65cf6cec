"""Counters of live and reserved bytes over time."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from overhead_lens.export.lanes.model import Counter, Section
from overhead_lens.export.names import readable

BYTES = "bytes"


def memory_sections(memory: pd.DataFrame) -> Iterator[Section]:
    """A section for each device: live bytes, and below them what the allocator held."""
    for device, mine in memory.groupby("device", sort=False):
        name = readable(str(device))
        live = _counter(f"{name} live bytes", mine, "live_bytes", "Memory that was allocated and not yet released.")
        has_reserved = bool((mine["reserved_bytes"] >= 0).all())
        held = "Memory that the allocator held of the device, in use or not."
        below = (_counter(f"{name} reserved bytes", mine, "reserved_bytes", held),) if has_reserved else ()
        yield Section(live, below)


def _counter(name: str, frame: pd.DataFrame, column: str, description: str) -> Counter:
    # Nothing is drawn before the first event; the last earlier value is drawn there.
    times = frame["start_ns"].clip(lower=0)
    points = zip(times.tolist(), map(float, frame[column].tolist()), strict=True)
    return Counter(name, BYTES, points, description)
