"""Counters of a trace over time, with their units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.export.lanes.model import Counter, Section
from overhead_lens.export.names import readable
from overhead_lens.traces.counters.tracks import Track
from overhead_lens.units import format_ns


def counter_sections(tracks: Sequence[Track]) -> Iterator[Section]:
    """One section per process or device: its first counter, with the others below."""
    places = dict.fromkeys((track.process, track.device) for track in tracks)
    for place in places:
        first, *others = (_counter(track) for track in tracks if (track.process, track.device) == place)
        yield Section(first, tuple(others))


def _counter(track: Track) -> Counter:
    where = f"device {track.device}" if track.device is not None else readable(track.process)
    description = f"Counter of {where}, as the trace has it."
    gaps = int((track.gap_ns > 0).sum())
    if gaps:
        description += (
            f" {gaps} gaps, {format_ns(int(track.gap_ns.sum()))} in all: what is drawn there is the value before."
        )
    # Nothing is drawn before the first event; the last earlier value is drawn there.
    points = zip(track.start_ns.clip(min=0).tolist(), track.values.tolist(), strict=True)
    return Counter(f"{readable(track.name)} ({where})", track.unit, points, description)
