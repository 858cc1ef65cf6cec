"""What an event costs the profiler, from drawn calibration calls, and a trace corrected by it."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from scipy.optimize import nnls

from overhead_lens.budget.trace import trace_budget
from overhead_lens.correction import fit
from overhead_lens.correction.event_cost import (
    ANNOTATION,
    BACKWARD_NODE,
    C_CALL,
    COMPILED_REGION,
    DEVICE_CALL,
    DEVICE_LAUNCH,
    FAST_ANNOTATION,
    MEMORY,
    OF_OPERATORS,
    OPERATOR_NESTED,
    OPERATOR_OUTER,
    PYTHON_FUNCTION,
    EventCost,
    event_class,
)
from overhead_lens.correction.fit import event_costs
from overhead_lens.instruments.trace.record import Traced
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.taxonomy.torch_names import PROFILER_PAUSE
from tests.drawn.stacks import CLASSIFIER
from tests.drawn.timelines import events

TIMING = Traced(calls=1, traced_wall_ns=10_000, bare_wall_ns=8_000, operator_floor_ns=10_000)


def row(kind: str, bare_ns: float, traced_ns: float, **changes: Any) -> dict[str, Any]:
    """One calibration call, disturbed in all rounds but one."""
    base = {"flags": "plain", "kind": kind, "name": kind, "outer": 0.0, "nested": 0.0, "others": 0.0, "span_ns": {}}
    base["rms_reuse_distance"] = 2.0
    return {**base, "bare_ns": [bare_ns + 7, bare_ns], "traced_ns": [traced_ns, traced_ns + 900], **changes}


def operators(outer_ns: float, nested_ns: float, **changes: Any) -> list[dict[str, Any]]:
    made = [
        row("operator", 1_000.0, 1_000 + outer_ns + nested * nested_ns, outer=1.0, nested=float(nested), **changes)
        for nested in (0, 2, 3, 12)
    ]
    return [{**made[0], "span_ns": {"aten::resolve_conj": 60}}, *made[1:]]


@given(st.integers(1, 2_000), st.integers(1, 2_000))
def test_operators_are_told_apart(outer_ns: int, nested_ns: int) -> None:
    costs = event_costs(operators(outer_ns, nested_ns), "plain")
    assert costs[OPERATOR_OUTER].total_ns == pytest.approx(outer_ns, rel=1e-6)
    assert costs[OPERATOR_NESTED].total_ns == pytest.approx(nested_ns, rel=1e-6)
    # Of a span of 60 ns the share that recording added to the call.
    inside_ns = 60 * outer_ns / (1_000 + outer_ns)
    assert costs[OPERATOR_OUTER].inside_ns == pytest.approx(min(inside_ns, outer_ns), rel=1e-6)
    assert costs[OPERATOR_NESTED].inside_ns == pytest.approx(min(inside_ns, nested_ns), rel=1e-6)


@given(st.integers(1, 12), st.integers(1, 3), st.randoms(use_true_random=False))
def test_no_cost_is_negative_and_none_fits_better(calls: int, kinds: int, random: Random) -> None:
    """Held against SciPy's, also where counts are in proportion to each other or all 0."""
    counts = np.array([[random.randint(0, 3) for _ in range(kinds)] for _ in range(calls)], dtype=np.float64)
    spent_ns = np.array([random.uniform(-300, 900) for _ in range(calls)])
    found = np.array(fit._non_negative(counts, spent_ns))
    best, left_ns = nnls(counts, spent_ns)
    assert found.min() >= 0
    assert np.count_nonzero(found) <= np.linalg.matrix_rank(counts)
    assert np.linalg.norm(spent_ns - counts @ found) == pytest.approx(left_ns, rel=1e-9, abs=1e-9)
    if np.linalg.matrix_rank(counts) == kinds:
        assert found == pytest.approx(best, rel=1e-9, abs=1e-9)


def test_a_short_operator_says_what_is_inside_and_nothing_of_the_whole() -> None:
    short = row("short_operator", 600.0, 1_000.0, outer=1.0, span_ns={"aten::resolve_conj": 50})
    in_a_row = [
        row("operator", 1_000.0 * count, 1_300.0 * count, outer=float(count), span_ns={"aten::neg": 500})
        for count in (1, 2, 4, 8)
    ]
    costs = event_costs([short, *in_a_row], "plain")
    # Its own 400 ns are no part of the fit; of its span of 50 ns recording added 400 ns in 1,000.
    assert costs[OPERATOR_OUTER].total_ns == pytest.approx(300)
    assert costs[OPERATOR_OUTER].inside_ns == pytest.approx(50 * 400 / 1_000)
    assert costs[OPERATOR_OUTER].spread_ns == pytest.approx(0, abs=1e-6)
    # Without it the shortest is the neg, of which only a call alone counts.
    assert event_costs(in_a_row, "plain")[OPERATOR_OUTER].inside_ns == pytest.approx(500 * 300 / 1_300)


