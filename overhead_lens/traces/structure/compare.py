"""What makes the difference between two traces: self times that sum to it, and events that appeared, vanished or changed.

Where both traces have steps only events that start within a step count, device events by the start of their call, and counts
and times are compared per step: a recording of five steps does not differ from one of three, though a device behind the host
runs the last kernels after the last step. ``names.py`` says which names are one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pandas as pd

from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Ints, taken
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.columns import where
from overhead_lens.traces.host import OPERATORS
from overhead_lens.traces.intervals import cut
from overhead_lens.traces.launches import launching_operators, runtime_rows
from overhead_lens.traces.structure.model import KINDS, Divided, SelfTime, Side, StructureChange, StructureDelta, Swap
from overhead_lens.traces.structure.names import matched, stable_name
from overhead_lens.traces.timeline import sum_by, sweep
from overhead_lens.traces.window import Window, bounds_of, window_at
from overhead_lens.units import round_to_sum

IDLE = "(idle)"
"""What a device does where none of its work runs."""
_OUTSIDE = "(no operator)"


@dataclass(frozen=True, slots=True)
class _Counted:
    """One trace, counted.

    Attributes:
        totals: (kind, name) to events and summed duration.
        kernels: (operator, kernel) to the same.
    """

    side: Side
    totals: Mapping[tuple[str, str], tuple[int, int]]
    kernels: Mapping[tuple[str, ...], tuple[int, int]]


def compare_structure(base: Analyzer, new: Analyzer) -> StructureDelta:
    """Compare two traces."""
    sides = (base, new)
    steps = [[window for _, window in side.step_windows] for side in sides]
    per_step = all(steps)
    windows = steps if per_step else [[side.window] for side in sides]
    old, recent = (_counted(side, at, per_step=per_step) for side, at in zip(sides, windows, strict=True))
    units = (max(1, old.side.steps), max(1, recent.side.steps))
    keys = dict.fromkeys((*old.totals, *recent.totals))
    changes = [_change(*key, old.totals.get(key, (0, 0)), recent.totals.get(key, (0, 0)), units) for key in keys]
    changes.sort(key=lambda change: (-abs(change.delta_ns), KINDS.index(change.kind), change.name))
    (host, devices), (new_host, new_devices) = (_owned(side, at) for side, at in zip(sides, windows, strict=True))
    both = [*([("host", host, new_host)] if host and new_host else []), *_alike(devices, new_devices)]
    divided = [_divided(where, (mine, theirs), (old.side, recent.side)) for where, mine, theirs in both]
    return StructureDelta(old.side, recent.side, per_step, tuple(changes), _swaps(old, recent, units), tuple(divided))


_Owned: TypeAlias = dict[str, int]


def _alike(base: dict[str, _Owned], new: dict[str, _Owned]) -> Iterator[tuple[str, _Owned, _Owned]]:
    """Devices of both sides in order: a rank's number is not always the same."""
    for one, other in zip(base, new, strict=False):
        yield one if one == other else f"{one} → {other}", base[one], new[other]


def _owned(side: Analyzer, windows: Sequence[Window]) -> tuple[_Owned, dict[str, _Owned]]:
    """Time in the windows by name: of the busiest thread, and of every device."""
    host: _Owned = {}
    if side.threads:
        pieces = next(iter(side.threads.values()))
        host = _within(windows, pieces.start_ns, pieces.dur_ns, pieces.name, pieces.names)
    events = side.trace.columns
    name = events["name"]
    names = [*name.categories, IDLE]
    devices = {}
    for device in side.devices:
        rows = device.linked.rows
        segments = sweep(events["start_ns"][rows], events["dur_ns"][rows], side.window.bounds)
        codes = np.append(name.codes[rows], len(names) - 1).astype(np.int64)
        devices[str(device.number)] = _within(windows, segments.start_ns, segments.dur_ns, codes[segments.owner], names)
    return host, devices


def _within(
    windows: Sequence[Window], start_ns: Ints, dur_ns: Ints, name: Ints, names: Sequence[str]
) -> dict[str, int]:
    """Time of consecutive pieces inside the windows, by name."""
    parts = cut(*bounds_of(windows), start_ns, start_ns + dur_ns)
    sums = sum_by(name[parts.piece], parts.dur_ns, len(names))
    return {names[at]: int(sums[at]) for at in np.flatnonzero(sums).tolist()}


