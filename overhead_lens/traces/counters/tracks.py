"""Counters over time: how long each value holds, what is missing, and what a counter was while each kernel ran.

::

    sampled, period 10   v----v----v----v----.         .v----v----.      the last value holds for a period, and so does the
                         |    |    |    |    |   gap   |                 last one before a gap
    written on change    v-------v--v---------------v---------------|    until the next one, the last until the window's end
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.readers.kineto.counters import PLACES
from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Floats, Ints, numbered_rows
from overhead_lens.traces.counters.metrics import unit_of
from overhead_lens.traces.counters.model import CounterKernel, CounterSeries, CounterTrack
from overhead_lens.traces.counters.work import DeviceWork
from overhead_lens.traces.host import of_each
from overhead_lens.traces.timeline import sum_by

_DEVICE_PROCESS = re.compile(r"GPU ([0-9]{1,9}) Counters")
_DEVICE_CATEGORIES = frozenset({"hardware_counters", "mtia_counters", "xpu_scope_profiler"})
_FEWEST = 4
_REGULAR = 0.8
_TOLERANCE = 0.25
_MOST_KERNELS = 20
_STRETCHES = 200
_MOST_TRACKS = 100


@dataclass(frozen=True, slots=True)
class Track:
    """One counter: where it stands, and its values in order of time.

    Attributes:
        device: Number; None if it is not of a device.
        start_ns, dur_ns: int64, shape ``(n,)``: how long each value holds; 0 for one that the next replaces at once.
        values: float64.
        gap_ns: int64: unknown time after each.
        period_ns: None for values that are written when they change.
    """

    device: int | None
    process: str
    name: str
    unit: str
    start_ns: Ints
    dur_ns: Ints
    values: Floats
    gap_ns: Ints
    period_ns: int | None


def tracks(counters: Events, devices: Sequence[int], end_ns: int) -> list[Track]:
    """Every counter of a trace, in the order of the file; the last value that is written on change counts until ``end_ns``."""
    made = []
    number, first = numbered_rows(*(counters[name].codes for name in (*PLACES, "series")))
    texts = (counters[name][first] for name in ("pid", "cat", "name", "series"))
    for own, pid, cat, name, series in zip(of_each(number, len(first)), *texts, strict=True):
        ordered = own[np.argsort(counters["start_ns"][own], kind="stable")]
        start_ns = counters["start_ns"][ordered]
        period_ns = period(start_ns)
        dur_ns, gap_ns = held(start_ns, period_ns, end_ns)
        metric = series or name
        made.append(
            Track(
                device=_device(pid, cat, devices),
                process=pid,
                name=f"{name}/{series}" if series and series != name else name,
                unit=unit_of(metric),
                start_ns=start_ns,
                dur_ns=dur_ns,
                values=counters["value"][ordered],
                gap_ns=gap_ns,
                period_ns=period_ns,
            )
        )
    return made


def _device(pid: str, cat: str, devices: Sequence[int]) -> int | None:
    match = _DEVICE_PROCESS.fullmatch(pid)
    if match is not None:
        return int(match[1])
    is_number = pid.isdecimal() and len(pid) < 10
    return int(pid) if is_number and (int(pid) in devices or cat in _DEVICE_CATEGORIES) else None


def period(start_ns: Ints) -> int | None:
    """Median distance of times that come at a period: four in five within a quarter of it; else None."""
    apart = np.diff(start_ns)
    apart = apart[apart > 0]
    if len(apart) < _FEWEST - 1:
        return None
    usual = int(np.sort(apart)[(len(apart) - 1) // 2])
    return usual if (np.abs(apart - usual) <= _TOLERANCE * usual).mean() >= _REGULAR else None


def held(start_ns: Ints, period_ns: int | None, end_ns: int) -> tuple[Ints, Ints]:
    """How long each value holds, and the unknown time after it."""
    apart = np.diff(start_ns)
    if period_ns is None:
        return np.append(apart, max(0, end_ns - int(start_ns[-1]))), np.zeros(len(start_ns), dtype=np.int64)
    missing = apart > period_ns + period_ns // 2  # no product, which int64 may not hold
    held_ns, unknown_ns = np.where(missing, period_ns, apart), np.where(missing, apart - period_ns, 0)
    return np.append(held_ns, period_ns), np.append(unknown_ns, 0)


def summaries(counter_tracks: Sequence[Track], work: DeviceWork) -> tuple[CounterTrack, ...]:
    """What the result says of the counters, at most ``_MOST_TRACKS``."""
    kernels = dict(work.groups(~work.is_copy))
    return tuple(
        _summary(track, () if track.device not in kernels else _kernels(track, work, kernels[track.device]))
        for track in counter_tracks[:_MOST_TRACKS]
    )


def _summary(track: Track, kernels: tuple[CounterKernel, ...]) -> CounterTrack:
    covered_ns = int(track.dur_ns.sum())
    mean = float(track.values @ track.dur_ns) / covered_ns if covered_ns else float(track.values.mean())
    return CounterTrack(
        device="" if track.device is None else str(track.device),
        process=track.process,
        name=track.name,
        unit=track.unit,
        samples=len(track.values),
        period_ns=track.period_ns,
        gaps=int((track.gap_ns > 0).sum()),
        gap_ns=int(track.gap_ns.sum()),
        start_ns=int(track.start_ns[0]),
        covered_ns=covered_ns,
        min=float(track.values.min()),
        mean=mean,
        max=float(track.values.max()),
        kernels=kernels,
        over_time=_over_time(track),
    )


def _kernels(track: Track, work: DeviceWork, mine: Ints) -> tuple[CounterKernel, ...]:
    name, start_ns, dur_ns = work.name[mine], work.start_ns[mine], work.dur_ns[mine]
    covered_ns, sums = integrals(track, start_ns, start_ns + dur_ns)
    total_ns, covered = (sum_by(name, ns, len(work.names)) for ns in (dur_ns, covered_ns))
    summed = np.bincount(name, weights=sums, minlength=len(work.names))
    order = [at for at in np.argsort(-covered, kind="stable").tolist() if covered[at] > 0][:_MOST_KERNELS]
    return tuple(
        CounterKernel(work.names[at], int(total_ns[at]), int(covered[at]), float(summed[at] / covered[at]))
        for at in order
    )


def integrals(track: Track, from_ns: Ints, to_ns: Ints) -> tuple[Ints, Floats]:
    """Covered time in each interval, and the counter's integral over it."""
    (covered, summed), (covered_before, summed_before) = _before(track, to_ns), _before(track, from_ns)
    return covered - covered_before, summed - summed_before


