"""Figures of traces beside those of peers: plain code says what the analysis says, and only what is proven is explained."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.traces.analyzer import Analyzer
from scripts.validation.peers.comparing import EQUAL, EXPLAINED, NOTHING, UNEXPLAINED, compared, is_same
from scripts.validation.peers.figures import Between, busy, device_events, idle, kernel_sum, linked, queue_max, span
from scripts.validation.peers.quantities import HTA, TRACELENS, quantities
from scripts.validation.peers.readings import REASONS, Read
from scripts.validation.peers.recording import read_recording
from scripts.validation.trace_peers import Compared, notes_of, row_of, table
from tests.drawn.timelines import CLASSIFIER, call, drawn, kernel, timed
from tests.drawn.trace_text import document, written
from tests.public_traces import public_trace


def read_of(folder: Path, entries: list[dict], *readings: str) -> Read:
    return Read(read_recording(written(folder, document(entries))), readings)


MIXED = [
    timed(0, 9_000, "ProfilerStep#1", "user_annotation"),
    timed(9_000, 4_000, "ProfilerStep#2", "user_annotation"),
    timed(100, 2_000, "aten::mm"),
    timed(200, 400, "cudaLaunchKernel", "cuda_runtime", correlation=1),
    timed(700, 400, "cudaMemcpyAsync", "cuda_runtime", correlation=2),
    timed(1_200, 300, "cuLaunchKernel", "cuda_driver", correlation=3),
    timed(9_100, 300, "cudaLaunchKernel", "cuda_runtime", correlation=4),
    timed(2_300, 900, "cudaStreamSynchronize", "cuda_runtime", correlation=9, stream=7),
    timed(1_500, 2_000, "gemm", "kernel", (0, 7), device=0, stream=7, correlation=1),
    timed(2_500, 2_500, "ncclDevKernel_AllReduce", "kernel", (0, 8), device=0, stream=8, correlation=3),
    timed(3_600, 300, "Memcpy DtoH", "gpu_memcpy", (0, 7), device=0, stream=7, correlation=2),
    timed(7_200, 1_100, "Memset (Device)", "gpu_memset", (0, 7), device=0, stream=7, correlation=77),
    timed(9_900, 1_000, "gemm", "kernel", (0, 7), device=0, stream=7, correlation=4),
]


@pytest.mark.parametrize("entries", [MIXED, MIXED[:4], MIXED[:1], [drawn("[--)", "aten::add")]])
def test_plain_code_says_what_the_analysis_says(tmp_path: Path, entries: list[dict]) -> None:
    path = written(tmp_path, document(entries))
    analysis, read = Analyzer(read_trace(path), CLASSIFIER).analysis(), Read(read_recording(path), ())
    for quantity in quantities():
        ours = quantity.ours(analysis)
        assert is_same(quantity.figure(read), ours, 0.0, ours), quantity.name


@pytest.mark.parametrize(
    "name",
    [
        "hta_amd_mi250_minitoy",
        "hta_gpu_user_annotation",
        "hta_old_cats_inference_rank1",
        "tl_mi300_sglang_decode_graph",
    ],
)
def test_plain_code_says_what_the_analysis_says_of_public_traces(name: str) -> None:
    path = public_trace(name)
    analysis, read = Analyzer(read_trace(path), CLASSIFIER).analysis(), Read(read_recording(path), ())
    for quantity in quantities():
        ours = quantity.ours(analysis)
        assert is_same(quantity.figure(read), ours, 0.0, ours), quantity.name


def test_whole_microseconds_shorten_every_event(tmp_path: Path) -> None:
    read = read_of(tmp_path, MIXED, "whole_us")
    # gemm 1.5 .. 3.5 becomes 2 .. 3, and 9.9 .. 10.9 becomes 10 .. 10.
    assert kernel_sum(read)["gemm"] == 1_000
    # Memcpy 3.6 .. 3.9 ends at 3, before its start at 4.
    assert kernel_sum(read)["Memcpy DtoH"] == -1_000
    assert (span(read), busy(read)) == (8_000, 3_000)


def test_a_host_call_with_a_stream_is_device_work_for_hta(tmp_path: Path) -> None:
    assert device_events(read_of(tmp_path, MIXED)) == 5
    read = read_of(tmp_path, MIXED, "stream_argument")
    assert device_events(read) == 6
    assert (span(read), busy(read)) == (9_400, 3_500 + 1_100 + 1_000)


def test_the_last_step_and_what_nothing_launched_are_dropped(tmp_path: Path) -> None:
    read = read_of(tmp_path, MIXED, "last_step")
    assert device_events(read) == 3
    assert read.step_numbers == ["ProfilerStep#1"]
    assert (span(read), idle(read)) == (3_500, 0)


def test_tracelens_links_by_arrows(tmp_path: Path) -> None:
    flow = {"cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 10, "ts": 1}
    arrows = [
        {**flow, "ph": "s", "id": 1},
        {**flow, "ph": "f", "bp": "e", "id": 1, "pid": 0, "tid": 7},
        {**flow, "ph": "s", "id": 2},
    ]
    assert linked(read_of(tmp_path, [*MIXED, *arrows], "tl_flows")) == 1


def test_the_order_of_what_happens_at_one_time_bounds_the_queue(tmp_path: Path) -> None:
    entries = [call("[)", 1), call("  [)", 2), kernel("  [-)", 1), kernel("     [-)", 2)]
    assert queue_max(read_of(tmp_path, entries)) == 1
    assert queue_max(read_of(tmp_path, entries, "any_order")) == Between(1, 2)


# ---------------------------------------------------------------- verdicts
def figure_of(**changes: float) -> Any:
    """Ours is 10; each reading adds an amount."""
    return lambda readings: 10 + sum(changes[reading] for reading in readings)


def verdict_of(theirs: float, *, rounding: float = 0.0, exact: float = 0.0, ours: float = 10, **changes: float) -> Any:
    return compared(ours, theirs, figure_of(**changes), tuple(changes), rounding=rounding, exact=exact)


def test_equal_within_the_last_digit() -> None:
    assert verdict_of(10.4, rounding=0.5).status == EQUAL
    assert verdict_of(10.6, rounding=0.5).status == UNEXPLAINED


def test_a_difference_is_explained_by_what_cannot_be_left_out() -> None:
    verdict = verdict_of(15, a=0, b=5, c=0)
    assert (verdict.status, verdict.reasons) == (EXPLAINED, ("b",))
    assert verdict_of(18, a=5, b=0, c=3).reasons == ("a", "c")


def test_a_part_of_the_readings_does_not_explain() -> None:
    # b alone would give the peer's figure, but the peer reads all of them.
    assert verdict_of(15, a=1, b=5).status == UNEXPLAINED


def test_one_too_many_is_unexplained() -> None:
    assert verdict_of(16, a=5).status == UNEXPLAINED


def test_a_figure_that_plain_code_does_not_confirm_is_unexplained() -> None:
    verdict = verdict_of(11, ours=11, a=1)
    assert (verdict.status, verdict.reasons) == (UNEXPLAINED, ("plain code says 10",))


def test_figures_by_name_are_those_that_ours_lists() -> None:
    ours = {"a": 1, "b": 2}

    def figure(readings: tuple[str, ...]) -> dict[str, float]:
        return {"a": 1, "b": 3 if readings else 2, "z": 0}

    assert compared(ours, {"a": 1, "b": 2, "c": 9}, figure, ("x",), rounding=0, exact=0).status == EQUAL
    assert compared(ours, {"a": 1, "b": 3}, figure, ("x",), rounding=0, exact=0).reasons == ("x",)
    missing = compared(ours, {"a": 1}, figure, ("x",), rounding=0, exact=0)
    assert (missing.status, missing.reasons) == (UNEXPLAINED, ("read as the peer does: 1 names, b: 3, peer None",))


def test_what_both_have_none_of_is_not_compared() -> None:
    assert compared(None, None, lambda readings: None, (), rounding=0, exact=0).status == NOTHING
    assert compared(0, 0, lambda readings: 0, (), rounding=0, exact=0).status == NOTHING


# ---------------------------------------------------------------- the tables
def test_rows_count_what_came_of_each_quantity() -> None:
    quantity = next(each for each in quantities() if each.name == "device busy")

    @cache
    def of(trace: str, theirs: float) -> Compared:
        verdict = compared(
            10, theirs, figure_of(last_step=2, whole_us=0), ("last_step", "whole_us"), rounding=0, exact=0
        )
        return Compared(trace, quantity, HTA, verdict)

    found = [of("one", 10), of("two", 12), of("three", 13)]
    assert table(found) == [["device busy, ns", HTA, 3, 1, 1, 1, 0, "last_step 1"]]
    assert row_of(found[1]) == ["two", "device busy, ns", HTA, 1, 10, 12, EXPLAINED, "last_step"]
    assert notes_of(found, 3) == ["3 traces.", f"`last_step` (1 figures): {REASONS['last_step']}"]


def test_every_reading_has_a_sentence() -> None:
    named = {reading for quantity in quantities() for told in quantity.peers.values() for reading in told.readings}
    assert named == set(REASONS)
    assert {peer for quantity in quantities() for peer in quantity.peers} == {HTA, TRACELENS}
