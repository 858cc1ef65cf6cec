"""What holds of the critical path of any trace, however its events contradict each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from overhead_lens.report.forms import to_html, to_json, to_text
from overhead_lens.traces import loops
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.critical_path.analysis import PathAnalysis, WindowAnalysis
from overhead_lens.traces.critical_path.graph import EDGES, Graph
from overhead_lens.traces.critical_path.longest import WindowGraph
from overhead_lens.traces.critical_path.model import KINDS, UNEXPLAINED, WindowPath
from overhead_lens.traces.device import KINDS as DEVICE_KINDS
from tests.documents import validated
from tests.drawn.timelines import AUTOGRAD, CLASSIFIER, MAIN, analyzer_of, timed, trace_of
from tests.traces.test_trace_analysis import ANNOTATIONS, HOST_EVENTS, SPANS

STREAMS = st.sampled_from([7, 9])
CALLS = st.builds(
    lambda span, name, thread, correlation: timed(*span, name, "cuda_runtime", thread, correlation=correlation),
    SPANS,
    st.sampled_from(
        [
            "cudaLaunchKernel",
            "anyReplay",
            "cudaGraphLaunch",
            "cudaMemcpyAsync",
            "cudaStreamSynchronize",
            "cudaDeviceSynchronize",
            "cudaEventSynchronize",
            "cudaEventRecord",
            "cudaStreamWaitEvent",
            "cudaFree",
        ]
    ),
    st.sampled_from([MAIN, AUTOGRAD]),
    st.integers(0, 6),
)
WORK = st.builds(
    lambda span, kind, device, stream, correlation: timed(
        *span, kind[0], kind[1], (device, stream), device=device, stream=stream, correlation=correlation
    ),
    SPANS,
    st.sampled_from([("gemm", "kernel"), ("ncclDevKernel_AllReduce", "kernel"), ("Memcpy DtoH", "gpu_memcpy")]),
    st.integers(0, 1),
    STREAMS,
    st.integers(-1, 8),
)
SYNCHRONIZATIONS = st.builds(
    lambda span, kind, stream, of, correlation, record: timed(
        *span,
        kind,
        "cuda_sync",
        (0, stream),
        cuda_sync_kind=kind,
        device=0,
        stream=stream,
        wait_on_stream=of,
        correlation=correlation,
        wait_on_cuda_event_record_corr_id=record,
    ),
    SPANS,
    st.sampled_from(["Stream Wait Event", "Event Sync", "Stream Sync", "Context Sync"]),
    STREAMS,
    STREAMS,
    st.integers(-1, 8),
    st.integers(-1, 8),
)
TRACES = st.lists(st.one_of(HOST_EVENTS, ANNOTATIONS, CALLS, CALLS, WORK, WORK, SYNCHRONIZATIONS), max_size=18)


def plain(paths: PathAnalysis) -> list[dict[str, list[Any]]]:
    """The parts of the paths."""
    return [{name: column.tolist() for name, column in table.items()} for table in paths.tables()]


def paths(entries: list[dict]) -> PathAnalysis:
    return analyzer_of(*entries).paths


def made(window: WindowAnalysis) -> WindowGraph:
    return window._made


def nothing_free(window: WindowAnalysis) -> np.ndarray:
    return np.zeros((1, len(window.labels.kind)), dtype=bool)


def length(window: WindowAnalysis) -> int:
    """The longest path, each node by the sources of its edges in plain Python."""
    graph = made(window)
    edges = list(zip(graph.source.tolist(), graph.weight_ns.tolist(), strict=True))
    values: list[int] = []

    def longest(ways: list[tuple[int, int]]) -> int:
        return max((weight + (values[source] if source >= 0 else 0) for source, weight in ways), default=0)

    for first, past, delay in zip(graph.first[:-1], graph.first[1:], graph.delay_ns.tolist(), strict=True):
        values.append(delay + longest(edges[first:past]))
    return longest(list(zip(graph.last.tolist(), graph.last_weight_ns.tolist(), strict=True)))


@settings(max_examples=100)
@given(entries=TRACES)
def test_what_holds_of_the_path_of_any_trace(entries: list[dict]) -> None:
    found = paths(entries)
    check_dependencies_go_forward(found.graph)
    analysis = found.analysis()  # the constructors check the sums
    for path, window in zip(analysis.windows, found.windows, strict=True):
        expected_ns = length(window)
        assert path.length_ns == expected_ns <= path.wall_ns
        check_parts_follow_each_other(path, window)
        for instants in spans_of(entries, window).values():
            assert len(instants) <= expected_ns
        check_what_is_not_on_it_can_be_free(window, expected_ns)
        check_what_if_something_were_free(path, window)
        check_slack(window, expected_ns)


def check_dependencies_go_forward(graph: Graph) -> None:
    target = np.repeat(np.arange(len(graph.time_ns)), np.diff(graph.first))
    assert (graph.source < target).all()
    assert (np.diff(graph.time_ns) >= 0).all()
    spans = graph.time_ns[target] - graph.time_ns[graph.source]
    assert ((graph.weight_ns >= 0) & (graph.weight_ns <= spans)).all()
    assert (graph.delay_ns >= 0).all()
    assert sum(graph.edge_counts.values()) == len(graph.source)
    assert set(graph.broken) <= set(EDGES) - {"program_order", "device_event"}


def check_parts_follow_each_other(path: WindowPath, window: WindowAnalysis) -> None:
    parts = window.parts
    ends = parts.start_ns + parts.dur_ns
    assert parts.start_ns.tolist() == [path.start_ns, *ends[:-1].tolist()]
    assert ends[-1] == path.start_ns + path.wall_ns


def spans_of(entries: list[dict], window: WindowAnalysis) -> dict[Any, set[int]]:
    """Instants of the window in which each stream works."""
    zero = min(round(float(entry["ts"].text) * 1000) for entry in entries)
    start, end = window.window.bounds
    lanes: dict[Any, set[int]] = {}
    for entry in entries:
        if entry["cat"] in ("kernel", "gpu_memcpy"):
            first = round(float(entry["ts"].text) * 1000) - zero
            past = first + round(float(entry["dur"].text) * 1000)
            lanes.setdefault((entry["pid"], entry["tid"]), set()).update(range(max(first, start), min(past, end)))
    return lanes


def check_what_is_not_on_it_can_be_free(window: WindowAnalysis, expected_ns: int) -> None:
    graph = made(window)
    used = set(window._path.via.tolist())
    for edge in set(range(len(graph.weight_ns))) - used:
        weights = graph.weight_ns.copy()
        weights[edge] = 0
        assert replace(graph, weight_ns=weights).longest(nothing_free(window))[0] == expected_ns
    for label in np.flatnonzero(window.own == 0).tolist():
        free = nothing_free(window)
        free[0, label] = True
        assert graph.longest(free)[0] == expected_ns


def check_what_if_something_were_free(path: WindowPath, window: WindowAnalysis) -> None:
    """Each share's figure is the window evaluated without it, and no shorter than the path without it."""
    assert made(window).longest(~nothing_free(window)).tolist() == [0]
    labels = window.labels
    kinds = np.array([KINDS[kind] for kind in labels.kind.tolist()])
    names, operators = (
        np.array([labels.text(code) for code in codes.tolist()]) for codes in (labels.name, labels.operator)
    )
    delays, device = np.isin(kinds, KINDS[-4:]), np.isin(kinds, DEVICE_KINDS)
    everything = np.ones(len(kinds), dtype=bool)
    for shares, told, mask in (
        (path.kinds, kinds, everything), (path.operators, operators, ~delays), (path.kernels, names, device),
    ):  # fmt: skip
        for share in shares:
            if share.name != UNEXPLAINED:
                longest = made(window).longest(((told == share.name) & mask)[None, :])[0]
                assert share.if_free_ns == longest + path.unexplained_ns
            if share.if_free_ns is not None:
                assert path.wall_ns - share.ns <= share.if_free_ns <= path.wall_ns


