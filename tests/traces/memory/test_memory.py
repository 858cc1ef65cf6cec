"""Memory over time, who holds the peak, and what was repaired, to the byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.errors import UsageError
from overhead_lens.export.query import run_query
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.report.forms import to_text
from overhead_lens.report.outlines.recorded.memory import over_time
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.memory.model import KINDS, DeviceMemory, MemoryHolder, MemoryStep
from overhead_lens.traces.pieces import Analyzed, pieces_of
from tests.drawn.memory import CPU, CUDA, memory
from tests.drawn.timelines import AUTOGRAD, analyzer_of, timed, trace_of
from tests.drawn.trace_text import document
from tests.public_traces import public_trace

MIB = 1 << 20


def of(*entries: dict) -> DeviceMemory:
    """The memory of the one device of a drawn trace."""
    analyzer = analyzer_of(timed(0, 1000, "all of it", "user_annotation"), *entries)
    (life,) = analyzer.memory
    return life.analysis(analyzer.step_windows)


def kinds(found: DeviceMemory) -> dict[str, int]:
    return {kind: size for kind, size in found.kinds.items() if size}


def test_live_bytes_are_the_allocators_total_and_what_was_there_before_is_named() -> None:
    found = of(
        memory(10, 100, 1, total=1100, reserved=2000),
        memory(20, 50, 2, total=1150, reserved=4000),
        memory(30, -100, 1, total=1050, reserved=4000),
    )
    assert (found.device, found.events) == ("cuda:0", 3)
    assert (found.start_bytes, found.peak_bytes, found.peak_ns, found.end_bytes) == (1000, 1150, 20, 1050)
    assert (found.before_bytes, found.reserved_peak_bytes, dict(found.repairs)) == (1000, 4000, {})
    assert found.over_time.live_bytes == (1100, 1150, 1050)
    assert found.over_time.reserved_bytes == (2000, 4000, 4000)


def test_without_totals_the_blocks_are_what_was_live() -> None:
    found = of(memory(10, 100, 1), memory(20, -30, 9), memory(30, 5, 2), memory(40, -100, 1))
    assert (found.start_bytes, found.peak_bytes, found.end_bytes, found.before_bytes) == (30, 130, 5, 30)
    assert (found.reserved_peak_bytes, dict(found.repairs)) == (None, {})


def test_what_does_not_fit_counts_for_no_time() -> None:
    found = of(
        memory(10, 100, 1), memory(20, 7, 1), memory(30, -7, 1),  # the 100 was released unseen
        memory(40, -5, 2), memory(50, -6, 2),  # the 6 was allocated unseen
        memory(60, 11, None),
    )  # fmt: skip
    assert dict(found.repairs) == {
        "allocation_without_release": 1, "release_without_allocation": 1, "event_without_address": 1,
    }  # fmt: skip
    assert (found.start_bytes, found.peak_bytes, found.end_bytes) == (5, 12, 11)


def test_events_without_an_address_allocate_all_the_same() -> None:
    """The first releases what was there before; at the peak 2 of that are left, and 90 are from the recording."""
    found = of(
        timed(0, 35, "ProfilerStep#1", "user_annotation"), memory(10, -3, None), memory(20, 60, None),
        memory(25, -20, None), memory(30, 50, None), memory(40, -92, None),
    )  # fmt: skip
    assert (found.start_bytes, found.peak_bytes, found.peak_ns) == (5, 92, 30)
    assert (found.before_bytes, found.others_bytes, found.holders) == (2, 90, ())
    assert found.steps == (MemoryStep(1, 5, 92, 92, 110, 0, 0, 0),)


def test_a_total_below_the_blocks_that_are_live_is_lifted() -> None:
    found = of(memory(10, 100, 1, total=100), memory(20, 50, 2, total=20), memory(30, -50, 2, total=100))
    assert (found.peak_bytes, dict(found.repairs)) == (150, {"total_below_live_blocks": 1})


def test_kinds_follow_from_where_a_block_begins_and_ends() -> None:
    node, step = "autograd::engine::evaluate_function: MmBackward0", "Optimizer.step#Adam.step"
    found = of(
        timed(100, 100, "aten::linear"), timed(110, 50, "aten::mm"), timed(112, 5, "aten::empty"),
        memory(113, 1, 1),  # released by the backward pass: an activation
        memory(120, 2, 2), memory(190, -2, 2),  # inside aten::linear: temporary
        timed(300, 50, node, thread=AUTOGRAD),
        memory(310, 4, 3, thread=AUTOGRAD),  # kept beyond its node: a gradient
        timed(400, 50, node, thread=AUTOGRAD), memory(410, -1, 1, thread=AUTOGRAD),
        timed(500, 50, step, "user_annotation"), memory(510, 8, 4),  # kept beyond the step: state
        memory(520, 16, 5), memory(540, -16, 5),
        timed(600, 50, "Optimizer.zero_grad#Adam.zero_grad", "user_annotation"), memory(610, -32, 6),  # held before
        timed(700, 50, "torch/nn/modules/linear.py(90): __init__", "python_function"), memory(710, 64, 7),
        memory(800, 128, 8),
    )  # fmt: skip
    assert (found.peak_ns, found.peak_bytes) == (800, 4 + 8 + 64 + 128)
    assert kinds(found) == {"gradient": 4, "optimizer_state": 8, "parameter": 64, "unknown": 128}


def test_the_peak_is_told_by_operator_module_and_line() -> None:
    forward = timed(100, 500, "train.py(12): forward", "python_function")
    module = timed(110, 400, "nn.Module: Linear_3", "python_function")
    inner = timed(115, 300, "torch/nn/modules/linear.py(9): forward", "python_function")
    mm = [timed(120, 100, "aten::mm"), timed(121, 9, "aten::empty"), memory(125, 5, 1), memory(128, 6, 2)]
    found = of(forward, module, inner, *mm, timed(300, 50, "aten::empty"), memory(310, 1, 3))
    assert found.holders == (
        MemoryHolder("aten::mm", "Linear_3", "train.py(12): forward", "unknown", 2, 11),
        MemoryHolder("aten::empty", "Linear_3", "train.py(12): forward", "unknown", 1, 1),
    )


def test_growth_and_churn_step_by_step() -> None:
    steps = [timed(at, 100, f"ProfilerStep#{number}", "user_annotation") for number, at in enumerate((100, 200, 300))]
    leak = [memory(at + 10, 1000, at) for at in (100, 200, 300)]
    churn = [each for at in (100, 200, 300) for each in (memory(at + 20, 50, 7), memory(at + 30, -50, 7))]
    crossing = [memory(250, 3, 8), memory(350, -3, 8)]
    found = of(*steps, *leak, *churn, *crossing)
    assert found.steps == (
        MemoryStep(0, 0, 1000, 1050, 1050, 50, 1, 1000),
        MemoryStep(1, 1000, 2003, 2050, 1053, 50, 1, 1000),
        MemoryStep(2, 2003, 3000, 3053, 1050, 50, 1, 1000),
    )
    assert (found.churn_bytes, found.churn_blocks) == (150, 3)
    assert [(holder.operator, holder.blocks, holder.bytes) for holder in found.kept] == [("", 1, 1000)]


def test_devices_are_told_apart_and_the_host_comes_last() -> None:
    entries = [memory(1, 10, 5, device=CPU), memory(2, 20, 5, device=CUDA), memory(3, 30, 5, device=(6, 2))]
    found = analyzer_of(timed(0, 10, "aten::view"), *entries).analysis().memory
    assert [(each.device, each.peak_bytes) for each in found] == [("cuda:0", 20), ("hip:2", 30), ("cpu", 10)]


def test_sizes_that_cannot_be_summed_are_refused() -> None:
    entries = [memory(at, (1 << 50) - 1, at) for at in range(1, 4200)]
    with pytest.raises(UsageError, match="add up to more than"):
        of(*entries)


def test_the_text_names_the_peak_and_escapes_names() -> None:
    entries = [
        timed(0, 50, "ev\x1b[31mil"), memory(5, MIB, 1, total=2 * MIB), memory(8, -9, None, total=2 * MIB - 9),
        timed(100, 50, "aten::view"),
    ]  # fmt: skip
    text = to_text(analyzer_of(*entries).analysis(), whole=True)
    assert "Memory of cuda:0: peak 2.10 MB live at 5 ns" in text
    assert "1.05 MB  50.0%          (before the recording)" in text
    assert "1 memory events on cuda:0 name no address" in text
    assert "\x1b" not in text


def test_blocks_are_a_table_of_queries() -> None:
    trace = trace_of(
        [timed(0, 50, "aten::mm"), memory(5, 7, 1, total=8, reserved=10), memory(9, -7, 1, total=1, reserved=10)]
    )
    analyzer = Analyzer(trace, default_classifier())
    analyzed = Analyzed(trace, analyzer.analysis(), pieces_of(analyzer))
    assert run_query("select device, start_ns, end_ns, bytes, kind, operator from allocations", [analyzed]).rows == (
        ("cuda:0", 5, 9, 7, "temporary", "aten::mm"),
    )
    assert run_query("select start_ns, live_bytes, reserved_bytes from memory", [analyzed]).rows == (
        (5, 8, 10),
        (9, 1, 10),
    )


def test_blocks_of_several_devices_keep_names_that_are_no_text(tmp_path: Path) -> None:
    entries = [memory(5, 7, 1, device=CPU), memory(6, 8, 1), memory(200, 9, 2)]
    (tmp_path / "t.json").write_text(document([timed(0, 50, "odd \ud800"), *entries]))
    trace = read_trace(tmp_path / "t.json")
    analyzer = Analyzer(trace, default_classifier())
    analyzed = Analyzed(trace, analyzer.analysis(), pieces_of(analyzer))
    assert run_query("select device, bytes, operator, module, line from allocations", [analyzed]).rows == (
        ("cuda:0", 8, "odd \\ud800", "", ""),
        ("cuda:0", 9, "", "", ""),
        ("cpu", 7, "odd \\ud800", "", ""),
    )


EVENTS = st.lists(
    st.tuples(
        st.integers(0, 30), st.integers(-20, 20), st.none() | st.integers(0, 3), st.none() | st.integers(0, 40),
    ),
    min_size=1,
    max_size=24,
)  # fmt: skip


@settings(max_examples=100)
@given(events=EVENTS, starts=st.lists(st.integers(0, 30), max_size=3))
def test_live_bytes_are_never_negative_and_everything_closes(events: list[tuple[int, ...]], starts: list[int]) -> None:
    entries = [memory(time, size, address, total) for time, size, address, total in events]
    steps = [timed(at, 9, f"ProfilerStep#{number}", "user_annotation") for number, at in enumerate(sorted(starts))]
    analyzer = analyzer_of(timed(0, 50, "aten::mm"), *steps, *entries)
    (life,) = analyzer.memory
    found = life.analysis(analyzer.step_windows)
    live, blocks = life.live.live_bytes, life.live.blocks
    assert live.min() >= 0
    assert found.peak_bytes == live.max() == max(found.over_time.live_bytes)
    assert sum(found.kinds.values()) == found.peak_bytes
    assert tuple(found.kinds) == KINDS
    for event in range(-1, len(life.live.rows)):
        assert blocks.bytes[blocks.live_after(event)].sum() <= live[event + 1]
    assert sum(step.churn_bytes for step in found.steps) >= found.churn_bytes or not steps


@settings(max_examples=50)
@given(events=EVENTS)
def test_the_order_in_the_file_matters_only_within_one_instant(events: list[tuple[int, ...]]) -> None:
    spread = [(40 * number + time, *rest) for number, (time, *rest) in enumerate(events)]
    entries = [memory(*each) for each in spread]
    assert of(*entries) == of(*reversed(entries))


def test_the_chart_ends_with_the_last_event() -> None:
    found = of(*(memory(at, 1, at) for at in range(1, 480)), memory(900, 1000, 900))
    assert (found.peak_ns, over_time(found).x.high) == (900, 900)
    few = of(memory(10, 8, 1), memory(20, 8, 2), memory(800, -8, 1))
    assert over_time(few).x.high == 800


def test_pairs_that_fit_need_no_repair() -> None:
    pairs = [(memory(10 * at, 8, at, total=8), memory(10 * at + 5, -8, at, total=0)) for at in range(1, 50)]
    found = of(*(each for pair in pairs for each in pair))
    assert (found.start_bytes, found.peak_bytes, found.end_bytes, dict(found.repairs)) == (0, 8, 0, {})
    assert (found.churn_bytes, found.churn_blocks) == (8 * 49, 49)


@pytest.mark.parametrize(
    ("name", "device"), [("tl_h100_owlv2_mem_stack", 1), ("hta_v100_df_index_resolver", 1), ("tl_mi300_qwen", 6)]
)
def test_public_traces_peak_where_their_totals_do(name: str, device: int) -> None:
    trace = read_trace(public_trace(name))
    mine = {
        name: trace.memory[name][trace.memory["device_type"] == device]
        for name in ("bytes", "allocated_bytes", "reserved_bytes")
    }
    analyzer = Analyzer(trace, default_classifier())
    found = analyzer.memory[0].analysis(analyzer.step_windows)
    assert found.peak_bytes == mine["allocated_bytes"].max()
    assert found.reserved_peak_bytes == mine["reserved_bytes"].max()
    assert dict(found.repairs) == {}
    assert np.sum(mine["bytes"]) == found.end_bytes - found.start_bytes
