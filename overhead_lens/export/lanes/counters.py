"""Quantities of a trace over time, with their units: its counters, and live and reserved bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from overhead_lens.export.lanes.model import Counter, Section
from overhead_lens.export.names import readable
from overhead_lens.stats.values import Floats, Ints
from overhead_lens.traces.counters.tracks import Track
from overhead_lens.units import format_ns

BYTES = "bytes"


def counter_sections(tracks: Sequence[Track]) -> Iterator[Section]:
    """One section per process or device: its first counter, with the others below."""
    places = dict.fromkeys((track.process, track.device) for track in tracks)
    for place in places:
        first, *others = (_of_track(track) for track in tracks if (track.process, track.device) == place)
        yield Section(first, tuple(others))


def _of_track(track: Track) -> Counter:
    where = f"device {track.device}" if track.device is not None else readable(track.process)
    description = f"Counter of {where}, as the trace has it."
    gaps = int((track.gap_ns > 0).sum())
    if gaps:
        description += (
            f" {gaps} gaps, {format_ns(int(track.gap_ns.sum()))} in all: what is drawn there is the value before."
        )
    return _counter(f"{readable(track.name)} ({where})", track.unit, track.start_ns, track.values, description)


def memory_sections(memory: pd.DataFrame) -> Iterator[Section]:
    """A section for each device: live bytes, and below them what the allocator held."""
    for device, mine in memory.groupby("device", sort=False):
        name = readable(str(device))
        start_ns, live, reserved = (mine[column].to_numpy() for column in ("start_ns", "live_bytes", "reserved_bytes"))
        top = _counter(f"{name} live bytes", BYTES, start_ns, live, "Memory that was allocated and not yet released.")
        held = "Memory that the allocator held of the device, in use or not."
        below = _counter(f"{name} reserved bytes", BYTES, start_ns, reserved, held)
        yield Section(top, (below,) if (reserved >= 0).all() else ())


def _counter(name: str, unit: str, start_ns: Ints, values: Ints | Floats, description: str) -> Counter:
    """Values over time. Nothing is drawn before the first event of the trace: the last earlier value is drawn there."""
    points = zip(start_ns.clip(min=0).tolist(), values.astype(float).tolist(), strict=True)
    return Counter(name, unit, points, description)