def test_a_call_off_the_fit_is_the_spread() -> None:
    off = row("operator", 1_000.0, 1_000 + 400 + 4 * 200 + 500, outer=1.0, nested=4.0)
    assert event_costs(operators(400, 200), "plain")[OPERATOR_NESTED].spread_ns == pytest.approx(0, abs=1e-6)
    assert event_costs([*operators(400, 200), off], "plain")[OPERATOR_NESTED].spread_ns > 30


def test_the_median_over_processes() -> None:
    rows = [
        {**each, "process": process}
        for process, (outer_ns, nested_ns) in enumerate([(300, 210), (703, 121), (340, 200)])
        for each in operators(outer_ns, nested_ns)
    ]
    rows += [{**row("annotation", 5_000.0, 5_350.0), "process": 2}]
    costs = event_costs(rows, "plain")
    assert costs[OPERATOR_OUTER].total_ns == pytest.approx(340)
    assert costs[OPERATOR_OUTER].inside_ns == pytest.approx(60 * 340 / 1_340)
    assert costs[OPERATOR_NESTED].total_ns == pytest.approx(200)
    # The median of 40, 363 and 0, and of 10, 79 and 0, as 95 % of processes.
    assert costs[OPERATOR_OUTER].spread_ns == pytest.approx(2.91 * 40)
    assert costs[OPERATOR_NESTED].spread_ns == pytest.approx(2.91 * 10)
    assert costs[ANNOTATION].total_ns == pytest.approx(350)


def test_page_faults_are_no_cost_of_an_event() -> None:
    plain = operators(400, 200)
    # The fastest round is not the one with the fewest faults: 1,400 - 0.5 * 700 is less than 1,390 - 0.1 * 700.
    faulted = [
        {
            **each,
            "fault_ns": 700.0,
            "bare_ns": [each["bare_ns"][1] + 70, each["bare_ns"][1] + 900],
            "bare_faults": [0.1, 0.2],
            "traced_ns": [each["traced_ns"][0] + 350, each["traced_ns"][0] + 340],
            "traced_faults": [0.5, 0.1],
        }
        for each in plain
    ]
    costs = event_costs(faulted, "plain")
    assert costs[OPERATOR_OUTER].total_ns == pytest.approx(event_costs(plain, "plain")[OPERATOR_OUTER].total_ns)
    assert costs[OPERATOR_NESTED].total_ns == pytest.approx(200)


def test_annotations_and_the_region() -> None:
    spans = {"TorchDynamo Cache Lookup": 1_200, "Torch-Compiled Region: 0/0": 12_000, "Pregraph bytecode": 1_000}
    rows = [
        *operators(400, 200),
        row("annotation", 5_000.0, 5_350.0, others=1.0, span_ns={"calibration": 3_500}),
        row("fast_annotation", 300.0, 700.0, others=1.0, span_ns={"calibration": 140}),
        row("compiled", 14_000.0, 20_000.0, others=3.0, span_ns=spans),
    ]
    costs = event_costs(rows, "plain")
    assert costs[ANNOTATION] == EventCost(350, 3_500 * 350 / 5_350)
    assert costs[FAST_ANNOTATION] == EventCost(400, 140 * 400 / 700)
    # 6,000 ns less one lookup and one annotation; inside as the region's span is to the call.
    region = costs[COMPILED_REGION]
    assert (region.total_ns, region.inside_ns) == pytest.approx((5_200, 5_200 * 12_000 / 20_000))
    assert region.outside_ns == pytest.approx(5_200 * 8_000 / 20_000)


def displaced(kind: str, name: str, more_ns: dict[int, float], own_ns: float = 300.0) -> list[dict[str, Any]]:
    """Calls after copies of so many bytes, each of which took 10 us for a byte, and what recording cost more after them."""
    return [
        {
            "flags": "plain",
            "kind": kind,
            "name": name,
            "bytes": count,
            "copy_ns": 10_000.0 * count,
            "bare_ns": [1_000.0 * count + 9, 1_000.0 * count],
            "traced_ns": [1_000.0 * count + own_ns + more, 1_000.0 * count + own_ns + more + 400],
        }
        for count, more in {0: 0.0, **more_ns}.items()
    ]


def test_the_first_event_after_kernels_costs_more() -> None:
    rows = [
        *operators(400, 200),
        row("fast_annotation", 300.0, 700.0, others=1.0, span_ns={"calibration": 140}),
        row("compiled", 14_000.0, 20_000.0, others=3.0, span_ns={"Torch-Compiled Region: 0/0": 12_000}),
        *displaced("displaced_operator", "neg 1", {1: 100.0, 2: 500.0}),
        *displaced("displaced_operator", "mm", {1: 200.0, 2: 700.0}, own_ns=900.0),
        *displaced("displaced_compiled", "x * 2", {1: 1_150.0, 2: 3_600.0}, own_ns=6_000.0),
    ]
    costs = event_costs(rows, "plain")
    # The mean of both calls; of the compiled call what its lookup, an operator, has not paid.
    assert costs[OPERATOR_OUTER].cold_after_kernels_ns == ((10_000, 150), (20_000, 600))
    assert costs[COMPILED_REGION].cold_after_kernels_ns == ((10_000, 1_000), (20_000, 3_000))
    assert costs[OPERATOR_NESTED].cold_after_kernels_ns == costs[FAST_ANNOTATION].cold_after_kernels_ns == ()
    times_ns = np.array([0.0, 5_000, 10_000, 16_000, 20_000, 1e9])
    after = costs[OPERATOR_OUTER].after_kernels_ns(times_ns).tolist()
    assert after == pytest.approx([0, 75, 150, 420, 600, 600])
    assert costs[OPERATOR_NESTED].after_kernels_ns(times_ns).tolist() == [0.0] * 6
    # The operators' own cost is that of calls after nothing.
    assert costs[OPERATOR_OUTER].total_ns == pytest.approx(400)


