"""What device work says of itself: occupancy, copies, nodes of graphs, ranges of CUPTI, rates of matrix products."""

from __future__ import annotations

from typing import Any

from overhead_lens.documents.analysis import trace_document
from overhead_lens.export.query import run_query
from overhead_lens.report.forms import to_text
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.counters.metrics import adds_up, flop, unit_of
from overhead_lens.traces.counters.model import NO_COUNTERS, Counters
from overhead_lens.traces.counters.products import product_rates
from overhead_lens.traces.pieces import Analyzed, pieces_of
from tests.drawn.collectives import collective
from tests.drawn.counters import counter, ranged, work
from tests.drawn.timelines import CLASSIFIER, analyzer_of, timed, trace_of
from tests.drawn.trace_text import Number

OCCUPANCY, BLOCKS, WARPS = "est. achieved occupancy %", "blocks per SM", "warps per SM"
A100 = {"deviceProperties": [{"id": 0, "numSms": 108, "maxThreadsPerMultiprocessor": 2048, "warpSize": 32}]}


def of(*entries: dict, **metadata: Any) -> Counters:
    return analyzer_of(timed(0, 1000, "all of it", "user_annotation"), *entries, **metadata).analysis().counters


def launched(start: int, correlation: int, name: str = "cudaLaunchKernel") -> dict:
    return timed(start, 1, name, "cuda_runtime", correlation=correlation)


def test_occupancy_is_weighted_by_duration() -> None:
    found = of(
        work(0, 30, "a", **{OCCUPANCY: 50, BLOCKS: 0.5, WARPS: 4}),
        work(30, 10, "a", **{OCCUPANCY: 90, BLOCKS: 2.5, WARPS: 20.0}),
        work(50, 60, "b", **{OCCUPANCY: 100, BLOCKS: 8, WARPS: 64}),
        work(200, 100, "says nothing"),
        **A100,
    )
    (device,) = found.devices
    assert (device.kernel_ns, device.known_ns, device.unfilled_ns) == (200, 100, 30)
    assert (device.sms, device.warps_per_sm_most) == (108, 64)
    assert device.occupancy_percent == (30 * 50 + 10 * 90 + 60 * 100) / 100
    assert [(one.name, one.count, one.total_ns, one.unfilled_ns) for one in found.occupancy] == [
        ("b", 1, 60, 0),
        ("a", 2, 40, 30),
    ]
    a = found.occupancy[1]
    assert (a.occupancy_percent, a.blocks_per_sm, a.warps_per_sm) == (60.0, 1.0, 8.0)


def test_no_occupancy_with_a_warp_and_more_on_each_sm_was_not_computed() -> None:
    found = of(
        work(0, 30, "big", **{OCCUPANCY: 0, BLOCKS: 0.2, WARPS: 1.0}),
        work(40, 10, "tiny", **{OCCUPANCY: 0, BLOCKS: 0.01, WARPS: 0.04}),
    )
    big, tiny = found.occupancy
    assert (big.occupancy_percent, big.uncomputed, big.unfilled_ns) == (None, 1, 30)
    assert (tiny.occupancy_percent, tiny.uncomputed) == (0.0, 0)
    assert (found.devices[0].occupancy_percent, found.devices[0].known_ns, found.devices[0].sms) == (0.0, 10, None)


def test_copies_have_the_rate_of_those_that_say_their_size() -> None:
    found = of(
        work(0, 10, "HtoD", "gpu_memcpy", bytes=1000),
        work(10, 30, "HtoD", "gpu_memcpy", bytes=600),
        work(50, 5, "HtoD", "gpu_memcpy"),
        work(60, 0, "HtoD", "gpu_memcpy", bytes=8),
        work(70, 5, "unsized", "gpu_memset"),
        work(80, 4, "a kernel", bytes=4),
    )
    (copy,) = found.copies
    assert (copy.name, copy.count, copy.bytes, copy.total_ns, copy.unsized) == ("HtoD", 3, 1608, 40, 1)
    assert (copy.gb_s, copy.best_gb_s) == (1608 / 40, 100.0)
    assert "deviceProperties" in found.peaks


