"""Arrows between slices: from a launch to what it started on the device, from a forward operator to its backward.

An arrow leaves the end that starts first. A device's clock can run behind the host's, so that a kernel "starts" before
its launch; such a pair stays linked, and its arrow shows the skew.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import pandas as pd

from overhead_lens.export.lanes.placement import OPERATORS_LANE, STREAM
from overhead_lens.taxonomy import torch_names

_Pairs = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Flows:
    """Numbers of the arrows at each row of a frame.

    Attributes:
        leaving: Row position to the arrows that leave it.
        arriving: Row position to the arrows that arrive at it.
    """

    leaving: dict[int, tuple[int, ...]]
    arriving: dict[int, tuple[int, ...]]


def find_flows(rows: pd.DataFrame) -> Flows:
    """The arrows between ``placed_rows``."""
    starts = rows["start_ns"].to_numpy()
    leaving: defaultdict[int, tuple[int, ...]] = defaultdict(tuple)
    arriving: defaultdict[int, tuple[int, ...]] = defaultdict(tuple)
    for number, (source, target) in enumerate([*_launches(rows), *_backwards(rows)], 1):
        first, second = (source, target) if starts[source] <= starts[target] else (target, source)
        leaving[first] += (number,)
        arriving[second] += (number,)
    return Flows(dict(leaving), dict(arriving))


def _launches(rows: pd.DataFrame) -> _Pairs:
    """Pairs of a correlation's first host event and each of its device events; a graph launch has many."""
    linked = rows[rows["correlation"] >= 0].sort_values("start_ns", kind="stable")
    host = linked[linked["kind"] == OPERATORS_LANE].drop_duplicates("correlation")
    return _pairs(host, linked[linked["kind"] == STREAM], "correlation")


def _backwards(rows: pd.DataFrame) -> _Pairs:
    """A forward operator and each run of its backward node.

    The operators inside a forward operator carry its sequence number as well; the last one to start before the backward
    made the node (``generateForwardBackwardLink`` in torch/csrc/profiler/collection.cpp).
    """
    linked = rows[rows["sequence"] >= 0].sort_values("start_ns", kind="stable")
    is_backward = linked["name"].map(str).str.startswith(torch_names.BACKWARD_NODE_PREFIX).astype(bool)
    backward = linked[is_backward]
    first_backward_ns = linked["sequence"].map(backward.drop_duplicates("sequence").set_index("sequence")["start_ns"])
    forward = linked[linked["start_ns"] < first_backward_ns].drop_duplicates("sequence", keep="last")
    return _pairs(forward, backward, "sequence")


def _pairs(sources: pd.DataFrame, targets: pd.DataFrame, link: str) -> _Pairs:
    """Row positions of each target and the one source that shares its ``link``."""
    source_of = dict(zip(sources[link].tolist(), sources.index.tolist(), strict=True))
    links = zip(targets[link].tolist(), targets.index.tolist(), strict=True)
    return [(source_of[number], target) for number, target in links if number in source_of]