def backward(node_ns: float, pass_ns: float, nested_ns: float = 200.0) -> list[dict[str, Any]]:
    """Passes over so many nodes, each with its function and an operator; the engine evaluates one leaf besides."""
    counts = {"outer": 1.0, "others": 2.0, "evaluated": 1.0}
    return [
        row(
            "backward",
            9_000.0,
            9_000 + (nodes + 1) * node_ns + pass_ns + 2 * nodes * nested_ns,
            **{name: nodes * count + (name != "outer") for name, count in counts.items()},
        )
        for nodes in (1, 2, 8)
    ]


@given(st.integers(0, 2_000), st.integers(0, 3_000))
def test_nodes_of_a_backward_pass_and_the_pass_itself(node_ns: int, pass_ns: int) -> None:
    cost = event_costs([*operators(400, 200), *backward(node_ns, pass_ns)], "plain")[BACKWARD_NODE]
    assert (cost.total_ns, cost.first_ns) == pytest.approx((node_ns, pass_ns), abs=1e-6)
    assert cost.inside_ns == pytest.approx(min(60 * 400 / 1_400, node_ns), abs=1e-6)
    assert cost.spread_ns == pytest.approx(0, abs=1e-6)


def test_a_pass_that_would_cost_less_than_nothing_costs_nothing_and_its_nodes_less() -> None:
    # Exactly fitted by nodes of 800 ns and passes of -300 ns; without passes, each weighted by its events, by 693 ns a node.
    cost = event_costs([*operators(400, 200), *backward(800, -300)], "plain")[BACKWARD_NODE]
    nodes, events = (2, 3, 9), (4, 7, 25)
    products = sum(count * (800 * count - 300) / weight**2 for count, weight in zip(nodes, events, strict=True))
    squares = sum(count**2 / weight**2 for count, weight in zip(nodes, events, strict=True))
    assert (cost.total_ns, cost.first_ns) == (pytest.approx(products / squares), 0.0)


def test_outer_operators_that_would_cost_less_than_nothing_cost_nothing() -> None:
    nested, taken_ns = (1, 2, 3, 12), (0, 200, 600, 3_000)
    rows = [
        row("operator", 1_000.0, 1_000.0 + more, outer=1.0, nested=float(count))
        for count, more in zip(nested, taken_ns, strict=True)
    ]
    costs = event_costs(rows, "plain")
    products = sum(count * more / (1 + count) ** 2 for count, more in zip(nested, taken_ns, strict=True))
    squares = sum(count**2 / (1 + count) ** 2 for count in nested)
    assert costs[OPERATOR_OUTER].total_ns == 0.0
    assert costs[OPERATOR_NESTED].total_ns == pytest.approx(products / squares)


def test_the_median_of_backward_passes_over_processes() -> None:
    rows = [
        {**each, "process": process}
        for process, costs in enumerate([(700, 900), (1_500, 100), (800, 1_000)])
        for each in (*operators(400, 200), *backward(*costs))
    ]
    cost = event_costs(rows, "plain")[BACKWARD_NODE]
    assert (cost.total_ns, cost.first_ns) == pytest.approx((800, 900))


def test_each_run_of_evaluations_pays_for_its_pass() -> None:
    node = "autograd::engine::evaluate_function: NegBackward0"
    trace = events(
        ("measured_loop", "user_annotation", 0, 10_000),
        ("aten::neg", "cpu_op", 0, 1_000),
        (node, "cpu_op", 2_000, 1_000),
        ("NegBackward0", "cpu_op", 2_100, 500),
        ("aten::neg", "cpu_op", 2_200, 300),
        (node, "cpu_op", 4_000, 1_000),
        ("aten::neg", "cpu_op", 6_000, 1_000),
        (node, "cpu_op", 8_000, 1_000),
    )
    costs = {
        OPERATOR_OUTER: EventCost(1, 0),
        OPERATOR_NESTED: EventCost(10, 0),
        BACKWARD_NODE: EventCost(100, 0, first_ns=1_000),
    }
    # Two operators by themselves, a function and an operator inside of a node, three nodes, and two passes.
    assert trace_budget(trace, TIMING, CLASSIFIER, costs).recording_ns == 2 * 1 + 2 * 10 + 3 * 100 + 2 * 1_000


