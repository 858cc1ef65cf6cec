"""Sequences of drawn traces: what repeats, at which places, and what it would spare, to the nanosecond."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.export.query import run_query
from overhead_lens.report.forms import to_html, to_json, to_text
from overhead_lens.traces.pieces import analyze_over_time
from overhead_lens.traces.sequences.model import RepeatedSequence
from tests.documents import validated
from tests.drawn.timelines import AUTOGRAD, CLASSIFIER, MAIN, analyzer_of, timed, trace_of

GRAPH = "cudaGraphLaunch"


def launched(start: int, dur: int, correlation: int, name: str = "cudaLaunchKernel") -> dict:
    return timed(start, dur, name, "cuda_runtime", MAIN, correlation=correlation)


def work(
    start: int, dur: int, name: str, correlation: int, stream: int = 7, cat: str = "kernel", device: int = 0
) -> dict:
    return timed(start, dur, name, cat, (device, stream), device=device, stream=stream, correlation=correlation)


def iteration(base: int, first: int) -> list[dict]:
    """Three kernels, beside them a copy, launched by one operator; another operator follows."""
    return [
        timed(base, 12, "aten::linear"),
        launched(base, 4, first),
        launched(base + 5, 2, first + 1),
        launched(base + 8, 3, first + 2),
        timed(base + 13, 2, "aten::add"),
        launched(base + 16, 1, first + 3, "cudaMemcpyAsync"),
        work(base + 10, 10, "gemm", first),
        work(base + 25, 5, "relu", first + 1),
        work(base + 30, 10, "norm", first + 2),
        work(base + 21, 2, "Memcpy", first + 3, stream=9, cat="gpu_memcpy"),
    ]


STEPS = [
    timed(0, 300, "train.py(12): step", "python_function"),
    timed(0, 300, "nn.Module: Net_0", "python_function"),
    *(entry for at in range(3) for entry in iteration(100 * at, 10 * at)),
]
KERNELS = RepeatedSequence(
    kind="launches", lane="device 0 stream 7", lanes=1, names=("gemm", "relu", "norm"), length=3, count=3,
    start_ns=10, busy_ns=3 * 25,
    launch_ns=3 * (4 + 3),  # one of three launches stays, at least the shortest
    gap_ns=3 * 5, idle_ns=3 * (5 - 2),  # the copy runs in the gap
    in_graph=0, operator="aten::linear", module="Net_0", line="train.py(12): step",
)  # fmt: skip
OPERATORS = RepeatedSequence(
    kind="operators", lane="thread 10", lanes=1, names=("aten::linear", "aten::add"), length=2, count=3,
    start_ns=0, busy_ns=3 * 14, launch_ns=0, gap_ns=3, idle_ns=3,
    in_graph=0, operator="", module="Net_0", line="train.py(12): step",
)  # fmt: skip


def found(*entries: dict) -> tuple[RepeatedSequence, ...]:
    return analyzer_of(*entries).analysis().sequences


def test_kernels_and_operators_that_repeat() -> None:
    assert found(*STEPS) == (KERNELS, OPERATORS)


def test_every_place_is_told() -> None:
    kernels, operators = analyzer_of(*STEPS).repeated
    assert (kernels.start_ns.tolist(), kernels.end_ns.tolist()) == ([10, 110, 210], [40, 140, 240])
    assert (operators.start_ns.tolist(), operators.end_ns.tolist()) == ([0, 100, 200], [15, 115, 215])


def test_the_order_of_the_events_does_not_matter() -> None:
    assert found(*STEPS[::-1]) == found(*STEPS)


def test_a_graph_is_captured_already() -> None:
    one = [launched(0, 10, 1, GRAPH), *(work(20 + 10 * at, 5, name, 1) for at, name in enumerate("abc"))]
    other = [launched(100, 6, 2, GRAPH), *(work(120 + 10 * at, 5, name, 2) for at, name in enumerate("abc"))]
    assert found(*one, *other) == ()


def test_several_graphs_could_be_one() -> None:
    graphs = []
    for base, first in ((0, 0), (100, 10)):
        graphs += [launched(base, 10, first + 1, GRAPH), launched(base + 12, 6, first + 2, GRAPH)]
        graphs += [work(base + 20, 5, "a", first + 1), work(base + 30, 5, "b", first + 1)]
        graphs += [work(base + 38, 5, "c", first + 2), work(base + 50, 5, "d", first + 2)]
    (sequence,) = found(*graphs)
    assert (sequence.names, sequence.count, sequence.in_graph) == (("a", "b", "c", "d"), 2, 8)
    # The longer call of each two; the gap from b to c alone.
    assert (sequence.launch_ns, sequence.gap_ns, sequence.idle_ns) == (2 * 10, 2 * 3, 2 * 3)


def test_idle_time_that_two_streams_wait_through_counts_once() -> None:
    entries = [
        work(base + start, dur, name, -1, stream)
        for base, stream in ((0, 7), (0, 8), (100, 7), (100, 8))
        for start, dur, name in ((0, 10, "a"), (30 if stream == 7 else 40, 10, "b"))
    ]
    whole, sequence = found(*entries)
    assert (sequence.names, sequence.count, sequence.lanes) == (("a", "b"), 4, 2)
    assert sequence.gap_ns == 2 * (20 + 30)
    assert sequence.idle_ns == 2 * 20  # 10 to 30; from 30 on the other stream works
    assert (whole.names, whole.count, whole.gap_ns) == (("a", "b", "a", "b"), 2, 2 * (20 + 30) + 60 + 50)
    assert whole.idle_ns == 2 * 20 + 50  # and 50 to 100


def test_the_first_place_is_the_earliest_of_all_streams() -> None:
    def pair(start: int, stream: int, correlation: int) -> list[dict]:
        calls = [launched(start + at, 1, correlation + at) for at in range(2)]
        return [*calls, work(start + 2, 1, "a", correlation, stream), work(start + 5, 1, "b", correlation + 1, stream)]

    (sequence,) = found(*pair(20, 7, 1), *pair(0, 9, 3))
    assert (sequence.lanes, sequence.lane, sequence.start_ns) == (2, "device 0 stream 9", 2)


def test_nothing_repeats_from_one_stream_to_the_next() -> None:
    # "a b" only if the end of one stream and the start of another were neighbours.
    entries = [
        work(at * 10, 5, name, -1, stream)
        for at, (name, stream) in enumerate([("x", 7), ("a", 7), ("b", 8), ("a", 8), ("b", 9)])
    ]
    assert found(*entries) == ()


def test_a_run_of_one_name_is_told_once() -> None:
    runs = [entry for at in range(64) for entry in (launched(10 * at, 2, at), work(10 * at + 4, 5, "k", at))]
    (sequence,) = found(*runs)
    assert (sequence.names, sequence.length, sequence.count) == (("k",) * 16, 32, 2)
    assert sequence.launch_ns == 2 * (64 - 2)


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [work(0, 5, "k", -1)],
        [work(at, 0, "k", -1) for at in range(3)],
        [timed(0, 10, "aten::mm")],
        [timed(at * 10, 5, "my note", "user_annotation") for at in range(8)],
    ],
)
def test_too_little_to_repeat(entries: list[dict]) -> None:
    assert found(*entries) == ()


def test_launches_without_their_call_have_gaps_alone() -> None:
    (sequence,) = found(
        *(work(100 * at + inner * 20, 5, name, -1) for at in range(2) for inner, name in enumerate("ab"))
    )
    assert (sequence.launch_ns, sequence.gap_ns, sequence.idle_ns) == (0, 30, 30)
    assert (sequence.operator, sequence.module, sequence.line) == ("", "", "")


def test_what_a_copy_waits_is_no_launching() -> None:
    """``loss.item()`` in a loop: the copy's call returns when the device has done all before it."""
    entries = []
    for base, first in ((0, 0), (1000, 10)):
        entries += [timed(base, 530, "aten::item"), timed(base + 540, 5, "aten::add")]
        entries += [launched(base, 4, first), launched(base + 5, 4, first + 1)]
        entries += [
            launched(base + 10, 510, first + 2, "cudaMemcpyAsync"),
            launched(base + 521, 8, first + 3, "cudaMemcpy"),
        ]
        entries += [launched(base + 541, 3, first + 4)]
        entries += [work(base + 10, 500, "gemm", first), work(base + 510, 5, "sum", first + 1)]
        entries += [work(base + 515, 3, "Memcpy DtoH (Device -> Pageable)", first + 2, cat="gpu_memcpy")]
        entries += [work(base + 522, 3, "Memcpy DtoH (Device -> Pageable)", first + 3, cat="gpu_memcpy")]
        entries += [work(base + 545, 3, "add", first + 4)]
    launches, operators = sorted(found(*entries), key=lambda one: one.kind)
    assert (launches.length, launches.count, launches.launch_ns) == (5, 2, 2 * (4 + 4 + 4 + 3 - 3))
    assert (operators.length, operators.count, operators.launch_ns) == (2, 2, 2 * (4 + 4 + 4 + 3 - 3))