def test_nodes_of_graphs_are_told_by_their_numbers() -> None:
    nodes = [
        work(start, dur, name, correlation=correlation, **{"graph id": graph, "graph node id": node})
        for start, dur, name, correlation, graph, node in (
            (100, 10, "gemm", 1, 5, 70), (110, 4, "add", 1, 5, 71), (200, 12, "gemm", 2, 5, 70), (212, 3, "add", 2, 5, 71),
            (300, 2, "alone", 3, 0, 0), (310, 2, "other", 4, 6, 1),
        )
    ]  # fmt: skip
    found = of(*(launched(at, at // 10, "cudaGraphLaunch") for at in (10, 20)), *nodes)
    first, other = found.graphs
    assert (first.graph, first.launches, first.nodes, first.events, first.total_ns) == (5, 2, 2, 4, 29)
    assert [(node.node, node.name, node.count, node.total_ns) for node in first.costliest] == [
        (70, "gemm", 2, 22),
        (71, "add", 2, 7),
    ]
    assert (other.graph, other.launches, other.nodes) == (6, 0, 1)


FMA = {
    f"smsp__sass_thread_inst_executed_op_{op}_pred_on__dot__sum": n
    for op, n in (("fadd", 10), ("fmul", 20), ("ffma", 100))
}


def test_ranges_are_joined_to_kernels_of_their_names_in_order() -> None:
    found = of(
        timed(0, 20, "aten::mm"), launched(5, 1), timed(30, 20, "aten::add"), launched(35, 2),
        work(100, 10, "gemm", correlation=1), work(120, 40, "add", correlation=2),
        ranged(0, "gemm", **FMA), ranged(1, "__missing__", **FMA),
    )  # fmt: skip
    assert found.joined_by == "order"
    gemm, missing = sorted(found.ranges, key=lambda one: one.name, reverse=True)
    assert (gemm.name, gemm.operators, gemm.ranges, dict(gemm.flop)) == ("gemm", ("aten::mm",), 1, {"fp32": 230.0})
    assert (gemm.timed, gemm.timed_ns, gemm.gflop_s) == (1, 10, 23.0)
    assert (missing.operators, missing.timed_ns, missing.gflop_s) == (("aten::add",), 40, 230 / 40)
    assert "made up" in found.notes[0]


def test_ranges_are_joined_by_their_correlation_where_they_have_one() -> None:
    found = of(
        launched(5, 11), launched(6, 12),
        work(100, 10, "gemm", correlation=11), work(120, 40, "gemm", correlation=12),
        ranged(0, "gemm", correlation=12, **FMA),
    )  # fmt: skip
    (gemm,) = found.ranges
    assert (found.joined_by, gemm.timed_ns, gemm.ranges) == ("correlation", 40, 1)
    assert "correlation" not in gemm.metrics


def test_without_kernels_ranges_are_joined_to_as_many_launches_and_have_no_rate() -> None:
    found = of(timed(0, 20, "aten::mm"), launched(5, 1), ranged(0, "gemm", **FMA))
    (gemm,) = found.ranges
    assert (found.joined_by, gemm.operators, gemm.timed, gemm.gflop_s) == ("order", ("aten::mm",), 0, None)


def test_ranges_that_fit_nothing_are_not_joined() -> None:
    found = of(launched(5, 1), launched(6, 2), work(100, 10, "gemm", correlation=1), ranged(0, "add", **FMA))
    (add,) = found.ranges
    assert (found.joined_by, add.operators, add.timed, dict(add.flop)) == ("", (), 0, {"fp32": 230.0})
    assert any("could not be joined" in note for note in found.notes)


def test_metrics_add_up_only_where_they_may() -> None:
    found = of(
        *(ranged(at, "k", sm__warps__dot__avg=value, dram__bytes__dot__sum=value) for at, value in enumerate((2, 4)))
    )
    assert dict(found.ranges[0].metrics) == {"sm__warps.avg": 3.0, "dram__bytes.sum": 6.0}
    assert (adds_up("dram__bytes.sum"), adds_up("sm__x.avg.pct_of_peak_sustained_elapsed")) == (True, False)
    assert flop({"smsp__sass_thread_inst_executed_op_dadd_pred_on.sum": 1.0}) == {}


def test_units_follow_from_names() -> None:
    assert [unit_of(name) for name in ("dram__bytes_read.sum.per_second", "sm__cycles_active.avg", "smsp__inst_executed.sum",
        "sm__inst_executed.avg.per_cycle_active", "l1tex__t_sector_hit_rate.pct", "GPU Utilization [%]", "smsp__thread_inst_executed_per_inst_executed.ratio", "Queue Length")] == [
        "B/s", "cycles", "instructions", "instructions/cycle", "%", "%", "", "",
    ]  # fmt: skip


def test_rates_of_matrix_products_come_from_their_shapes_and_their_kernels() -> None:
    def shaped(start: int, name: str, dims: list, dtype: str = "float") -> dict:
        event = timed(start, 20, name)
        return {**event, "args": {"Input Dims": dims, "Input type": [dtype] * len(dims)}}

    found = of(
        shaped(0, "aten::mm", [[4, 8], [8, 16]]), launched(5, 1), work(100, 10, "gemm", correlation=1),
        shaped(30, "aten::mm", [[4, 8], [8, 16]]), launched(35, 2), work(110, 6, "gemm", correlation=2), work(116, 4, "reduce", correlation=2),
        shaped(60, "aten::addmm", [[16], [4, 8], [8, 16]], "c10::Half"), launched(65, 3), work(130, 2, "gemm", correlation=3),
        shaped(90, "aten::bmm", [[3, 4, 8], [3, 8, 16]]), launched(95, 4), work(140, 1, "gemm", correlation=4),
        shaped(200, "aten::mm", [[4, 8], [9, 16]]), launched(205, 5), work(250, 9, "gemm", correlation=5),
        shaped(300, "aten::mm", [[4, 8], [8, 16]]),
    )  # fmt: skip
    assert [(one.operator, one.shape, one.dtype, one.count, one.flop, one.device_ns) for one in found.products] == [
        ("aten::mm", "4 x 8 x 16", "float", 2, 2 * 2 * 4 * 8 * 16, 20),
        ("aten::addmm", "4 x 8 x 16", "c10::Half", 1, 2 * 4 * 8 * 16, 2),
        ("aten::bmm", "3 x 4 x 8 x 16", "float", 1, 3 * 2 * 4 * 8 * 16, 1),
    ]
    assert found.products[0].gflop_s == 2048 / 20


def test_a_product_with_a_sparse_factor_has_no_rate() -> None:
    """``adj @ x`` of a graph: the sizes are those of the whole matrix, and a sparse tensor has no strides."""

    def addmm(start: int, *strides: list[int]) -> dict:
        arguments = {
            "Input Dims": [[100, 16], [100, 100], [100, 16]],
            "Input Strides": strides,
            "Input type": ["float"] * 3,
        }
        return {**timed(start, 20, "aten::addmm"), "args": arguments}

    found = of(
        addmm(0, [16, 1], [], [16, 1]), launched(5, 1), work(100, 10, "cusparse::csrmm_kernel", correlation=1),
        addmm(30, [16, 1], [100, 1], [16, 1]), launched(35, 2), work(120, 40, "gemm", correlation=2),
    )  # fmt: skip
    (product,) = found.products
    assert (product.count, product.flop, product.device_ns) == (1, 2 * 100 * 100 * 16, 40)


def test_too_many_products_are_left_out_and_that_is_said(monkeypatch: Any) -> None:
    monkeypatch.setattr("overhead_lens.traces.counters.products.MOST_PRODUCTS", 0)
    trace = trace_of([timed(0, 20, "aten::mm"), launched(5, 1), work(100, 10, "gemm", correlation=1)])
    analyzer = Analyzer(trace, CLASSIFIER)
    rates, why = product_rates(trace, analyzer.host, analyzer.linked)
    assert (rates, "1 of them" in why) == ((), True)


def test_a_trace_without_any_of_it_says_nothing() -> None:
    assert of(work(1, 2)) == NO_COUNTERS
    assert analyzer_of().analysis().counters == NO_COUNTERS


def test_sizes_beyond_all_devices_are_none_and_break_nothing() -> None:
    huge = 2**62
    metrics = {"sm__warps__dot__avg": Number("1e308"), "dram__bytes__dot__sum": 10**400, "fine__dot__sum": 1}
    trace = trace_of([
        timed(0, 100, "all of it"), {**timed(0, 20, "aten::mm"), "args": {"Input Dims": [[2**30, 2**30], [2**30, 2**30]], "Input type": ["float"] * 2}},
        launched(5, 1), work(30, 5, correlation=1), work(40, 5, "HtoD", "gpu_memcpy", bytes=huge),
        counter(1, "c", _=Number("1e300")), counter(2, "c", _=1), counter(3, "c", _=huge), ranged(0, "k", **metrics), ranged(1, "k", **metrics),
        collective(50, 5, elements=huge, size=huge),
    ])  # fmt: skip
    analyzer = Analyzer(trace, CLASSIFIER)
    analysis = analyzer.analysis()
    found = analysis.counters
    assert (found.products, found.copies, dict(found.ranges[0].metrics)) == ((), (), {"fine.sum": 2.0})
    assert [(track.samples, track.max) for track in found.tracks] == [(2, float(huge))]
    assert [(one.elements, one.bytes, one.group_size) for one in analysis.collectives] == [(None, None, None)]
    assert dict(trace.issues) == {"bad_counter_event": 1}
    assert run_query("select count(*) from collectives", [Analyzed(trace, analysis, pieces_of(analyzer))]).rows == (
        (1,),
    )
    assert "NaN" not in trace_document(analysis).to_json()


def test_queries_have_every_value_and_every_argument() -> None:
    trace = trace_of([
        timed(0, 100, "all of it"),
        counter(10, "dram__bytes.sum", _=4), counter(30, "RSS", 1, "", _=2.5),
        work(5, 3, "HtoD", "gpu_memcpy", bytes=64), work(9, 3, **{OCCUPANCY: 12.5, "graph id": 2, "graph node id": 3}),
        ranged(0, "k", dram__bytes__dot__sum=7),
    ])  # fmt: skip
    analyzer = Analyzer(trace, CLASSIFIER)
    analyzed = [Analyzed(trace, analyzer.analysis(), pieces_of(analyzer))]
    columns = "trace, device, process, name, unit, start_ns, dur_ns, value"
    assert run_query(f"select {columns} from counters order by start_ns", analyzed).rows == (
        (0, 0, "GPU 0 Counters", "dram__bytes.sum", "B", 10, 90, 4.0), (0, None, "1", "RSS", "", 30, 70, 2.5),
    )  # fmt: skip
    columns = "name, device, stream, start_ns, dur_ns, bytes, graph, graph_node, occupancy_percent, warps_per_sm"
    assert run_query(f"select {columns} from work order by start_ns", analyzed).rows == (
        ("HtoD", 0, 7, 5, 3, 64, None, None, None, None), ("gemm", 0, 7, 9, 3, None, 2, 3, 12.5, None),
    )  # fmt: skip
    assert run_query("select kernel, ranges, metric, value from metrics", analyzed).rows == (
        ("k", 1, "dram__bytes.sum", 7.0),
    )


def test_the_terminal_tells_it_in_few_lines_and_hostile_names_stay_text() -> None:
    hostile = "[bold]\x1b[31mevil[/bold]"
    analysis = analyzer_of(
        timed(0, 1000, "all of it"),
        *(counter(at, hostile, _=at) for at in (100, 110, 120, 160, 170, 180)),
        work(5, 40, hostile, **{OCCUPANCY: 12, BLOCKS: 0.5, WARPS: 3}), work(50, 10, "HtoD", "gpu_memcpy", bytes=640),
    ).analysis()  # fmt: skip
    text = " ".join(to_text(analysis, whole=True).split())
    assert "\x1b" not in text
    assert "occupancy 12 % by Kineto's estimate; 100% of the time with less than one block for each SM" in text
    assert "HtoD 0 1 640 B 10 ns 64.0 GB/s 64.0 GB/s" in text
    assert "6 values every 10 ns; nothing is known for 30 ns in 1 gap" in text