def varied(*points: tuple[float, float]) -> list[dict[str, Any]]:
    """Calls of ten operators and twenty events inside of them: their reuse distance and what they cost."""
    return [
        row("varied", 50_000.0, 50_000 + taken_ns, outer=10.0, nested=17.0, others=3.0, rms_reuse_distance=distance)
        for distance, taken_ns in points
    ]


def test_among_many_different_events_each_costs_more() -> None:
    # By few names 10 * 400 + 20 * 200 = 8,000; one that measured less than that costs no less.
    rows = [*operators(400, 200), *backward(800, 900), *varied((4.0, 7_000), (10.0, 10_000), (20.0, 14_000))]
    costs = event_costs(rows, "plain")
    for name in (OPERATOR_OUTER, OPERATOR_NESTED, BACKWARD_NODE):
        distances, more = zip(*costs[name].cold_by_distance, strict=True)
        assert (distances, more) == ((2, 4, 10, 20), pytest.approx((0, 0, 0.25, 0.75)))
    outer = costs[OPERATOR_OUTER]
    assert [outer.at(at).total_ns for at in (0, 4, 7, 10, 15, 20, 99)] == pytest.approx(
        [400, 400, 450, 500, 600, 700, 700]
    )
    # At the distance of the calls that the costs come from they are what those calls cost.
    near = event_costs([*operators(400, 200), *varied((6.0, 10_000))], "plain")[OPERATOR_OUTER]
    assert [near.at(at).total_ns for at in (0, 2, 3, 4, 6)] == pytest.approx([400, 400, 425, 450, 500])
    assert outer.at(20).inside_ns == pytest.approx(1.75 * outer.inside_ns)
    assert event_costs(operators(400, 200), "plain")[OPERATOR_OUTER].at(99).total_ns == pytest.approx(400)
    # Of a capture whose calibration did not know the distance.
    before = [{name: value for name, value in each.items() if name != "rms_reuse_distance"} for each in rows]
    assert event_costs(before, "plain")[OPERATOR_OUTER].at(99).total_ns == pytest.approx(400)


def test_a_trace_is_corrected_by_the_reuse_distance_of_its_events() -> None:
    names = [f"aten::{name}" for name in "abab"]
    trace = events(
        ("measured_loop", "user_annotation", 0, 10_000),
        *((name, "cpu_op", 1_000 * at, 500) for at, name in enumerate(names)),
    )
    costs = {
        name: EventCost(100, 0, cold_by_distance=((1.0, 0.0), (3.0, 1.0))) for name in (OPERATOR_OUTER, OPERATOR_NESTED)
    }
    assert trace_budget(trace, TIMING, CLASSIFIER, costs).recording_ns == pytest.approx(4 * 150)


def test_a_region_costs_more_in_a_call_of_more_code() -> None:
    """Relative to the compiled call that its cost comes from, which is as long as calls between the first and the second."""
    calls = [
        row("varied", bare_ns, bare_ns + taken_ns, outer=10.0, nested=20.0, rms_reuse_distance=10.0)
        for bare_ns, taken_ns in ((2_000.0, 8_000), (20_000.0, 12_000), (80_000.0, 16_000))
    ]
    region = row("compiled", 17_000.0, 21_000.0, span_ns={"Torch-Compiled Region: 0/0": 12_600})
    rows = [*operators(400, 200), row("fast_annotation", 100.0, 400.0, span_ns={"x": 100}), *calls, region]
    costs = event_costs(rows, "plain")
    # Of 8,000 by few names +0 % in calls of 10,000 ns as recorded, +50 % at 32,000, +100 % at 96,000: +25 % at 21,000.
    for name in (COMPILED_REGION, FAST_ANNOTATION):
        cost = costs[name]
        times, more = zip(*cost.cold_by_interval, strict=True)
        assert (times, more) == ((10_000, 32_000, 96_000), pytest.approx((0, 1.5 / 1.25 - 1, 2 / 1.25 - 1)))
        factors = [
            cost.at(interval_ns=at).total_ns / cost.total_ns
            for at in (0, 10_000, 21_000, 32_000, 64_000, 96_000, 10**6)
        ]
        assert factors == pytest.approx([1, 1, 1.1, 1.2, 1.4, 1.6, 1.6])
        assert cost.at(interval_ns=32_000).inside_ns == pytest.approx(1.2 * cost.inside_ns)
    assert costs[OPERATOR_OUTER].at(interval_ns=10**6) == costs[OPERATOR_OUTER]