def test_times_that_int64_cannot_sum() -> None:
    far = 2 * 10**18
    streams = [work(at * far, 1, name, -1, stream) for stream in range(3) for at, name in enumerate("ab")]
    assert found(*streams) == ()
    (sequence,) = found(*streams[:4])
    assert sequence.gap_ns == 2 * (far - 1)


def test_they_are_shown() -> None:
    analysis = analyzer_of(*STEPS).analysis()
    (trace,) = validated(to_json(analysis))["traces"]
    assert [(one["kind"], one["length"], one["count"], one["launch_ns"]) for one in trace["sequences"]] == [
        ("launches", 3, 3, 21), ("operators", 2, 3, 0),
    ]  # fmt: skip
    text = to_text(analysis, whole=True)
    assert "    21 ns          9 ns  3 device events, 3 times, on device 0 stream 7  gemm → relu → norm" in text
    assert "3 device events, 3 times, on device 0 stream 7" in to_html(analysis)


def test_hostile_names_stay_text() -> None:
    evil = "[red]\x1b[31m<script>"
    analysis = analyzer_of(
        *(work(50 * at + 20 * inner, 5, name, -1) for at in range(2) for inner, name in enumerate((evil, "b")))
    ).analysis()
    assert "\x1b" not in to_text(analysis, whole=True)
    page = to_html(analysis)
    assert "31m<script>" not in page
    assert "31m&lt;script&gt;" in page


