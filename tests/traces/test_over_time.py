"""Budgets over time: buckets that sum to the budget, each exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.traces import over_time as over
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.traces.over_time import binned
from tests.drawn.timelines import AUTOGRAD, MAIN, analyzer_of, timed

PIECES = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 30), st.integers(0, 2)), max_size=20)


@given(pieces=PIECES, edges=st.lists(st.integers(-20, 400), min_size=2, max_size=9).map(sorted))
def test_every_instant_counts_in_its_bucket(pieces: list[tuple[int, int, int]], edges: list[int]) -> None:
    """Pieces that come one after another, with gaps: (gap before, duration, group)."""
    start, rows = 0, []
    for gap, dur, group in pieces:
        rows.append((start + gap, dur, group))
        start += gap + dur
    starts, durs, groups = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    expected = [
        [
            sum(max(0, min(s + d, high) - max(s, low)) for s, d, g in rows if g == group)
            for low, high in zip(edges, edges[1:])
        ]
        for group in range(3)
    ]
    assert binned(starts, durs, groups, 3, np.array(edges, dtype=np.int64)).tolist() == expected


NAMES = [
    ("aten::mm", "cpu_op"),
    ("aten::view", "cpu_op"),
    ("f.py(3): g", "python_function"),
    ("cudaLaunchKernel", "cuda_runtime"),
]
HOST = st.tuples(st.integers(0, 900), st.integers(1, 300), st.sampled_from(NAMES), st.sampled_from([MAIN, AUTOGRAD]))
DEVICE = st.tuples(
    st.integers(0, 1500),
    st.integers(0, 400),
    st.sampled_from(["gemm", "ncclDevKernel", "Memcpy HtoD"]),
    st.integers(0, 1),
)


def closes(analysis: TraceAnalysis) -> None:
    """Every lane sums to its budget, and every bucket of a lane is full where its budget is."""
    drawn = analysis.over_time
    assert drawn is not None
    sums = {lane.device: {name: sum(row) for name, row in lane.ns.items()} for lane in drawn.lanes}
    lengths = np.diff(drawn.edges_ns).tolist()
    assert sum(lengths) == analysis.window.wall_ns
    assert sums.pop("", {}) == {category.category: category.ns for category in analysis.host if category.ns}
    for lane in drawn.lanes:
        filled = [sum(row[at] for row in lane.ns.values()) for at in range(len(lengths))]
        assert all(ns == most if not lane.device else ns <= most for ns, most in zip(filled, lengths, strict=True))
    for device in analysis.devices:
        mine = sums.pop(device.device)
        assert {name.removeprefix(over.IDLE): ns for name, ns in mine.items() if name.startswith(over.IDLE)} == {
            name: ns for name, ns in device.idle_blame.items() if ns
        }
        both = device.kinds.overlap_ns
        alone = (device.kinds.compute_ns - both, device.kinds.communication_ns - both, both)
        assert tuple(mine.get(name, 0) for name in ("compute", "communication", "both at once")) == alone
        assert sum(ns for name, ns in mine.items() if not name.startswith(over.IDLE)) == device.busy_ns
    assert not sums


@settings(max_examples=50)
@given(host=st.lists(HOST, max_size=15), device=st.lists(DEVICE, max_size=15), buckets=st.integers(1, 50))
def test_buckets_sum_to_the_budget(host: list, device: list, buckets: int) -> None:
    entries = [timed(start, dur, *name, thread=thread) for start, dur, name, thread in host]
    entries += [timed(start, dur, name, "kernel", (at, 7), device=at, stream=7) for start, dur, name, at in device]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(over, "MOST_BUCKETS", buckets)
        closes(analyzer_of(*entries).analysis())


def test_an_operator_dispatches_first() -> None:
    """Views take 10 ns, the dispatch of the operator takes 50, and it computes for the other 30."""
    entries = [timed(0, 10, "aten::view"), timed(10, 100, "aten::mm"), timed(40, 20, "aten::view")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(over, "MOST_BUCKETS", 11)
        (host,) = analyzer_of(*entries).analysis().over_time.lanes
    assert host.ns == {
        "dispatcher": (10, 10, 10, 10, 10, 10, 10, 10, 0, 0, 0),
        "kernel": (0, 0, 0, 0, 0, 0, 0, 0, 10, 10, 10),
    }