def test_a_trace_is_corrected_by_how_far_its_regions_are_apart() -> None:
    region = "Torch-Compiled Region: 0/0"
    costs = {
        OPERATOR_OUTER: EventCost(1, 0),
        OPERATOR_NESTED: EventCost(10, 0),
        COMPILED_REGION: EventCost(100, 0, cold_by_interval=((4_000.0, 1.0), (5_000.0, 3.0))),
    }
    named = (("aten::a", "cpu_op", 2_000, 500), ("aten::b", "cpu_op", 2_100, 300))
    one = events(("measured_loop", "user_annotation", 0, 10_000), (region, "cpu_op", 1_000, 9_000), *named)
    two = events(
        ("measured_loop", "user_annotation", 0, 10_000),
        (region, "cpu_op", 1_000, 3_000),
        *named,
        (region, "cpu_op", 6_000, 3_000),
    )
    assert trace_budget(one, TIMING, CLASSIFIER, costs).recording_ns == 400 + 1 + 10
    assert trace_budget(two, TIMING, CLASSIFIER, costs).recording_ns == 2 * 400 + 1 + 10
    # Of 6,500 ns all but the 1,000 that setting up takes are a kernel's, whose time is no code's: 4,500 are left.
    kernel = events(
        ("measured_loop", "user_annotation", 0, 10_000),
        (region, "cpu_op", 1_000, 9_000),
        ("aten::a", "cpu_op", 2_000, 6_500),
    )
    timing = structs.replace(TIMING, operator_floor_ns=1_000)
    assert trace_budget(kernel, timing, CLASSIFIER, costs).recording_ns == 300 + 1


def test_python_calls_the_operators_of_a_compiled_graph() -> None:
    trace = events(
        ("measured_loop", "user_annotation", 0, 10_000),
        ("CompiledFunction", "cpu_op", 1_000, 5_000),
        ("## Call CompiledFxGraph f ##", "cpu_op", 1_100, 4_000),
        ("aten::addmm", "cpu_op", 1_200, 1_000),
        ("aten::expand", "cpu_op", 1_300, 500),
        ("aten::as_strided", "cpu_op", 1_400, 300),
    )
    costs = {OPERATOR_OUTER: EventCost(1, 0), OPERATOR_NESTED: EventCost(10, 0), FAST_ANNOTATION: EventCost(100, 0)}
    assert trace_budget(trace, TIMING, CLASSIFIER, costs).recording_ns == 2 * 1 + 2 * 10 + 100


def test_after_kernels_the_median_over_processes_that_never_falls() -> None:
    found = [{1: 300.0, 2: 200.0, 3: 900.0}, {1: 100.0, 2: -50.0, 3: 500.0}, {1: 200.0, 2: 800.0, 3: 400.0}]
    rows = [
        {**each, "process": process}
        for process, more_ns in enumerate(found)
        for each in (*operators(400, 200), *displaced("displaced_operator", "neg 1", more_ns))
    ]
    rows += [{**each, "process": 3} for each in operators(400, 200)]
    # 300 300 900, 100 100 500 and 200 800 800.
    assert event_costs(rows, "plain")[OPERATOR_OUTER].cold_after_kernels_ns == (
        (10_000, 200),
        (20_000, 300),
        (30_000, 800),
    )


def test_kernels_make_the_next_operator_and_the_next_region_pay() -> None:
    trace = events(
        ("measured_loop", "user_annotation", 0, 100_000),
        ("TorchDynamo Cache Lookup", "cpu_op", 1_000, 1_000),
        ("Torch-Compiled Region: 0/0", "cpu_op", 3_000, 50_000),
        ("cpp_fused_add_0", "cpu_op", 10_000, 20_000),
        ("aten::addmm", "cpu_op", 31_000, 15_000),
        ("aten::view", "cpu_op", 47_000, 1_000),
        ("TorchDynamo Cache Lookup", "cpu_op", 60_000, 1_000),
        ("Torch-Compiled Region: 0/0", "cpu_op", 63_000, 5_000),
    )
    operator, region = (
        EventCost(300, 0, 0, ((10_000, 100), (20_000, 200))),
        EventCost(1_000, 0, 0, ((10_000, 500), (30_000, 1_500))),
    )
    plain = {
        OPERATOR_OUTER: EventCost(300, 0),
        OPERATOR_NESTED: EventCost(300, 0),
        COMPILED_REGION: EventCost(1_000, 0),
    }
    costs = {**plain, OPERATOR_OUTER: operator, COMPILED_REGION: region}
    timing = structs.replace(TIMING, operator_floor_ns=5_000)
    before, after = (trace_budget(trace, timing, CLASSIFIER, each) for each in (plain, costs))
    # The first view after 10 us of the addmm beyond an operator's floor, and the addmm after 20 us of the fused kernel; the
    # second lookup after none, the second region after both kernels.
    assert after.recording_ns - before.recording_ns == 100 + 200 + 1_500
    assert after.sum_ns == pytest.approx(100_000 - after.recording_ns)


def test_python_and_memory_have_their_flags() -> None:
    stack = [
        row("python", 60.0, 360.0, flags="stack", name="functions", others=3.04),
        row("python", 40.0, 190.0, flags="stack", name="builtin", others=2.04),
    ]
    memory = [
        *operators(400, 200, flags="memory"),
        row(
            "operator", 1_000.0, 1_000 + 400 + 2 * 45, flags="memory", outer=1.0, others=2.0, span_ns={"aten::neg": 900}
        ),
    ]
    assert event_costs(stack, "stack") == {PYTHON_FUNCTION: EventCost(100, 50), C_CALL: EventCost(50, 25)}
    costs = event_costs(memory, "memory")
    assert costs[MEMORY].total_ns == pytest.approx(45)
    assert costs[MEMORY].inside_ns == 0
    assert event_costs(stack, "plain") == {}


