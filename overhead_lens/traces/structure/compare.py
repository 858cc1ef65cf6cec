"""Which operators, kernels and launches appeared, vanished or changed from one trace to another.

Where both traces have steps only events that start within a step count, and counts and times are compared per step: a
recording of five steps does not differ from one of three. Names are compared without what differs from run to run:
addresses and the hash of a compiled graph.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overhead_lens.readers.kineto.model import Trace
from overhead_lens.stats.values import Bools, Ints
from overhead_lens.traces.columns import where
from overhead_lens.traces.host import OPERATORS
from overhead_lens.traces.launches import launching_operators, link, runtime_rows
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.traces.structure.model import KINDS, Side, StructureChange, StructureDelta, Swap

_RUN_DEPENDENT = ((re.compile(r"0x[0-9a-f]{6,}"), "0x…"), (re.compile(r"(CompiledFxGraph )\w{20,}"), r"\1…"))
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
    kernels: Mapping[tuple[str, str], tuple[int, int]]


def compare_structure(
    base: Trace, new: Trace, base_analysis: TraceAnalysis, new_analysis: TraceAnalysis
) -> StructureDelta:
    """Compare two traces."""
    per_step = bool(base_analysis.steps and new_analysis.steps)
    old, recent = _counted(base, base_analysis, per_step=per_step), _counted(new, new_analysis, per_step=per_step)
    units = (max(1, old.side.steps), max(1, recent.side.steps))
    keys = dict.fromkeys((*old.totals, *recent.totals))
    changes = [_change(*key, old.totals.get(key, (0, 0)), recent.totals.get(key, (0, 0)), units) for key in keys]
    changes.sort(key=lambda change: (-abs(change.delta_ns), KINDS.index(change.kind), change.name))
    return StructureDelta(old.side, recent.side, per_step, tuple(changes), _swaps(old, recent, units))


def stable_name(name: str) -> str:
    """A name without what differs from run to run."""
    for pattern, stand_in in _RUN_DEPENDENT:
        name = pattern.sub(stand_in, name)
    return name


def _counted(trace: Trace, analysis: TraceAnalysis, *, per_step: bool) -> _Counted:
    events = trace.events
    inside = _in_steps(events["start_ns"].to_numpy(), analysis) if per_step else np.ones(len(events), dtype=bool)
    linked = link(events)
    rows = {
        "operator": np.flatnonzero(where(events["cat"], OPERATORS.__contains__) & inside),
        "kernel": linked.rows[inside[linked.rows]],
        "launch": (calls := runtime_rows(events))[inside[calls]],
    }
    totals = {(kind, name): sums for kind, at in rows.items() for name, sums in _by_name(events, at).items()}
    steps = len(analysis.steps) if per_step else 0
    wall_ns = sum(step.window.wall_ns for step in analysis.steps) if per_step else analysis.window.wall_ns
    side = Side(trace.path, steps, wall_ns, sum(len(at) for at in rows.values()))
    chosen = np.flatnonzero(inside[linked.rows])
    return _Counted(
        side, totals, _by_operator(events, linked.rows[chosen], launching_operators(events, linked)[chosen])
    )


def _in_steps(start_ns: Ints, analysis: TraceAnalysis) -> Bools:
    begins = np.array([step.window.start_ns for step in analysis.steps], dtype=np.int64)
    ends = begins + np.array([step.window.wall_ns for step in analysis.steps], dtype=np.int64)
    at = np.searchsorted(begins, start_ns, "right") - 1
    inside: Bools = (at >= 0) & (start_ns < ends[np.maximum(at, 0)])
    return inside


def _by_name(events: pd.DataFrame, rows: Ints) -> dict[str, tuple[int, int]]:
    name = events["name"].cat
    totals: dict[str, tuple[int, int]] = {}
    frame = pd.DataFrame({"code": name.codes.to_numpy()[rows], "ns": events["dur_ns"].to_numpy()[rows]})
    for code, count, ns in frame.groupby("code")["ns"].agg(["count", "sum"]).itertuples():
        stable = stable_name(name.categories[code])
        before = totals.get(stable, (0, 0))
        totals[stable] = (before[0] + int(count), before[1] + int(ns))
    return totals


def _by_operator(events: pd.DataFrame, rows: Ints, operator_rows: Ints) -> dict[tuple[str, str], tuple[int, int]]:
    name = events["name"].cat
    codes = name.codes.to_numpy()
    operators = np.where(operator_rows >= 0, codes[operator_rows], -1) if len(rows) else operator_rows
    frame = pd.DataFrame({"operator": operators, "kernel": codes[rows], "ns": events["dur_ns"].to_numpy()[rows]})
    totals: dict[tuple[str, str], tuple[int, int]] = {}
    for (operator, kernel), group in frame.groupby(["operator", "kernel"])["ns"]:
        above = stable_name(name.categories[operator]) if operator >= 0 else _OUTSIDE
        key = (above, stable_name(name.categories[kernel]))
        before = totals.get(key, (0, 0))
        totals[key] = (before[0] + len(group), before[1] + int(group.sum()))
    return totals


def _change(
    kind: str, name: str, base: tuple[int, int], new: tuple[int, int], units: tuple[int, int]
) -> StructureChange:
    # Whole numbers: counts per step are equal where the cross products are.
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