def check_slack(window: WindowAnalysis, expected_ns: int) -> None:
    """An event can be longer by its slack and no longer."""
    graph, trace = made(window), window._graph
    least = {(each.kernel, each.device): each.least_ns for each in window.path([], [], []).slack}
    on_path = set(window._path.nodes.tolist())
    event = trace.event[window._low : window._high]
    for node in np.flatnonzero((event >= 0) & (window._path.tail_ns >= 0)).tolist():
        work = trace.work
        key = trace.labels.names[work.name[event[node]]], str(work.device[event[node]])
        longer = graph.delay_ns.copy()
        slack_ns = expected_ns - int(window._path.value_ns[node] + window._path.tail_ns[node])
        longer[node] += slack_ns
        assert replace(graph, delay_ns=longer).longest(nothing_free(window))[0] == expected_ns
        longer[node] += 1
        assert replace(graph, delay_ns=longer).longest(nothing_free(window))[0] == expected_ns + 1
        assert node in on_path or least[key] <= slack_ns


@settings(max_examples=60)
@given(entries=st.lists(st.one_of(HOST_EVENTS, WORK), max_size=14))
def test_the_path_is_at_least_as_long_as_the_busiest_thread_works(entries: list[dict]) -> None:
    analyzer = analyzer_of(*entries)
    timelines = [thread.timeline for thread in analyzer.threads.values()]
    # No call blocks in these traces, and no other thread evaluates nodes.
    assume(analyzer.paths.windows and not any(timeline.is_autograd for timeline in timelines))
    (window,) = analyzer.paths.windows
    assert max((timeline.covered_ns for timeline in timelines), default=0) <= length(window)