def _divided(where: str, owned: tuple[_Owned, _Owned], sides: tuple[Side, Side]) -> Divided:
    """The steps of both sides by names that are compared."""
    times: list[Counter[str]] = []
    for mine, called, side in zip(owned, matched(*owned), sides, strict=True):
        sums: Counter[str] = Counter()
        for name, ns in mine.items():
            sums[called[name]] += ns
        rounded = round_to_sum([Fraction(ns, max(1, side.steps)) for ns in sums.values()], side.step_ns)  # type: ignore[misc]
        times.append(Counter(dict(zip(sums, rounded, strict=True))))
    rows = [SelfTime(name, times[0][name], times[1][name]) for name in dict.fromkeys((*times[0], *times[1]))]
    return Divided(where, tuple(sorted(rows, key=lambda row: (-abs(row.delta_ns), row.name))))


def _counted(analyzer: Analyzer, windows: Sequence[Window], *, per_step: bool) -> _Counted:
    events, linked = analyzer.trace.columns, analyzer.linked
    starts_ns = events["start_ns"]
    inside = window_at(windows, starts_ns) >= 0 if per_step else np.ones(len(starts_ns), dtype=bool)
    chosen = np.flatnonzero(inside[np.where(linked.launch >= 0, linked.launch, linked.rows)])
    rows = {
        "operator": np.flatnonzero(where(events["cat"], OPERATORS.__contains__) & inside),
        "kernel": linked.rows[chosen],
        "launch": (calls := runtime_rows(events))[inside[calls]],
    }
    codes = events["name"].codes
    totals = {
        (kind, name): sums for kind, at in rows.items() for (name,), sums in _by_names(events, at, codes[at]).items()
    }
    wall_ns = sum(window.wall_ns for window in windows)
    side = Side(analyzer.trace.path, len(windows) if per_step else 0, wall_ns, sum(len(at) for at in rows.values()))
    operators = launching_operators(analyzer.host, linked.launch[chosen])
    return _Counted(side, totals, _by_names(events, rows["kernel"], taken(codes, operators), codes[rows["kernel"]]))


def _by_names(events: Events, rows: Ints, *codes: Ints) -> dict[tuple[str, ...], tuple[int, int]]:
    """Count and summed duration of events by comparable names: those of one or several codes, -1 for no operator."""
    names = events["name"].categories
    frame = pd.DataFrame(dict(enumerate(codes))).assign(ns=events["dur_ns"][rows])
    grouped = frame.groupby(list(range(len(codes))))["ns"].agg(["count", "sum"]).reset_index()
    totals: dict[tuple[str, ...], tuple[int, int]] = {}
    for *used, count, ns in grouped.itertuples(index=False):
        key = tuple(stable_name(names[code]) if code >= 0 else _OUTSIDE for code in used)
        before = totals.get(key, (0, 0))
        totals[key] = (before[0] + int(count), before[1] + int(ns))
    return totals


def _change(
    kind: str, name: str, base: tuple[int, int], new: tuple[int, int], units: tuple[int, int]
) -> StructureChange:
    # Integers: counts per step are equal if the cross products are.
    if base[0] * units[1] == new[0] * units[0]:
        status = "same"
    else:
        status = "appeared" if not base[0] else "vanished" if not new[0] else "changed"
    delta_ns = round(new[1] / units[1] - base[1] / units[0])
    return StructureChange(kind, name, status, base[0], new[0], base[1], new[1], delta_ns)


def _swaps(old: _Counted, recent: _Counted, units: tuple[int, int]) -> tuple[Swap, ...]:
    swaps = []
    for operator in dict.fromkeys(operator for operator, _ in (*old.kernels, *recent.kernels)):
        gone, come = _only(old, recent, operator), _only(recent, old, operator)
        if operator == _OUTSIDE or not gone or not come:
            continue
        counts = [sum(count for count, _ in side.values()) for side in (gone, come)]
        times = [sum(ns for _, ns in side.values()) for side in (gone, come)]
        swaps.append(Swap(operator, tuple(gone), tuple(come), *counts, *times))
    return tuple(sorted(swaps, key=lambda swap: -abs(swap.new_ns / units[1] - swap.base_ns / units[0])))


def _only(one: _Counted, other: _Counted, operator: str) -> dict[str, tuple[int, int]]:
    """Kernels of the operator that the other trace does not have under it, costliest first."""
    mine = {kernel: sums for (above, kernel), sums in one.kernels.items() if above == operator}
    theirs = {kernel for above, kernel in other.kernels if above == operator}
    only = {kernel: sums for kernel, sums in mine.items() if kernel not in theirs}
    return dict(sorted(only.items(), key=lambda item: -item[1][1]))