def _before(track: Track, times_ns: Ints) -> tuple[Ints, Floats]:
    """Covered time before each time, and the integral over it."""
    covered = np.concatenate(([0], np.cumsum(track.dur_ns)))
    summed = np.concatenate(([0.0], np.cumsum(track.values * track.dur_ns)))
    begun = np.searchsorted(track.start_ns, times_ns, "right")
    last = np.maximum(begun - 1, 0)
    inside = np.where(begun > 0, np.minimum(times_ns - track.start_ns[last], track.dur_ns[last]), 0)
    return covered[last] + inside, summed[last] + inside * track.values[last]


def _over_time(track: Track) -> CounterSeries:
    first_ns = int(track.start_ns[0])
    span_ns = max(1, int(track.start_ns[-1] + track.dur_ns[-1]) - first_ns)
    count = min(_STRETCHES, max(1, len(track.values)))
    # Python integers: for a counter far from all events the products exceed int64.
    edges = first_ns + np.array([at * span_ns // count for at in range(count + 1)], dtype=np.int64)
    covered, summed = integrals(track, edges[:-1], edges[1:])
    values = [float(total / ns) if ns else None for total, ns in zip(summed.tolist(), covered.tolist(), strict=True)]
    return CounterSeries(tuple(edges[:-1].tolist()), tuple(values))