def test_tables_of_a_query() -> None:
    traces = [analyze_over_time(trace_of(STEPS), CLASSIFIER), analyze_over_time(trace_of([]), CLASSIFIER)]
    asked = "select trace, sequence, kind, names, count, idle_ns from sequences order by all"
    assert run_query(asked, traces).rows == (
        (0, 0, "launches", "gemm → relu → norm", 3, 9), (0, 1, "operators", "aten::linear → aten::add", 3, 3),
    )  # fmt: skip
    asked = "select start_ns, dur_ns from repetitions where sequence = 0 order by 1"
    assert run_query(asked, traces).rows == ((10, 30), (110, 30), (210, 30))


@st.composite
def streams(draw: st.DrawFn) -> list[dict]:
    """Kernels of two streams with names that repeat, each after the one before; some launched, some of graphs."""
    entries: list[dict] = []
    correlation = 0
    for stream in (7, 8):
        now = 0
        for name in draw(st.lists(st.sampled_from("abc"), max_size=16)):
            # Even times on one stream and odd ones on the other: a start names its event.
            now += 2 * draw(st.integers(0, 2))
            dur = 2 * draw(st.integers(1, 2))
            how = draw(st.sampled_from(["call", "graph", "same", "none"]))
            if how in ("call", "graph"):
                correlation += 1
                call = GRAPH if how == "graph" else "cudaLaunchKernel"
                entries.append(launched(draw(st.integers(0, 40)), draw(st.integers(0, 5)), correlation, call))
            entries.append(work(now + stream - 7, dur, name, -1 if how == "none" else correlation, stream))
            now += dur
    return draw(st.permutations(entries))