def test_a_class_for_every_event() -> None:
    classes = {
        ("aten::add", "cpu_op", True): OPERATOR_OUTER,
        ("aten::add", "cpu_op", False): OPERATOR_NESTED,
        ("TorchDynamo Cache Lookup", "cpu_op", True): OPERATOR_OUTER,
        ("Torch-Compiled Region: 0/0", "cpu_op", True): COMPILED_REGION,
        ("## Call CompiledFxGraph f7 ##", "user_annotation", True): FAST_ANNOTATION,
        ("mine", "user_annotation", True): ANNOTATION,
        ("<built-in method f>", "python_function", True): C_CALL,
        ("a.py(3): f", "python_function", True): PYTHON_FUNCTION,
        ("[memory]", "cpu_instant_event", False): MEMORY,
    }
    assert {key: event_class(key[0], key[1], outer=key[2]) for key in classes} == classes


def test_each_cost_is_taken_where_it_occurs() -> None:
    trace = events(
        ("measured_loop", "user_annotation", 0, 10_000),
        ("TorchDynamo Cache Lookup", "cpu_op", 1_000, 1_200),
        ("aten::add", "cpu_op", 3_000, 5_000),
        ("aten::empty", "cpu_op", 4_000, 1_000),
        ("aten::add", "cpu_op", 9_000, 500),
    )
    costs = {OPERATOR_OUTER: EventCost(300, 20, 5), OPERATOR_NESTED: EventCost(200, 10, 5)}
    found = trace_budget(trace, TIMING, CLASSIFIER, costs)
    assert found.recording_ns == 3 * 300 + 200
    assert found.sum_ns == 10_000 - 1_100
    assert found.bare_ns == 8_000
    by_category = {category: sum(each.values()) for category, each in found.frames.items() if sum(each.values())}
    assert by_category == {
        "python": 10_000 - 1_200 - 5_000 - 500 - 3 * 280,  # around three outer events
        "guard": 1_200 - 20,
        "dispatcher": 4_000 - 20 - 190 + 500 - 20,  # less its own, and what is outside of the empty in it
        "allocation": 1_000 - 10,
    }
    assert found.spread_ns == {"guard": 25, "dispatcher": 50, "allocation": 15}


