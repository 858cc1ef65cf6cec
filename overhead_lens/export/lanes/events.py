"""Lanes read from frames: categories, Python frames and operators of each thread, work of each device stream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from overhead_lens.export.lanes.model import Lane, Slice
from overhead_lens.export.names import readable
from overhead_lens.readers.kineto.event import DEVICE_CATEGORIES
from overhead_lens.readers.kineto.model import columns_of
from overhead_lens.stats.values import Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.launches import link

CATEGORIES_LANE = "Categories"
PYTHON_LANE = "Python"
OPERATORS_LANE = "Operators"
STREAM = "stream"
ANNOTATIONS = "annotations"
LANE_KINDS = (CATEGORIES_LANE, PYTHON_LANE, OPERATORS_LANE, STREAM, ANNOTATIONS)

# Spans on a stream that are not its work: they overlap its kernels and get a lane beside them.
ANNOTATION_CATEGORIES = ("gpu_user_annotation", "cuda_sync")

_LINKS = ("correlation", "sequence")
_COLUMNS = ["name", "cat", "pid", "tid", "kind", "start_ns", "dur_ns", *_LINKS]


def placed_rows(
    events: pd.DataFrame, categories: pd.DataFrame | None = None, *, separates_python: bool = True
) -> pd.DataFrame:
    """Every event and category interval, in file order; arguments as of ``event_lanes``.

    Returns:
        Columns ``name``, ``cat`` (readable text); ``pid``, ``tid`` (the same: process and thread, for a device row its device
        and stream); ``kind`` (str, one of ``LANE_KINDS``); ``start_ns``, ``dur_ns``, ``correlation``, ``sequence`` (int64,
        the last two -1 where absent).
    """
    parts = [_events(events, PYTHON_LANE if separates_python else OPERATORS_LANE)]
    if categories is not None:
        parts.append(_categories(categories))
    rows: pd.DataFrame = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)[_COLUMNS]
    return rows


def _events(events: pd.DataFrame, python_lane: str) -> Any:
    category = events["cat"]
    on_stream, annotates = category.isin(DEVICE_CATEGORIES), category.isin(ANNOTATION_CATEGORIES)
    kind = np.select(
        [on_stream, annotates, category == "python_function"], [STREAM, ANNOTATIONS, python_lane], OPERATORS_LANE
    )
    of_device = on_stream | annotates
    return events.assign(
        name=_texts(events["name"]),
        cat=_texts(category),
        kind=kind,
        pid=_number_or_label(events, "device", "pid", of_device),
        tid=_number_or_label(events, "stream", "tid", of_device).str.removeprefix("stream "),
    )


def _categories(categories: pd.DataFrame) -> Any:
    """Category intervals as rows."""
    return categories.assign(
        name=categories["category"],
        cat="host category",
        kind=CATEGORIES_LANE,
        pid=_texts(categories["pid"]),
        tid=_texts(categories["tid"]),
        correlation=-1,
        sequence=-1,
    )


def _number_or_label(events: pd.DataFrame, number: str, label: str, of_device: pd.Series[bool]) -> pd.Series[str]:
    """``label`` as text, replaced by the device's ``number`` where there is one."""
    labels = _texts(events[label])
    numbered = of_device & (events[number] >= 0)
    labels[numbered] = _texts(events.loc[numbered, number])
    return labels


def _texts(column: pd.Series) -> pd.Series[str]:
    """Names, or numbers of devices, as readable text: pandas cannot join names that cannot be encoded."""
    codes, values = pd.factorize(column)
    texts: pd.Series[str] = pd.Series(np.array(list(map(readable, values)), dtype=object)[codes], index=column.index)
    return texts


_CHUNK_ROWS = 8192
_INT64_MAX = 2**63 - 1

_Key: TypeAlias = tuple[str, str, str]
_Flows: TypeAlias = defaultdict[int, tuple[int, ...]]


def event_lanes(
    events: pd.DataFrame,
    categories: pd.DataFrame | None = None,
    zero_ns: int | None = None,
    *,
    separates_python: bool = True,
) -> list[Lane]:
    """Lanes of the events and of the categories over them: threads in order of appearance, then device streams.

    Args:
        events: Event frame of ``readers.kineto``.
        categories: Host categories over the same time: ``start_ns`` and ``dur_ns`` (int64, the events' zero),
            ``category``, ``pid`` and ``tid``.
        zero_ns: Time of theirs that becomes the zero of the timeline, at or before all of them; by default the earliest start.
        separates_python: Whether Python frames have a lane of their own, or one with the operators that they call.
    """
    rows = placed_rows(events, categories, separates_python=separates_python)
    if rows.empty:
        return []
    flows, groups = find_flows(events, rows), _grouped(rows)
    zero = int(rows["start_ns"].min()) if zero_ns is None else zero_ns
    appearance = {thread: place for place, thread in enumerate(dict.fromkeys(key[:2] for key in groups))}
    keys = sorted(groups, key=lambda key: _place(key, appearance[key[:2]]))
    return [_lane(key, _slices(rows, groups[key], zero, *flows, key[2])) for key in keys]