def ns(entry: dict) -> tuple[int, int]:
    return round(float(entry["ts"].text) * 1000), round(float(entry["dur"].text) * 1000)


@settings(max_examples=200)
@given(entries=streams())
def test_a_sequence_found_is_there_at_all_its_places(entries: list[dict]) -> None:
    analyzer = analyzer_of(timed(0, 1, "aten::mm"), *entries)
    calls = {entry["args"]["correlation"]: entry for entry in entries if entry["cat"] == "cuda_runtime"}
    lanes: defaultdict[int, list[dict]] = defaultdict(list)
    for entry in sorted((entry for entry in entries if entry["cat"] == "kernel"), key=ns):
        lanes[entry["args"]["stream"]].append(entry)
    busy = {now for lane in lanes.values() for entry in lane for now in range(ns(entry)[0], sum(ns(entry)))}
    paid = by_first(lanes, calls)
    for one in analyzer.repeated:
        told = one.sequence
        taken: set[tuple[int, int]] = set()
        launch_ns = gap_ns = graph = 0
        idle: set[int] = set()
        for start_ns, end_ns in zip(one.start_ns.tolist(), one.end_ns.tolist(), strict=True):
            at = next(
                (stream, place)
                for stream, lane in lanes.items()
                for place in range(len(lane) - told.length + 1)
                if ns(lane[place])[0] == start_ns
                and tuple(entry["name"] for entry in lane[place : place + min(told.length, 16)]) == told.names
                and (stream, place) not in taken
            )
            inside = lanes[at[0]][at[1] : at[1] + told.length]
            assert sum(ns(inside[-1])) == end_ns
            places = {(at[0], at[1] + offset) for offset in range(told.length)}
            assert not places & taken
            taken |= places
            own = [paid[id(entry)] for entry in inside if id(entry) in paid]
            launch_ns += sum(own) - min(own, default=0)
            for before, after in zip(inside, inside[1:], strict=False):
                if is_one_graph(before, after, calls):
                    continue
                gap = range(sum(ns(before)), ns(after)[0])
                gap_ns += len(gap)
                idle |= set(gap) - busy
            graph += sum(calls.get(entry["args"]["correlation"], {"name": ""})["name"] == GRAPH for entry in inside)
        assert (told.count, told.launch_ns, told.gap_ns, told.idle_ns, told.in_graph) == (
            len(one.start_ns), launch_ns, gap_ns, len(idle), graph,
        )  # fmt: skip


def by_first(lanes: dict[int, list[dict]], calls: dict[int, dict]) -> dict[int, int]:
    """Time of the call by the first event that it launched, stream after stream."""
    paid, seen = {}, set()
    for stream in sorted(lanes):
        for entry in lanes[stream]:
            correlation = entry["args"]["correlation"]
            if correlation in calls and correlation not in seen:
                seen.add(correlation)
                paid[id(entry)] = ns(calls[correlation])[1]
    return paid


def is_one_graph(before: dict, after: dict, calls: dict[int, dict]) -> bool:
    correlation = before["args"]["correlation"]
    return correlation == after["args"]["correlation"] and calls.get(correlation, {"name": ""})["name"] == GRAPH


def test_operators_of_two_threads() -> None:
    entries = [
        timed(100 * at + start, 10, name, "cpu_op", thread)
        for thread in (MAIN, AUTOGRAD)
        for at in range(2)
        for start, name in ((0, "aten::a"), (30, "aten::b"))
    ]
    inner = [timed(1, 5, "aten::inner"), timed(101, 5, "aten::inner")]
    whole, sequence = found(*entries, *inner)
    assert (whole.length, whole.count, whole.gap_ns) == (4, 2, 2 * (20 + 60 + 20))
    assert (sequence.names, sequence.count, sequence.lanes) == (("aten::a", "aten::b"), 4, 2)
    assert (sequence.gap_ns, sequence.idle_ns) == (4 * 20, 4 * 20)