def test_a_neutral_events_time_is_its_callers(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[[rule]]\ncategory = "neutral"\nevent = "helper"\nsource = "mine"\n')
    trace = events(
        ("measured_loop", "user_annotation", 0, 10_000),
        ("helper::f", "cpu_op", 1_000, 1_000),
        ("aten::empty", "cpu_op", 3_000, 5_000),
        ("helper::f", "cpu_op", 4_000, 1_000),
    )
    costs = {OPERATOR_OUTER: EventCost(0, 0, 0), OPERATOR_NESTED: EventCost(0, 0, 0)}
    found = trace_budget(trace, TIMING, default_classifier(own), costs)
    assert {category: sum(each.values()) for category, each in found.frames.items()} == {
        "python": 5_000,
        "allocation": 5_000,
    }


def test_what_the_calls_differ_by_is_in_the_spread() -> None:
    lookups = [1_000, 1_300, 900, 1_200]
    trace = events(
        ("measured_loop", "user_annotation", 0, 10_000),
        *(("TorchDynamo Cache Lookup", "cpu_op", 2_000 * call, ns) for call, ns in enumerate(lookups)),
    )
    costs = {OPERATOR_OUTER: EventCost(0, 0, 40), OPERATOR_NESTED: EventCost(0, 0)}
    found = trace_budget(trace, structs.replace(TIMING, calls=4), CLASSIFIER, costs)
    # Student's t of three degrees of freedom.
    assert found.spread_ns["guard"] == pytest.approx(math.hypot(40, 3.182446 * statistics.stdev(lookups) / 2))
    once = trace_budget(trace, structs.replace(TIMING, calls=1), CLASSIFIER, costs)
    assert once.spread_ns["guard"] == 4 * 40


def test_without_a_calibration_every_event_costs_the_same() -> None:
    trace = events(("measured_loop", "user_annotation", 0, 10_000), ("aten::add", "cpu_op", 3_000, 5_000))
    found = trace_budget(trace, TIMING, CLASSIFIER, None)
    assert (found.recording_ns, found.sum_ns) == (2_000, 8_000)
    assert found.frames["dispatcher"]["aten::add"] == 4_000


@pytest.mark.parametrize(("traced", "bare"), [(5, 1), (1, 5), (3, 3)])
def test_page_faults_that_only_one_of_the_loops_had(traced: int, bare: int) -> None:
    trace = events(("measured_loop", "user_annotation", 0, 10_000), ("aten::add", "cpu_op", 3_000, 5_000))
    timing = structs.replace(TIMING, traced_faults=traced, bare_faults=bare, fault_ns=250.0)
    found = trace_budget(trace, timing, CLASSIFIER, {OPERATOR_NESTED: EventCost(400, 100)})
    assert found.sum_ns == pytest.approx(9_600 - (traced - bare) * 250)
    # 4,900 of the 9,600 ns are the operator's.
    assert found.frames["dispatcher"]["aten::add"] == pytest.approx(found.sum_ns * 4_900 / 9_600)
    # Without a calibration all that is not of page faults is the events' cost.
    assert trace_budget(trace, timing, CLASSIFIER, None).sum_ns == pytest.approx(8_000)


def test_what_a_short_event_cannot_give_is_taken_from_the_others() -> None:
    trace = events(("measured_loop", "user_annotation", 0, 10_000), ("aten::add", "cpu_op", 3_000, 50))
    found = trace_budget(trace, TIMING, CLASSIFIER, {OPERATOR_NESTED: EventCost(900, 100)})
    assert found.sum_ns == pytest.approx(10_000 - 900)
    assert found.frames["dispatcher"]["aten::add"] == 0


def test_a_torch_that_counts_no_python_events_has_no_cost_of_them() -> None:
    rows = [
        row("python", 60.0, 360.0, flags="stack", name="functions"),
        row("python", 40.0, 190.0, flags="stack", name="builtin"),
    ]
    assert event_costs(rows, "stack") == {}


@pytest.mark.parametrize("slower_ns", [0, 15, 20, 80])
def test_calls_of_a_device_share_what_the_others_do_not_explain(slower_ns: int) -> None:
    trace = events(
        ("measured_loop", "user_annotation", 0, 400),
        *(
            each
            for at in (0, 200)
            for each in (("aten::add", "cpu_op", at + 10, 160), ("cuLaunch", "cuda_driver", at + 20, 80))
        ),
    )
    timing = Traced(calls=2, traced_wall_ns=400, bare_wall_ns=400 - slower_ns, operator_floor_ns=1_000)
    costs = {name: EventCost(10.0, 4.0) for name in (OPERATOR_OUTER, OPERATOR_NESTED)}
    found = trace_budget(trace, timing, CLASSIFIER, costs)
    # 10 ns of each operator, 4 of them inside; of each launch the rest of a call's slowdown, half of it inside.
    of_launch = max(0.0, slower_ns / 2 - 10)
    times = {attribution.category: ns for attribution, ns in found.attributions.items()}
    assert times == pytest.approx(
        {"python": 40 - 6, "dispatcher": 80 - 4 - of_launch / 2, "launch": 80 - of_launch / 2}
    )
    assert found.sum_ns == pytest.approx(200 - 10 - of_launch)


@pytest.mark.parametrize(
    ("alone_ns", "times"),
    [
        # The operator in it takes 1,500 of what the kernels take alone.
        (
            3_000.0,
            {"python/user": 4_000, "python/compiled_runtime": 3_000, "dispatcher/dispatch": 1_500, "kernel": 1_500},
        ),
        (1_000.0, {"python/user": 4_000, "python/compiled_runtime": 4_500, "dispatcher/dispatch": 1_500, "kernel": 0}),
        (99_000.0, {"python/user": 4_000, "python/compiled_runtime": 0, "dispatcher/dispatch": 1_500, "kernel": 4_500}),
        (None, {"python/user": 4_000, "unattributed": 4_500, "dispatcher/dispatch": 1_500}),
    ],
)
def test_kernels_of_compiled_code_take_what_they_take_alone(alone_ns: float | None, times: dict[str, float]) -> None:
    trace = events(
        ("measured_loop", "user_annotation", 0, 10_000),
        ("## Call CompiledFxGraph f ##", "user_annotation", 1_000, 6_000),
        ("aten::mm", "cpu_op", 2_000, 1_500),
    )
    costs = {OPERATOR_NESTED: EventCost(0, 0)}
    found = trace_budget(trace, TIMING, CLASSIFIER, costs, alone_ns)
    assert {str(attribution): ns for attribution, ns in found.attributions.items()} == pytest.approx(times)
    assert (found.compiled_ns, found.hides_kernels) == (4_500, alone_ns is None)


@pytest.mark.parametrize(("name", "kernel_ns"), [("aten::add", 3_000), ("aten::to", 0), ("aten::view", 0)])
def test_an_operator_that_only_calls_others_has_no_kernel(name: str, kernel_ns: int) -> None:
    trace = events(
        ("measured_loop", "user_annotation", 0, 10_000),
        (name, "cpu_op", 1_000, 5_000),
        ("aten::empty", "cpu_op", 2_000, 1_000),
    )
    timing = structs.replace(TIMING, operator_floor_ns=1_000)
    found = trace_budget(trace, timing, CLASSIFIER, {OPERATOR_NESTED: EventCost(0, 0)})
    times = {each.category: ns for each, ns in found.attributions.items() if ns}
    assert (times.get("kernel", 0), times["dispatcher"]) == (kernel_ns, 4_000 - kernel_ns)


def test_compiled_code_that_launches_hides_no_kernels() -> None:
    trace = events(
        ("measured_loop", "user_annotation", 0, 10_000),
        ("## Call CompiledFxGraph f ##", "user_annotation", 1_000, 6_000),
        ("cuLaunchKernel", "cuda_driver", 2_000, 1_500),
    )
    found = trace_budget(trace, structs.replace(TIMING, bare_wall_ns=10_000), CLASSIFIER, None)
    assert (found.compiled_ns, found.hides_kernels) == (0, False)
    assert {each.category: ns for each, ns in found.attributions.items() if ns} == {"python": 4_500, "launch": 1_500}


@pytest.mark.parametrize(("span_ns", "inside_ns"), [(650, 250), (380, 0), (5_000, 900)])
def test_a_call_of_a_device_by_itself(span_ns: int, inside_ns: int) -> None:
    of_call = row("device_call", 500.0, 800.0, span_ns={"cudaStreamQuery": 540.0})
    of_launch = row("device_launch", 400.0, 1_300.0, span_ns={"cudaLaunchKernel": span_ns})
    costs = event_costs([of_call, of_launch, *operators(10, 10)], "plain")
    assert costs[DEVICE_CALL] == EventCost(300.0, 40.0)
    # What its span is longer than the bare call, and at most the whole.
    assert costs[DEVICE_LAUNCH] == EventCost(900.0, float(inside_ns))


def test_a_launch_costs_more_than_a_call_that_starts_no_work() -> None:
    launch, query = ("cudaLaunchKernel", "cuda_runtime", 20, 80), ("cudaStreamQuery", "cuda_runtime", 110, 30)
    trace = events(
        ("measured_loop", "user_annotation", 0, 200),
        ("aten::add", "cpu_op", 10, 160),
        launch,
        query,
        ("kernel", "kernel", 150, 40),
    )
    trace["correlation"] = [-1, 0, 7, 8, 7]
    timing = Traced(calls=1, traced_wall_ns=200, bare_wall_ns=130, operator_floor_ns=1_000)
    costs = {OPERATOR_OUTER: EventCost(10.0, 4.0), OPERATOR_NESTED: EventCost(10.0, 4.0)}
    costs |= {DEVICE_CALL: EventCost(8.0, 2.0), DEVICE_LAUNCH: EventCost(30.0, 5.0)}
    found = trace_budget(trace, timing, CLASSIFIER, costs)
    times = {attribution.category: ns for attribution, ns in found.attributions.items()}
    assert times == pytest.approx({"python": 40 - 6, "dispatcher": 50 - 4 - 6 - 25, "launch": 80 - 5 + 30 - 2})
    # The calibrated costs are subtracted, not the difference to the bare call.
    assert (found.sum_ns, found.bare_ns) == (pytest.approx(200 - 48), 130)


@pytest.mark.parametrize(("cost_ns", "wait_ns"), [(0, 80), (40, 80), (90, 80 + 50)])
def test_no_call_is_shorter_than_the_work_of_its_device(cost_ns: int, wait_ns: int) -> None:
    trace = events(
        ("measured_loop", "user_annotation", 0, 200),
        ("cudaLaunchKernel", "cuda_runtime", 10, 100),
        ("cudaDeviceSynchronize", "cuda_runtime", 110, 80),
        ("kernel", "kernel", 40, 60),
        # Two streams at once are one busy device, and the end of the second lies after the loop.
        ("kernel", "kernel", 90, 120),
    )
    trace["correlation"] = [-1, 7, 8, 7, 7]
    timing = Traced(calls=1, traced_wall_ns=200, bare_wall_ns=160, operator_floor_ns=1_000)
    costs = {name: EventCost(0.0, 0.0) for name in (OPERATOR_NESTED, DEVICE_CALL)}
    found = trace_budget(trace, timing, CLASSIFIER, costs | {DEVICE_LAUNCH: EventCost(cost_ns, cost_ns)})
    times = {attribution.category: ns for attribution, ns in found.attributions.items()}
    # The device is busy from 40 to the loop's end at 200.
    assert times == pytest.approx({"python": 20, "launch": 100 - cost_ns, "wait": wait_ns})


def test_pauses_of_the_profiler_are_not_the_calls() -> None:
    trace = events(
        ("measured_loop", "user_annotation", 0, 300),
        ("aten::add", "cpu_op", 10, 200),
        (PROFILER_PAUSE, "overhead", 30, 90),
        ("cudaLaunchKernel", "cuda_runtime", 130, 40),
        # Out of the operator into the loop; and one that did not stop the loop's thread.
        (PROFILER_PAUSE, "overhead", 200, 20),
        ("Buffer Flush", "overhead", 250, 30),
    )
    trace.loc[trace["cat"] == "overhead", "tid"] = 0
    timing = Traced(calls=1, traced_wall_ns=300, bare_wall_ns=170, operator_floor_ns=1_000)
    found = trace_budget(trace, timing, CLASSIFIER, {name: EventCost(0.0, 0.0) for name in OF_OPERATORS})
    # The rest of what recording took, 20 ns, is the launch's, half of it inside.
    times = {attribution.category: ns for attribution, ns in found.attributions.items()}
    assert times == pytest.approx({"python": 100 - 10, "dispatcher": 160 - 100 - 10, "launch": 40 - 10})
    assert found.sum_ns == pytest.approx(170)