@settings(max_examples=60)
@given(entries=TRACES, order=st.randoms(use_true_random=False))
def test_the_order_of_events_in_the_file_changes_nothing(entries: list[dict], order: Any) -> None:
    # Of events that coincide only the file tells which is inside, and of calls alike which one launched.
    keys = [
        (entry["pid"], entry["tid"], entry["ts"].text, entry["dur"].text)
        for entry in entries
        if entry["cat"] not in ("kernel", "gpu_memcpy", "cuda_sync")
    ]
    calls = [(entry["args"]["correlation"], entry["ts"].text) for entry in entries if entry["cat"] == "cuda_runtime"]
    told = [entry["args"]["correlation"] for entry in entries if entry["cat"] == "cuda_sync"]
    assume(all(len(set(each)) == len(each) for each in (keys, calls, told)))
    shuffled = list(entries)
    order.shuffle(shuffled)
    first, second = (Analyzer(trace_of(each), CLASSIFIER).paths for each in (entries, shuffled))
    assert first.analysis() == second.analysis()
    assert plain(first) == plain(second)


def test_compiled_and_plain_loops_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [timed(5 * at, 3, f"aten::{at % 3}") for at in range(40)]
    rows += [timed(5 * at + 1, 1, "cudaLaunchKernel", "cuda_runtime", correlation=at) for at in range(40)]
    rows += [timed(5 * at + 4, 4, "gemm", "kernel", (0, 7), device=0, stream=7, correlation=at) for at in range(40)]
    found = []
    for compiled_from in (0, 1 << 40):
        for name in ("LOADED_FROM", "COMPILED_FROM"):
            monkeypatch.setattr(loops, name, compiled_from)
        found.append((paths(rows).analysis(), plain(paths(rows))))
    assert found[0] == found[1]
    (path,) = found[0][0].windows
    # The operator and the call in it, two until the first kernel, and from then on kernels of four with one between them.
    on_path = {"dispatcher": 1, "launch": 1, "launch_latency": 2, "compute": 40 * 4, "device_gap": 39}
    assert {share.name: share.ns for share in path.kinds if share.ns} == on_path


@settings(max_examples=15)
@given(entries=TRACES)
def test_every_report_of_it_can_be_made(entries: list[dict]) -> None:
    analysis = Analyzer(trace_of(entries), CLASSIFIER, critical_path=True).analysis()
    document = validated(to_json(analysis))
    assert len(document["traces"][0]["critical_path"]["windows"]) == len(analysis.critical_path.windows)
    told = to_text(analysis)
    assert ("Critical path of" in told) == bool(analysis.critical_path.windows)
    assert ("Critical path of" in to_html(analysis)) == bool(analysis.critical_path.windows)