def _grouped(rows: pd.DataFrame) -> dict[_Key, Ints]:
    """Row positions of each lane, by start, the longer first, then in file order."""
    number = rows.groupby(["pid", "tid", "kind"], sort=False).ngroup().to_numpy()
    order = np.lexsort((-rows["dur_ns"].to_numpy(), rows["start_ns"].to_numpy(), number))
    parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    keys = rows[["pid", "tid", "kind"]]
    return {tuple(keys.iloc[part[0]]): part for part in parts}


def _place(key: _Key, appearance: int) -> tuple[object, ...]:
    """What a lane is sorted by."""
    pid, tid, kind = key
    if kind in (STREAM, ANNOTATIONS):
        return 1, _natural(pid), _natural(tid), LANE_KINDS.index(kind)
    return 0, appearance, LANE_KINDS.index(kind)


def _natural(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdecimal() else (_INT64_MAX, text)


def _lane(key: _Key, slices: Iterator[Slice]) -> Lane:
    pid, tid, kind = key
    if kind in (STREAM, ANNOTATIONS):
        shown = f" {kind}" if kind == ANNOTATIONS else ""
        return Lane(f"device {pid} / stream {tid}{shown}", slices, group="Devices")
    return Lane(kind, slices, thread=(pid, tid))


def _slices(
    rows: pd.DataFrame, positions: Ints, zero_ns: int, leaving: _Flows, arriving: _Flows, kind: str
) -> Iterator[Slice]:
    """The slices of a lane, a chunk at a time to keep few in memory."""
    is_category = kind == CATEGORIES_LANE
    for first in range(0, len(positions), _CHUNK_ROWS):
        here = positions[first : first + _CHUNK_ROWS]
        chunk = rows.iloc[here]
        names = ("start_ns", "dur_ns", "name", "cat", *_LINKS)
        for position, start_ns, dur_ns, name, category, *links in zip(
            here.tolist(), *(chunk[column].tolist() for column in names), strict=True
        ):
            begin_ns = start_ns - zero_ns
            yield Slice(
                start_ns=begin_ns,
                end_ns=begin_ns + dur_ns,
                name=name,
                category=category,
                arguments={key: number for key, number in zip(_LINKS, links, strict=True) if number >= 0},
                flows_out=leaving.get(position, ()),
                flows_in=arriving.get(position, ()),
                color=name if is_category else "",
            )


def find_flows(events: pd.DataFrame, rows: pd.DataFrame) -> tuple[_Flows, _Flows]:
    """The arrows between ``placed_rows``: from a launch to its device work, from a forward operator to its backward.

    An arrow leaves the end that starts first. A device's clock can run behind the host's, so that a kernel "starts" before
    its launch; such a pair stays linked, and its arrow shows the skew.

    Returns:
        Numbers of arrows by row position: the arrows that leave the row, and the arrows that arrive at it.
    """
    starts = rows["start_ns"].to_numpy()
    leaving, arriving = _Flows(tuple), _Flows(tuple)
    linked = link(columns_of(events))
    launches = [pair for pair in zip(linked.launch.tolist(), linked.rows.tolist(), strict=True) if pair[0] >= 0]
    for number, (source, target) in enumerate([*launches, *_backwards(rows)], 1):
        first, second = (source, target) if starts[source] <= starts[target] else (target, source)
        leaving[first] += (number,)
        arriving[second] += (number,)
    return leaving, arriving


def _backwards(rows: pd.DataFrame) -> list[tuple[int, int]]:
    """A forward operator and each run of its backward node.

    The operators inside a forward operator carry its sequence number as well; the last one to start before the backward
    made the node (``generateForwardBackwardLink`` in torch/csrc/profiler/collection.cpp). Numbers count for each thread by
    itself: a node has no arrow where several threads had its number before, because the rows do not tell whose it is.
    """
    linked = rows[rows["sequence"] >= 0].sort_values("start_ns", kind="stable")
    name = linked["name"]
    is_node = name.str.startswith(torch_names.BACKWARD_NODE_PREFIX).astype(bool)
    # A node and the function in it have the same number.
    functions = {node.partition(": ")[2] for node in name[is_node].unique()}
    nodes, forward = linked[is_node], linked[~is_node & ~name.isin(functions)]
    of_threads = forward.drop_duplicates(["sequence", "pid", "tid"])
    others = of_threads[of_threads.duplicated("sequence")].drop_duplicates("sequence")
    others_ns = nodes["sequence"].map(others.set_index("sequence")["start_ns"])
    nodes = nodes[~(others_ns < nodes["start_ns"])]
    pairs = pd.merge_asof(
        nodes[["sequence", "start_ns"]].assign(node=nodes.index),
        forward[["sequence", "start_ns"]].assign(operator=forward.index),
        on="start_ns",
        by="sequence",
        allow_exact_matches=False,
    ).dropna()
    return list(zip(pairs["operator"].astype(int).tolist(), pairs["node"].tolist(), strict=True))
