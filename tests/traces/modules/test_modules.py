"""Budgets per module, drawn and checked to the nanosecond: host, device, forward, backward, what closes."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.export.lanes.modules import module_sections
from overhead_lens.export.query import run_query
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.report.forms import to_html, to_json, to_text
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.host_budget import host_budgets
from overhead_lens.traces.modules.backward import forward_operators
from overhead_lens.traces.modules.model import EVENTS, MARKS, MOST_PATH_NAMES, ModuleBudgets, ModuleTime
from overhead_lens.traces.modules.scopes import OUTSIDE, Scopes, class_and_number, marked_module
from overhead_lens.traces.pieces import Analyzed, pieces_of
from tests.documents import validated
from tests.drawn.timelines import (
    AUTOGRAD,
    CLASSIFIER,
    MAIN,
    WORKER,
    analyzer_of,
    call,
    drawn,
    host,
    kernel,
    timed,
    trace_of,
)
from tests.public_traces import public_trace

VIEW = "aten::view"
NODE = "autograd::engine::evaluate_function: "
ACCUMULATE = f"{NODE}torch::autograd::AccumulateGrad"


def module(drawing: str, name: str, thread: tuple[Any, Any] = MAIN) -> dict:
    """The call of a module."""
    return drawn(drawing, f"nn.Module: {name}", "python_function", thread)


def forward(drawing: str, number: int, name: str = "aten::mm", thread: tuple[Any, Any] = MAIN) -> dict:
    """An operator that makes the node of that number, if it is the last with it."""
    return drawn(drawing, name, "cpu_op", thread, Sequence__number=number, Fwd__thread__id=0)


def node(drawing: str, number: int, name: str = "MmBackward0", thread: tuple[Any, Any] = AUTOGRAD, of: int = 1) -> dict:
    """The evaluation of a node of the backward pass, whose forward thread is number ``of``."""
    return drawn(drawing, f"{NODE}{name}", "cpu_op", thread, Sequence__number=number, Fwd__thread__id=of)


def modules_of(*entries: dict) -> ModuleBudgets:
    """The budgets per module; that they close on threads and devices is asserted."""
    analyzer = analyzer_of(*entries)
    analysis = analyzer.analysis()
    assert analysis.modules is not None
    assert_closed(analysis.modules, [each.host for each in analysis.threads], sum_of_device_events(entries))
    return analysis.modules


def sum_of_device_events(entries: Any) -> int:
    return sum(round(Decimal(each["dur"].text) * 1000) for each in entries if "device" in each.get("args", {}))


def assert_closed(modules: ModuleBudgets, hosts: Sequence[Sequence[HostCategory]], device_ns: int) -> None:
    """They sum to the budgets of the threads, the busiest first, and to the events of the devices."""
    own, others, elsewhere = Counter[str](), Counter[str](), Counter[str]()
    for time in (*(each.own for each in modules.nodes), modules.outside):
        own.update(time.host)
        others.update(time.others)
    assert dict(own) == host(hosts[0])
    for budget in hosts[1:]:
        elsewhere.update(host(budget))
    assert others == elsewhere
    assert (
        sum(each.own.device_ns for each in modules.nodes) + modules.outside.device_ns + modules.unlinked_ns == device_ns
    )
    assert sum(each.own.host_ns for each in modules.classes) == modules.inside.host_ns
    for each in modules.nodes:
        assert each.total.host_ns >= each.own.host_ns
        assert each.total.device_ns >= each.own.device_ns


def own(modules: ModuleBudgets) -> dict[str, dict[str, int]]:
    """Own time of the busiest thread by path."""
    return {modules.path(place): dict(each.own.host) for place, each in enumerate(modules.nodes)}


def at(modules: ModuleBudgets, path: str) -> Any:
    (place,) = [place for place in range(len(modules.nodes)) if modules.path(place) == path]
    return modules.nodes[place]


NET = (
    module("  [-----------------------------)", "Net_0"),
    module("     [---------)", "Linear_0"),
    drawn("       [-----)", "aten::gelu"),
    module("                  [-----)", "Linear_1"),
    drawn("                    [-)", VIEW),
)


def test_an_instant_belongs_to_the_innermost_module() -> None:
    modules = modules_of(*NET, drawn("[)", VIEW), drawn("                                     [--)", VIEW))
    assert modules.known_from == EVENTS
    assert own(modules) == {
        "Net_0": {"python": 30 - 10 - 6},
        "Net_0/Linear_0": {"python": 4, "dispatcher": 6},
        "Net_0/Linear_1": {"python": 4, "dispatcher": 2},
    }
    net = at(modules, "Net_0")
    assert (net.parent, net.class_name, net.number, net.depth, net.calls, net.again) == (None, "Net", 0, 0, 1, 0)
    assert dict(net.total.host) == {"python": 22, "dispatcher": 8}
    assert dict(modules.outside.host) == {"dispatcher": 1 + 3, "python": 1 + 5}


def test_classes_sum_their_instances_and_layers_stand_in_order_of_their_calls() -> None:
    modules = modules_of(*NET)
    by_name = {each.class_name: each for each in modules.classes}
    linear = by_name["Linear"]
    assert (linear.instances, linear.calls, linear.own.host_ns, linear.total.host_ns) == (2, 2, 16, 16)
    assert [(each.parent, each.class_name, each.nodes) for each in modules.layers] == [(0, "Linear", (1, 2))]


def test_a_class_inside_itself_counts_once() -> None:
    modules = modules_of(
        module("[---------------)", "Block_0"), module("  [---------)", "Block_1"), drawn("    [--)", VIEW)
    )
    (block,) = modules.classes
    assert (block.instances, block.calls, block.own.host_ns, block.total.host_ns) == (2, 2, 16, 16)


def test_an_instance_has_a_place_below_each_module_that_calls_it() -> None:
    modules = modules_of(
        module("[--------)", "A_0"), module("  [---)", "ReLU_0"),
        module("          [--------)", "B_0"), module("            [-)", "ReLU_0"), drawn("  [)", VIEW),
    )  # fmt: skip
    assert {modules.path(place): each.calls for place, each in enumerate(modules.nodes)} == {
        "A_0": 1, "A_0/ReLU_0": 1, "B_0": 1, "B_0/ReLU_0": 1,
    }  # fmt: skip
    assert next(each.instances for each in modules.classes if each.class_name == "ReLU") == 1


TRAINING = (
    drawn("[)", VIEW),
    module(" [--------------------)", "Net_0"),
    module("   [------)", "Linear_0"),
    # The first operator with a number made no node: it is the last that did.
    forward("  [)", 6, "aten::rand"),
    forward("    [----)", 6),
    call("       [)", 1),
    module("           [-----)", "ReLU_0"),
    forward("           [---)", 7, "aten::relu"),
    call("             [)", 2),
    forward("                      [--)", 8, "aten::mean"),
    node("                           [--)", 8, "MeanBackward1"),
    node("                              [---)", 7, "ReluBackward0"),
    call("                                [)", 3, thread=AUTOGRAD),
    node("                                  [-----)", 6),
    call("                                    [)", 4, thread=AUTOGRAD),
    drawn("                                        [---)", ACCUMULATE, thread=AUTOGRAD),
    call("                                          [)", 5, thread=AUTOGRAD),
    kernel("        [-----)", 1),
    kernel("              [--)", 2),
    kernel("                                  [)", 3),
    kernel("                                     [----)", 4),
    kernel("                                            [-)", 5, "ncclDevKernel_AllReduce"),
    kernel("                                               [-------)", 9),
)


def test_the_backward_pass_belongs_to_the_module_of_its_forward() -> None:
    modules = modules_of(*TRAINING)
    linear, relu, net = (at(modules, path) for path in ("Net_0/Linear_0", "Net_0/ReLU_0", "Net_0"))
    assert (linear.own.host_ns, linear.own.others_ns, linear.own.others_backward_ns) == (7, 6 + 4, 6 + 4)
    assert (relu.own.host_ns, relu.own.others_ns, relu.own.others_backward_ns) == (6, 4, 4)
    assert (net.own.others_ns, net.total.others_ns) == (0, 14)
    assert (linear.own.device_forward_ns, linear.own.device_backward_ns, linear.own.communication_ns) == (6, 5 + 2, 2)
    assert (relu.own.device_forward_ns, relu.own.device_backward_ns, relu.own.device_events) == (3, 1, 2)
    assert (net.total.device_ns, modules.outside.device_ns) == (17, 0)
    assert (modules.unlinked_ns, modules.unlinked_events) == (8, 1)
    assert (modules.backward_nodes, modules.unjoined_nodes) == (4, 0)
    # The loss ran outside of all modules, and so did its node.
    assert modules.outside.others_backward_ns == 3


def test_what_is_launched_as_the_window_ends_is_of_no_module() -> None:
    launch = timed(20, 0, "cudaLaunchKernel", "cuda_runtime", correlation=1)
    modules = modules_of(module("[-------------------)", "Net_0"), launch, kernel("          [-)", 1))
    assert (at(modules, "Net_0").own.device_ns, modules.outside.device_ns) == (0, 2)


def test_backward_on_the_thread_itself() -> None:
    modules = modules_of(module("[------)", "Linear_0"), forward("  [--)", 3), node("          [---)", 3, thread=MAIN))
    linear = at(modules, "Linear_0").own
    assert (linear.host_ns, linear.host_backward_ns, linear.others_ns) == (7 + 4, 4, 0)


def test_a_node_without_its_forward_is_told() -> None:
    analyzer = analyzer_of(module("[------)", "Linear_0"), forward("  [--)", 3), node("          [---)", 4))
    analysis = analyzer.analysis()
    assert analysis.modules is not None
    assert (analysis.modules.unjoined_nodes, analysis.modules.outside.others_backward_ns) == (1, 4)
    assert any("1 of 1 nodes of the backward pass have no forward" in note for note in analysis.notes)


def test_an_operator_after_the_node_made_none_of_it() -> None:
    modules = modules_of(
        module("[-----)", "A_0"), forward("  [-)", 3), node("        [---)", 3),
        module("             [-----)", "B_0"), forward("               [-)", 3),
    )  # fmt: skip
    assert (at(modules, "A_0").own.others_ns, at(modules, "B_0").own.others_ns) == (4, 0)


@pytest.mark.parametrize("shift", [0, 12])
def test_numbers_of_two_threads_are_told_apart_by_the_forward_thread(shift: int) -> None:
    """A thread that computes on its own uses the same numbers, before or after."""
    before, after = " " * shift, " " * (12 - shift)
    entries = [
        module(f"{before}[------)", "A_0"), forward(f"{before} [--)", 5), forward(f"{before}     [)", 6),
        module(f"{after}[-----)", "B_0", WORKER), forward(f"{after} [-)", 5, thread=WORKER),
        node("                     [--)", 5), node("                        [-)", 6),
        node("                           [----)", 5, of=2),
    ]  # fmt: skip
    modules = modules_of(*entries)
    assert at(modules, "A_0").own.others_backward_ns == 3 + 2
    assert at(modules, "B_0").own.others_backward_ns == 5
    assert modules.unjoined_nodes == 0


def test_what_is_computed_again_keeps_its_place() -> None:
    modules = modules_of(
        module("[-----------------)", "Net_0"),
        module("  [-----------)", "Checkpoint_0"),
        module("    [-------)", "Block_0"),
        module("      [--)", "Linear_0"),
        forward("               [-)", 4, "aten::relu"),
        node("                     [--------------)", 4, "ReluBackward0"),
        module("                      [----------)", "Block_0", AUTOGRAD),
        module("                        [---)", "Linear_0", AUTOGRAD),
        call("                          [)", 1, thread=AUTOGRAD),
        kernel("                          [-----)", 1),
    )
    linear = at(modules, "Net_0/Checkpoint_0/Block_0/Linear_0")
    assert (linear.calls, linear.again, linear.own.others_ns, linear.own.others_backward_ns) == (2, 1, 4, 4)
    assert (linear.own.device_forward_ns, linear.own.device_backward_ns) == (0, 6)
    assert at(modules, "Net_0").own.others_ns == 16 - 12
    assert len(modules.nodes) == 4


def test_a_module_that_only_the_backward_pass_calls_is_below_that_of_the_node() -> None:
    modules = modules_of(
        module("[-----)", "A_0"), forward("  [-)", 3), node("        [------)", 3),
        module("          [--)", "B_0", AUTOGRAD),
    )  # fmt: skip
    assert at(modules, "A_0/B_0").again == 1


def test_time_after_a_modules_end_is_not_its_own() -> None:
    modules = modules_of(
        drawn("[)", VIEW),
        module(" [---------)", "A_0"),
        drawn("   [-------------)", "aten::gelu"),
        drawn("   [)", VIEW),
    )
    # A view takes 1 ns, so the operator dispatches for its first 5 ns.
    assert own(modules) == {"A_0": {"python": 2, "dispatcher": 1 + 5, "kernel": 2}}
    assert dict(modules.outside.host) == {"dispatcher": 1, "kernel": 6}


def test_without_modules_one_note_says_so() -> None:
    analysis = analyzer_of(drawn("[--)", VIEW)).analysis()
    assert analysis.modules is None
    assert sum("there is no budget per module" in note for note in analysis.notes) == 1
    (trace,) = validated(to_json(analysis))["traces"]
    assert trace["modules"] is None
    assert "Modules:" not in to_text(analysis, whole=True)


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ("DistributedDataParallel.forward", "DistributedDataParallel"),
        ("## forward:bottom_mlp ##", "bottom_mlp"),
        ("<class 'a.b.PositionWeighted'>", "PositionWeighted"),
        ("## forward ##", None),
        ("## backward ##", None),
        ("forward", None),
        ("Optimizer.step#SGD.step", None),
    ],
)
def test_annotations_that_mark_modules(event: str, name: str | None) -> None:
    assert marked_module(event) == name


def test_annotations_stand_in_where_there_are_no_events_of_modules() -> None:
    marks = (
        drawn("[----------)", "DistributedDataParallel.forward", "user_annotation"),
        drawn("  [-----)", "## forward:over_arch ##", "user_annotation"),
        drawn("    [-)", VIEW),
    )
    marked = modules_of(*marks)
    assert marked.known_from == MARKS
    assert own(marked) == {
        "DistributedDataParallel": {"python": 5},
        "DistributedDataParallel/over_arch": {"python": 4, "dispatcher": 2},
    }
    assert [node.number for node in marked.nodes] == [None, None]
    known = modules_of(*marks, module("[---------------)", "Net_0"))
    assert (known.known_from, list(own(known))) == (EVENTS, ["Net_0"])


@pytest.mark.parametrize(
    ("name", "parts"),
    [("Linear_3", ("Linear", 3)), ("My_Net_12", ("My_Net", 12)), ("Linear", ("Linear", None)), ("_3", ("_3", None)),
     ("A_²", ("A_²", None)), (f"A_{'9' * 5000}", (f"A_{'9' * 5000}", None)), ("", ("", None))],
)  # fmt: skip
def test_class_and_number(name: str, parts: tuple[str, int | None]) -> None:
    assert class_and_number(name) == parts


def test_very_deep_nesting_has_short_paths() -> None:
    depth = 3_000
    modules = modules_of(
        *(timed(at, 2 * depth - 2 * at, f"nn.Module: M_{at}", "python_function") for at in range(depth))
    )
    assert modules.nodes[-1].depth == depth - 1
    path = modules.path(depth - 1).split("/")
    assert (path[0], path[-1], len(path)) == ("…", f"M_{depth - 1}", MOST_PATH_NAMES + 1)
    assert modules.path(MOST_PATH_NAMES - 1).count("/") == MOST_PATH_NAMES - 1


def analyzed(*entries: dict) -> Analyzed:
    trace = trace_of(entries)
    analyzer = Analyzer(trace, CLASSIFIER)
    return Analyzed(trace, analyzer.analysis(), pieces_of(analyzer))


def test_names_are_harmless_wherever_they_are_shown() -> None:
    evil = "<script>alert(1)</script>\x1b[31m_0"
    made = analyzed(module("[----)", evil), module(" [--)", evil), drawn("  [)", VIEW))
    text, page = to_text(made.analysis, whole=True), to_html(made.analysis)
    assert "\x1b[31m" not in text
    assert "<script>alert(1)" not in page
    rows = run_query("select distinct class from modules where node is not null", [made]).rows
    assert len(rows) == 1


def test_they_are_told_in_text_json_and_on_the_page() -> None:
    analysis = analyzer_of(*TRAINING).analysis()
    assert analysis.modules is not None
    text = to_text(analysis, whole=True)
    assert "Modules: 3 in 3 classes, with" in text
    assert f"{17 / 25:.1%} of the device's" in text
    (trace,) = validated(to_json(analysis))["traces"]
    told = trace["modules"]
    assert [each["path"] for each in told["nodes"]] == ["Net_0", "Net_0/Linear_0", "Net_0/ReLU_0"]
    assert told["nodes"][1]["own"]["device_backward_ns"] == 7
    assert told["nodes"][0]["total"]["device_ns"] == 17
    assert (told["unlinked_ns"], told["known_from"]) == (8, "events")
    page = to_html(analysis)
    assert "outside of any module" in page


def test_tables_of_queries_sum_to_the_threads_and_the_device() -> None:
    made = analyzed(*TRAINING)
    host = {each.category: each.ns for each in made.analysis.host}
    (sums,) = run_query(
        "select sum(python_ns), sum(dispatcher_ns), sum(wait_ns), sum(host_ns), sum(device_ns), sum(device_events) from modules",
        [made],
    ).rows
    assert sums == (host["python"], host["dispatcher"], host["wait"], made.analysis.window.wall_ns, 25, 6)
    calls = run_query(
        "select phase, path, c.start_ns, c.dur_ns from module_calls c join modules using (trace, node) order by 3, 4 desc",
        [made],
    ).rows
    assert calls == (
        ("forward", "Net_0", 1, 21),
        ("forward", "Net_0/Linear_0", 3, 7),
        ("forward", "Net_0/ReLU_0", 11, 6),
        ("backward", "Net_0/ReLU_0", 30, 4),
        ("backward", "Net_0/Linear_0", 34, 6),
        ("backward", "Net_0/Linear_0", 40, 4),
    )
    assert run_query("select count(*) from modules", [analyzed(drawn("[)", VIEW))]).rows == ((0,),)


def test_lanes_show_stretches_of_the_backward_pass() -> None:
    entries = [*TRAINING, module(f"{' ' * 60}[----)", "Net_0")]
    again = [node(f"{' ' * 70}[--)", 6)]
    (section,) = module_sections(analyzed(*entries, *again))
    assert [(piece.name, piece.start_ns, piece.end_ns) for piece in section.top.slices] == [
        ("Net_0", 1, 22),
        ("Linear_0", 3, 10),
        ("ReLU_0", 11, 17),
        ("Net_0", 60, 65),
    ]
    (lane,) = section.below
    assert [(piece.name, piece.start_ns, piece.end_ns) for piece in lane.slices] == [
        ("backward: Net_0", 30, 44),
        ("backward: ReLU_0", 30, 34),
        ("backward: Linear_0", 34, 44),
        # The next forward pass ends the stretch.
        ("backward: Net_0", 70, 73),
        ("backward: Linear_0", 70, 73),
    ]
    assert dict(next(iter(section.top.slices)).arguments)["with inner ones, device backward ns"] == 8
    assert list(module_sections(analyzed(drawn("[)", VIEW)))) == []


SPANS = st.tuples(st.integers(0, 20), st.integers(0, 300))
THREADS = st.sampled_from([MAIN, AUTOGRAD, WORKER])
NUMBERS = st.integers(0, 3)
MODULES = st.builds(
    lambda span, name, thread: (*span, f"nn.Module: {name}", "python_function", thread, {}),
    SPANS,
    st.sampled_from(["Net_0", "Linear_0", "Linear_1", "Odd"]),
    THREADS,
)
OPERATORS = st.builds(
    lambda span, name, thread, number: (*span, name, "cpu_op", thread, {"Sequence__number": number}),
    SPANS,
    st.sampled_from([VIEW, "aten::mm", "aten::empty", "torch::autograd::AccumulateGrad"]),
    THREADS,
    NUMBERS,
)
NODES = st.builds(
    lambda span, name, thread, number, of: (
        *span, f"{NODE}{name}", "cpu_op", thread, {"Sequence__number": number, "Fwd__thread__id": of},
    ),
    SPANS,
    st.sampled_from(["MmBackward0", "torch::autograd::AccumulateGrad"]),
    THREADS,
    st.none() | NUMBERS,
    st.none() | st.integers(1, 3),
)  # fmt: skip
CALLS = st.builds(
    lambda span, thread, correlation: (*span, "cudaLaunchKernel", "cuda_runtime", thread, {"correlation": correlation}),
    SPANS,
    THREADS,
    st.integers(0, 4),
)
KERNELS = st.builds(
    lambda span, name, correlation: (
        *span, name, "kernel", (0, 7), {"device": 0, "stream": 7, "correlation": correlation},
    ),
    SPANS,
    st.sampled_from(["gemm", "ncclDevKernel_AllReduce"]),
    st.integers(0, 5),
)  # fmt: skip
DRAWN = st.lists(st.one_of(MODULES, OPERATORS, NODES, CALLS, KERNELS), max_size=16)


def entries_of(rows: list[tuple]) -> list[dict]:
    """Events of which no two start together: only among those does the order in the file decide."""
    return [
        timed(32 * start + at, dur, *rest, **{key: value for key, value in more.items() if value is not None})
        for at, (start, dur, *rest, more) in enumerate(rows)
    ]


def walked(scopes: Scopes, host: HostEvents, forward: dict[int, int]) -> tuple[list[int], list[bool], list[str]]:
    """Place of each scope, whether it is joined, and the path of each place: one scope after the other, in order of start."""
    belongs, joined, paths, first = [], [], [], {}
    last: dict[tuple[int, int], int] = {}
    for at, (event, above) in enumerate(zip(scopes.event.tolist(), scopes.parent.tolist(), strict=True)):
        around = belongs[above] if above >= 0 else OUTSIDE
        name, key = host.names[host.name[event]], (int(host.thread[event]), above)
        is_module = name.startswith("nn.Module: ")
        before = last.get(key) if name.endswith("AccumulateGrad") else None
        if is_module:
            label = name.removeprefix("nn.Module: ")
            path = f"{paths[around] if around != OUTSIDE else ''}/{label}"
            if path not in paths and not (above >= 0 and not scopes.is_module[above] and label in first):
                first.setdefault(label, len(paths))
                paths.append(path)
            again = above >= 0 and not scopes.is_module[above]
            belongs.append(first[label] if again else paths.index(path))
            joined.append(False)
            continue
        if at in forward:
            belongs.append(belongs[forward[at]] if forward[at] >= 0 else OUTSIDE)
        else:
            belongs.append(around if before is None else belongs[before])
        joined.append(at in forward or (before is not None and joined[before]))
        last[key] = at
    return belongs, joined, paths


@settings(max_examples=150)
@given(rows=DRAWN, order=st.randoms(use_true_random=False))
def test_what_holds_of_the_modules_of_any_trace(rows: list[tuple], order: Any) -> None:
    entries = entries_of(rows)
    analyzer = analyzer_of(*entries)
    modules = analyzer.modules
    assert (modules is None) == (not any("nn.Module" in each["name"] for each in entries))
    if modules is None:
        return
    hosts = [host_budgets(pieces, [analyzer.window])[0] for pieces in analyzer.threads.values()]
    assert_closed(modules, hosts, sum_of_device_events(entries))
    roots: list[ModuleTime] = [each.total for each in modules.nodes if each.parent is None]
    assert sum(each.others_ns for each in roots) == modules.inside.others_ns
    assert sum(each.device_events for each in roots) == modules.inside.device_events
    check_scopes_are_where_a_walk_puts_them(analyzer)
    order.shuffle(entries)
    assert analyzer_of(*entries).modules == modules


def check_scopes_are_where_a_walk_puts_them(analyzer: Analyzer) -> None:
    scopes, host, events = analyzer.module_scopes, analyzer.host, analyzer.trace.events
    assert scopes is not None
    nodes = np.flatnonzero(~scopes.is_module)
    sequence = events["sequence"].to_numpy()[host.rows]
    operator = forward_operators(host, sequence, scopes.event[nodes], analyzer.trace.arguments)
    known = operator >= 0
    open_then = scopes.around(host.thread[operator[known]], host.start_ns[operator[known]])
    forward = dict(zip(nodes[known].tolist(), open_then.tolist(), strict=True))
    paths: list[str] = []
    for parent, name in zip(scopes.parents, scopes.names, strict=True):
        paths.append(f"{paths[parent] if parent != OUTSIDE else ''}/{name}")
    assert (scopes.module.tolist(), scopes.joined.tolist(), paths) == walked(scopes, host, forward)
    inside = [
        above >= 0 and (not scopes.is_module[above] or scopes.backward[above]) for above in scopes.parent.tolist()
    ]
    assert scopes.backward.tolist() == [
        not module or within for module, within in zip(scopes.is_module, inside, strict=True)
    ]


@given(rows=st.lists(st.one_of(MODULES, OPERATORS), max_size=12))
def test_own_times_are_those_of_every_instant(rows: list[tuple]) -> None:
    """Counted nanosecond by nanosecond: of the modules that are open on the busiest thread the one that started last."""
    entries = entries_of(rows)
    analyzer = analyzer_of(*entries)
    if analyzer.modules is None:
        return
    _, tid = next(iter(analyzer.threads))
    spans = [
        (32 * start + at, 32 * start + at + dur, name.removeprefix("nn.Module: "))
        for at, (start, dur, name, _, thread, _) in enumerate(rows)
        if name.startswith("nn.Module: ") and str(thread[1]) == tid
    ]
    counted: Counter[str] = Counter()
    for instant in range(max((end for _, end, _ in spans), default=0)):
        opened = [(start, name) for start, end, name in spans if start <= instant < end]
        if opened:
            counted[max(opened)[1]] += 1
    found: Counter[str] = Counter()
    for each in analyzer.modules.nodes:
        found[each.name] += each.own.host_ns
    assert +found == counted


@pytest.mark.parametrize(
    "name", ["local_cpu_eager_stack_10mb", "local_cpu_compile_stack_mem", "tl_mi300_resnet_ddp_train_stack"]
)
def test_nodes_are_joined_as_the_profilers_own_flows_join_them(name: str) -> None:
    """The flows ``fwdbwd`` of the file, which nothing else here reads."""
    path = public_trace(name)
    entries = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal, strict=False)["traceEvents"]
    origin_ns = min(ns(each["ts"]) for each in entries if each.get("ph") == "X")
    flows: dict[Any, dict[str, dict]] = defaultdict(dict)
    for each in entries:
        if each.get("cat") == "fwdbwd":
            flows[each["id"]][each["ph"]] = each
    analyzer = Analyzer(read_trace(path), CLASSIFIER)
    scopes, host = analyzer.module_scopes, analyzer.host
    assert scopes is not None
    threads = [tid for _, tid in host.threads]

    def belongs(flow: dict) -> int:
        instant = host.start_ns[:1] * 0 + ns(flow["ts"]) - origin_ns
        scope = int(scopes.around(instant * 0 + threads.index(str(flow["tid"])), instant)[0])
        return int(scopes.module[scope]) if scope >= 0 else OUTSIDE

    pairs = [(belongs(flow["s"]), belongs(flow["f"])) for flow in flows.values() if len(flow) == 2]
    assert len(pairs) > 20
    assert [made for made, _ in pairs] == [evaluated for _, evaluated in pairs]


def ns(microseconds: Any) -> int:
    return int(Decimal(microseconds) * 1000)
