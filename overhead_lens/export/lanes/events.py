"""Lanes read from frames: categories, Python frames and operators of each thread, work of each device stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from overhead_lens.errors import UsageError
from overhead_lens.export.lanes.flows import Flows, find_flows
from overhead_lens.export.lanes.model import Lane, Slice, ThreadKey, Value
from overhead_lens.export.lanes.placement import ANNOTATIONS, CATEGORIES_LANE, LANE_KINDS, STREAM, placed_rows
from overhead_lens.export.names import readable

DEVICES = "Devices"

_CHUNK_ROWS = 8192
_INT64_MAX = 2**63 - 1

_Positions: TypeAlias = npt.NDArray[np.int64]
_Key: TypeAlias = tuple[str, str, str]


def event_lanes(
    events: pd.DataFrame,
    categories: pd.DataFrame | None = None,
    zero_ns: int | None = None,
    *,
    separates_python: bool = True,
) -> list[Lane]:
    """Lanes of the events and of the categories over them: threads in order of appearance, then device streams.

    Args:
        events: Event frame of ``readers.kineto``. Optional int64 columns, -1 where absent: ``correlation`` (a launch and its
            device events), ``sequence`` (a forward operator and its backward), ``device`` and ``stream``.
        categories: Host categories over the same time: ``start_ns`` and ``dur_ns`` (int64, the events' zero),
            ``category``, ``pid`` and ``tid``.
        zero_ns: Time of theirs that becomes the zero of the timeline, at or before all of them; by default the earliest start.
        separates_python: Whether Python frames have a lane of their own, or one with the operators that they call.

    Raises:
        UsageError: The events span more than int64 nanoseconds.
    """
    rows = placed_rows(events, categories, separates_python=separates_python)
    if rows.empty:
        return []
    earliest_ns, flows, groups = _earliest_ns(rows), find_flows(rows), _grouped(rows)
    zero = earliest_ns if zero_ns is None else zero_ns
    order = _lane_order(list(dict.fromkeys(key[:2] for key in groups)))
    return [_lane(key, _slices(rows, groups[key], zero, flows, key[2])) for key in sorted(groups, key=order)]


def _earliest_ns(rows: pd.DataFrame) -> int:
    starts, durations = rows["start_ns"].to_numpy(), rows["dur_ns"].to_numpy()
    earliest_ns = int(starts.min())
    # Python integers, because int64 would overflow here.
    if (
        max(int(starts.max()) - earliest_ns, int(starts.max()) + int(durations.max())) - min(earliest_ns, 0)
        > _INT64_MAX
    ):
        raise UsageError("the trace spans more than 292 years: its timestamps are damaged")
    return earliest_ns


def _grouped(rows: pd.DataFrame) -> dict[_Key, _Positions]:
    """Row positions of each lane, by start, the longer first, then in file order."""
    number = rows.groupby(["pid", "tid", "kind"], sort=False).ngroup().to_numpy()
    order = np.lexsort((-rows["dur_ns"].to_numpy(), rows["start_ns"].to_numpy(), number))
    parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    keys = rows[["pid", "tid", "kind"]]
    return {tuple(keys.iloc[part[0]]): part for part in parts}


def _lane_order(threads: list[ThreadKey]) -> Callable[[_Key], tuple[object, ...]]:
    appearance = {thread: index for index, thread in enumerate(threads)}

    def order(key: _Key) -> tuple[object, ...]:
        pid, tid, kind = key
        if kind in (STREAM, ANNOTATIONS):
            return 1, _natural(pid), _natural(tid), LANE_KINDS.index(kind)
        return 0, appearance[pid, tid], LANE_KINDS.index(kind)

    return order


def _natural(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdecimal() else (_INT64_MAX, text)


def _lane(key: _Key, slices: Iterator[Slice]) -> Lane:
    pid, tid, kind = key
    if kind == STREAM:
        return Lane(f"device {pid} / stream {tid}", slices, group=DEVICES)
    if kind == ANNOTATIONS:
        return Lane(f"device {pid} / stream {tid} {ANNOTATIONS}", slices, group=DEVICES)
    return Lane(kind, slices, thread=(pid, tid))


def _slices(rows: pd.DataFrame, positions: _Positions, zero_ns: int, flows: Flows, kind: str) -> Iterator[Slice]:
    """The slices of a lane, a chunk at a time to keep few in memory."""
    is_category = kind == CATEGORIES_LANE
    for first in range(0, len(positions), _CHUNK_ROWS):
        here = positions[first : first + _CHUNK_ROWS]
        chunk = rows.iloc[here]
        names = ("start_ns", "dur_ns", "name", "cat", "correlation", "sequence")
        for position, start_ns, dur_ns, name, category, *links in zip(
            here.tolist(), *(chunk[column].tolist() for column in names), strict=True
        ):
            begin_ns = start_ns - zero_ns
            yield Slice(
                start_ns=begin_ns,
                end_ns=begin_ns + dur_ns,
                name=readable(name),
                category=readable(category),
                arguments=_arguments(*links),
                flows_out=flows.leaving.get(position, ()),
                flows_in=flows.arriving.get(position, ()),
                color=readable(name) if is_category else "",
            )


def _arguments(correlation: int, sequence: int) -> dict[str, Value]:
    arguments: dict[str, Value] = {}
    if correlation >= 0:
        arguments["correlation"] = correlation
    if sequence >= 0:
        arguments["sequence"] = sequence
    return arguments
