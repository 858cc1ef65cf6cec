"""What is drawn, before it is written: budgets, one call of a traced loop, stacks in their places, blocks by their time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.budget.model import DeviceShare, Guard, Operator, Wall
from overhead_lens.export.capture import block_counter, categories_in, events_of_call, interval_lane, one_call
from overhead_lens.export.lanes.budget import budget_lane, device_lane, host_slices, operator_lane
from overhead_lens.export.lanes.events import find_flows, placed_rows
from overhead_lens.export.lanes.model import Counter, Lane
from overhead_lens.export.lanes.threads import placed_stacks
from overhead_lens.export.perfetto.analysis import memory_sections, write_analysis_perfetto
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.stack import Stack, StackFrame
from overhead_lens.taxonomy.categories import BLAME
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.taxonomy.host import HostCategory, Part
from overhead_lens.traces.pieces import analyze_over_time
from tests.drawn.builders import breakdown
from tests.drawn.memory import memory
from tests.drawn.timelines import AUTOGRAD, CLASSIFIER, WORKER, call, drawn, kernel, timed, trace_of
from tests.drawn.trace_text import document


def shown(lane: Lane) -> list[tuple[int, int, str]]:
    return [(each.start_ns, each.end_ns, each.name) for each in lane.slices]


def test_memory_from_before_the_first_event_is_drawn_from_there_on(tmp_path: Path) -> None:
    entries = [memory(5, 100, 1), memory(7, 50, 2), timed(20, 10, "op"), memory(25, -50, 2)]
    analyzed = analyze_over_time(trace_of(entries), CLASSIFIER)
    (section,) = memory_sections(analyzed.pieces.memory)
    assert isinstance(section.top, Counter)
    assert list(section.top.points) == [(0, 100.0), (0, 150.0), (5, 100.0)]
    write_analysis_perfetto(tmp_path / "trace.pftrace", analyzed)


# ---------------------------------------------------------------- budgets
def test_a_budget_begins_where_it_is_drawn() -> None:
    budget = breakdown({"python": {"user": 3, "binding": 4}}, python=7, wait=2)
    slices = list(host_slices(budget.host, start_ns=1_000))
    assert [(each.start_ns, each.end_ns, each.name) for each in slices] == [
        (1_000, 1_007, "python 7 ns, 78%"),
        (1_000, 1_003, "user 3 ns"),
        (1_003, 1_007, "binding 4 ns"),
        (1_007, 1_009, "wait 2 ns, 22%"),
        (1_007, 1_009, "wait_frame (file.py) 2 ns"),
    ]
    assert slices[0].arguments["ns"] == 7


def test_frames_that_were_rounded_up_stay_inside_of_their_category() -> None:
    (category,) = (each for each in breakdown(guard=10).host if each.ns)
    frames = tuple(type(category.top[0])(name, ns) for name, ns in (("a", 6), ("b", 5), ("c", 1)))
    host = [HostCategory("guard", 10, (9.0, 11.0), 1.0, "samples", (), frames)]
    assert [(each.name, each.end_ns - each.start_ns) for each in host_slices(host)] == [
        ("guard 10 ns, 100%", 10), ("a 6 ns", 6), ("b 4 ns", 4),
    ]  # fmt: skip


def test_guards_divide_the_guard_category() -> None:
    budget = breakdown(python=5, guard=10)
    guards = (Guard("TENSOR_MATCH x", 6.0), Guard("walk", 3.0), Guard("untimed", None))
    lane = budget_lane(type(budget)(**{**vars_of(budget), "guards": guards}))
    assert lane.description.startswith("drawn, with compiled code, cpu: one call takes 15 ns")
    assert shown(lane)[2:] == [(5, 15, "guard 10 ns, 67%"), (5, 12, "TENSOR_MATCH x 7 ns"), (12, 15, "walk 3 ns")]


def vars_of(value: object) -> dict:
    return {name: getattr(value, name) for name in value.__slots__}  # type: ignore[attr-defined]


def test_a_device_is_busy_and_idle_by_blame() -> None:
    blame = {**dict.fromkeys(BLAME, 0), "python": 30, "queue": 10}
    share = DeviceShare("0", "cuda", 2.0, 60, 40, 60, 0, 0, 0, blame, 2.0, 1, 1, 0.0)
    assert shown(device_lane(share)) == [
        (0, 60, "busy 60 ns"), (60, 90, "idle: python 30 ns"), (90, 100, "idle: queue 10 ns"),
    ]  # fmt: skip
    categories = [each.arguments["category"] for each in device_lane(share).slices]
    assert categories == ["busy", "idle: python", "idle: queue"]


def test_operators_hold_their_own_time_before_those_they_call() -> None:
    child = Operator("aten::empty", 30, 30, {"allocation": 30}, (), "TensorIterator")
    root = Operator("add1", 100, 70, {"python": 50, "dispatcher": 20}, (child,))
    assert shown(operator_lane(root)) == [
        (0, 100, "add1 100 ns"),
        (0, 50, "python 50 ns"),
        (50, 70, "dispatcher 20 ns"),
        (70, 100, "aten::empty 30 ns"),
        (70, 100, "allocation 30 ns"),
    ]


# ---------------------------------------------------------------- one call
LOOP = "[---------------------------------------)"


def loop_of(*entries: dict) -> pd.DataFrame:
    return trace_of([drawn(LOOP, "measured_loop", "user_annotation"), *entries]).events


def test_the_call_of_middle_length() -> None:
    events = loop_of(
        drawn("   [-)                                   ", "add"),
        drawn("        [)                               ", "mul"),
        drawn("               [--)                      ", "add"),
        drawn("                  [)                     ", "mul"),
        drawn("                          [-)            ", "add"),
        drawn("                             [)          ", "mul"),
        drawn("                                [-)      ", "add"),
        drawn("                                   [)    ", "mul"),
    )
    # Periods are 12, 11 and 6; the last call has no end.
    assert one_call(events, 4) == (15, 26)
    assert one_call(events, 3) is None
    assert one_call(events, 1) == (0, 40)


def test_groups_of_other_events_are_no_calls() -> None:
    events = loop_of(drawn("   [-)     ", "add"), drawn("        [) ", "mul"))
    assert one_call(events, 2) is None
    assert one_call(loop_of(), 1) is None


def test_with_python_stacks_calls_stand_below_the_loops_frame() -> None:
    events = loop_of(
        drawn(" [-------------------------------------)", "loop.py(1): measured_loop", "python_function"),
        drawn("   [-------)                             ", "f", "python_function"),
        drawn("    [-)                                  ", "add"),
        drawn("             [-----)                     ", "f", "python_function"),
        drawn("                      [-----)            ", "f", "python_function"),
        drawn("                        [-)              ", "add"),
    )
    assert one_call(events, 3) == (13, 22)
    assert one_call(loop_of(drawn(" [--)", "loop.py(1): measured_loop", "python_function"), drawn("  [)", "f")), 1) == (
        1,
        4,
    )


def test_a_call_has_the_kernels_that_it_launched() -> None:
    events = loop_of(
        call("  [-)                     ", 1),
        call("       [-)                ", 2),
        kernel("        [--)           ", 1),
        kernel("            [--)       ", 2),
        kernel("         [)            ", 99, "unlinked"),
    )
    chosen = events_of_call(events, (7, 12))
    assert chosen[["name", "start_ns"]].to_numpy().tolist() == [["cudaLaunchKernel", 7], ["gemm", 12], ["unlinked", 9]]


def test_categories_are_cut_to_the_call() -> None:
    lane = pd.DataFrame({"start_ns": [0, 10, 20], "dur_ns": [10, 10, 10], "category": ["a", "b", "c"]})
    assert categories_in(lane, (5, 20)).to_numpy().tolist() == [[5, 5, "a"], [10, 10, "b"]]


# ---------------------------------------------------------------- stacks
USER = StackFrame("train", "/home/ada/train.py", 1, native=False)
MALLOC = StackFrame("malloc", "libc.so.6", 0, native=True)
ADD = StackFrame("at::_ops::add_Tensor::call", "libtorch_cpu.so", 0, native=True)
STACKS = [Stack((USER,), 3), Stack((USER, ADD, MALLOC), 2)]


def test_stacks_lie_below_the_time_that_they_stand_for() -> None:
    host = [
        HostCategory("python", 60, (0.0, 99.0), 0.6, "samples", (Part("user", 60),)),
        HostCategory("allocation", 40, (0.0, 99.0), 0.4, "samples", (Part("tensor", 10), Part("storage", 30))),
    ]
    placed = list(placed_stacks(STACKS, host, default_classifier()))
    assert [(each.time_ns, each.category) for each in placed] == [
        (10, "python"), (30, "python"), (50, "python"), (77, "allocation"), (92, "allocation"),
    ]  # fmt: skip
    moved = list(placed_stacks(STACKS, host, default_classifier(), start_ns=1_000))
    assert [each.time_ns for each in moved] == [1_010, 1_030, 1_050, 1_077, 1_092]


@given(counts=st.lists(st.integers(1, 50), min_size=2, max_size=2), python_ns=st.integers(0, 1_000))
def test_every_stack_is_placed_inside_of_its_category(counts: list[int], python_ns: int) -> None:
    budget = breakdown(python=python_ns, allocation=1_000 - python_ns)
    stacks = [Stack(stack.frames, count) for stack, count in zip(STACKS, counts, strict=True)]
    placed = list(placed_stacks(stacks, budget.host, default_classifier()))
    assert len(placed) == sum(counts)
    assert all(0 <= each.time_ns <= python_ns for each in placed if each.category == "python")
    assert all(python_ns <= each.time_ns <= 1_000 for each in placed if each.category == "allocation")


# ---------------------------------------------------------------- the clock
def wall(ns: int) -> Wall:
    return Wall(ns, (0.9 * ns, 1.1 * ns), 2, 4, 400, 0.0)


def clock(*call_ns: int) -> pd.DataFrame:
    return pd.DataFrame({"wall_ns": [100 * ns for ns in call_ns], "calls": 100})


def test_blocks_are_counted_where_their_calls_end() -> None:
    counter = block_counter(clock(100, 100, 101, 103, 9_000), wall(100))
    assert list(counter.points) == [
        (0, 0.0),
        (100, 2.0),
        (101, 1.0),
        (102, 0.0),
        (103, 1.0),
        (104, 0.0),
        (150, 1.0),
        (151, 0.0),
    ]
    assert counter.unit == "blocks"


@pytest.mark.parametrize("ns", [0, 1, 1_000_000_000])
def test_every_block_is_counted(ns: int) -> None:
    points = list(block_counter(clock(*range(ns, ns + 40)), wall(ns)).points)
    width = min(after - before for (before, _), (after, _) in zip(points, points[1:], strict=False))
    assert sum(value * (after - at) for (at, value), (after, _) in zip(points, points[1:], strict=False)) == 40 * width
    assert points[-1][1] == 0.0


@pytest.mark.parametrize("column", [{"delayed_ns": 3_000}, {"steady_ns": 10_000}])
def test_blocks_are_counted_by_the_time_that_sets_the_wall(column: dict[str, int]) -> None:
    counter = block_counter(clock(130, 130, 130, 130).assign(**column), wall(100))
    assert list(counter.points) == [(0, 0.0), (100, 4.0), (101, 0.0)]


def test_the_interval_lies_where_it_is() -> None:
    assert shown(interval_lane(wall(1_000))) == [(900, 1_100, "95 % interval of the wall time: 900 ns .. 1.10 µs")]
    few = interval_lane(replace(wall(1_000), interval="range of 2 processes"))
    assert few.name == "range of 2 processes"
    assert shown(few) == [(900, 1_100, "range of 2 processes of the wall time: 900 ns .. 1.10 µs")]


# ---------------------------------------------------------------- arrows
ADDMM_NODE = "autograd::engine::evaluate_function: AddmmBackward0"


def numbered(drawing: str, name: str, thread: tuple[int, int] = (1, 10)) -> dict:
    return drawn(drawing, name, thread=thread, **{"Sequence number": 5})


def arrows(entries: list[dict]) -> tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]]:
    events = trace_of(entries).events
    return find_flows(events, placed_rows(events))


def test_arrows_of_ranks_in_one_file_stay_in_their_rank() -> None:
    """As SGLang merges them: processes and devices of each rank get a prefix, correlations stay as they are."""
    entries = []
    for rank, at in (("TP00", 0), ("TP01", 5)):
        entries.append(timed(at, 1, "cudaLaunchKernel", "cuda_runtime", (f"[{rank}] 4711", 10), correlation=1))
        entries.append(timed(at + 3, 2, "gemm", "kernel", (f"[{rank}] 0", 7), device=0, stream=7, correlation=1))
    assert arrows(entries) == ({0: (1,), 2: (2,)}, {1: (1,), 3: (2,)})


def test_no_arrow_leads_to_the_operator_of_another_thread() -> None:
    entries = [
        numbered("[--)                ", "aten::addmm"),
        numbered("  [--)              ", "aten::addmm", WORKER),
        numbered("       [--)         ", ADDMM_NODE, AUTOGRAD),
        numbered("            [--)    ", ADDMM_NODE, (1, 13)),
    ]
    assert arrows(entries) == ({}, {})


def test_names_that_are_no_text_stand_beside_categories(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(document([timed(0, 50, "odd \ud800")]))
    categories = pd.DataFrame({"start_ns": [0], "dur_ns": [50], "category": ["python"], "pid": ["1"], "tid": ["1"]})
    rows = placed_rows(read_trace(tmp_path / "t.json").events, categories)
    assert rows["name"].tolist() == ["odd \\ud800", "python"]


def test_arrows_lead_to_each_run_of_a_node_until_another_thread_has_its_number() -> None:
    entries = [
        numbered("[----)                        ", "aten::linear"),
        numbered("  [-)                         ", "aten::addmm"),
        numbered("       [--)                   ", ADDMM_NODE, AUTOGRAD),
        numbered("        [)                    ", "AddmmBackward0", AUTOGRAD),
        numbered("            [--)              ", ADDMM_NODE, AUTOGRAD),
        numbered("                 [--)         ", "aten::addmm", WORKER),
        numbered("                      [--)    ", ADDMM_NODE, (1, 13)),
    ]
    flows = arrows(entries)
    assert flows == ({1: (1, 2)}, {2: (1,), 4: (2,)})
