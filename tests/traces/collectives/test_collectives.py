"""Collectives of one trace: what they are, how large, how fast, and how much of them is hidden."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.export.query import run_query
from overhead_lens.report.forms import to_text
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.collectives.analysis import collective_costs
from overhead_lens.traces.collectives.definitions import bus_factor, element_bytes, kind_of, size_in_elements
from overhead_lens.traces.collectives.model import Collective, bandwidths
from overhead_lens.traces.pieces import Analyzed, pieces_of
from tests.drawn.collectives import collective, shaped
from tests.drawn.timelines import CLASSIFIER, analyzer_of, timed, trace_of


def of(*entries: dict, **metadata: Any) -> tuple[Collective, ...]:
    return analyzer_of(timed(0, 1000, "all of it", "user_annotation"), *entries, **metadata).collectives


def told(one: Collective) -> tuple[Any, ...]:
    return one.kind, one.dtype, one.elements, one.bytes, one.group_size


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("allreduce", "all_reduce"), ("nccl:all_reduce", "all_reduce"), ("allreduce_coalesced", "all_reduce"),
        ("_allgather_base", "all_gather"), ("all_gather_into_tensor_coalesced", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"), ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_to_allv", "all_to_all"), ("alltoall_base_", "all_to_all"), ("_broadcast_oop", "broadcast"), ("_reduce_oop", "reduce"),
        ("gather", "gather"), ("scatter", "scatter"), ("send", "send"), ("recv", "recv"), ("barrier", "barrier"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "all_reduce"), ("ncclDevKernel_Generic", ""),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", ""), ("nccl:coalesced", ""),
        ("nccl:send", "send"), ("nccl:send 0->1", "send"), ("nccl:recv 12<-3", "recv"),
        ("void vllm::cross_device_reduce_1stage<__half, 2>(vllm::RankData*)", "all_reduce"),
        ("void two_shot_all_reduce_kernel<c10::BFloat16, 8>()", "all_reduce"),
    ],
)  # fmt: skip
def test_kinds_by_their_names(name: str, kind: str) -> None:
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(AllReduceFusionPattern)1, __nv_bfloat16, 8>(Args)", "all_reduce"),
        ("void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<4, __nv_bfloat16, true>(Args)", "all_reduce"),
        ("void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8, true, true>(AllReduceParams)", "all_reduce"),
        ("quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, CodecQ4<__half, 4>, true>, __half>(Args)", "all_reduce"),
        ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)", ""),
        ("void deep_ep::internode_ll::combine<3, 10, 7168, 9>(void*)", ""),
        ("void dpsk::ep::internode::combine<false, 8, __nv_bfloat16, 8, 2, 16, 24>(int4*)", ""),
        ("void hybrid_ep::dispatch_kernel<hybrid_ep::warp_group<4, 0>, 8>(hybrid_ep::dispatch_kernel_param_t<unsigned short>)", ""),
        ("EpDispatchInterNodeV1KernelLowLatency_bf16", ""),
        ("void mori::moe::EpCombineIntraNodeKernel<hip_bfloat16>(mori::moe::EpDispatchCombineArgs<hip_bfloat16>)", ""),
        ("void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(aiter::RankData*)", "reduce_scatter"),
    ],
)  # fmt: skip
def test_fused_and_expert_parallel_kernels_communicate(name: str, kind: str) -> None:
    analysis = analyzer_of(timed(0, 1000, "all of it", "user_annotation"), kernel(20, 30, 1, name)).analysis()
    assert [(one.kind, one.exposed_ns) for one in analysis.collectives] == [(kind, 30)]
    (device,) = analysis.devices
    assert (device.kinds.compute_ns, device.kinds.communication_ns) == (0, 30)


@pytest.mark.parametrize(
    "name",
    [
        "void LayerNormWarpImpl<WarpAllReduce<SumOp, float>>(Args)",
        "void softmax<BlockAllReduce<MaxOp, float, 256>>(Args)",
        "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)",
        "void deep_ep::internode::get_dispatch_layout<256, 32, 8>(long const*)",
        "void dpsk::ep::cuda::get_dispatch_layout<256, 32, 8>(long const*)",
        "void flashinfer::trtllm_mnnvl_allreduce::RMSNormLamport<__nv_bfloat16>(Args)",
    ],
)
def test_kernels_that_reduce_within_a_device_compute(name: str) -> None:
    (device,) = analyzer_of(timed(0, 1000, "all of it", "user_annotation"), kernel(20, 30, 1, name)).analysis().devices
    assert (device.kinds.compute_ns, device.kinds.communication_ns) == (30, 0)


def test_elements_have_the_size_of_their_type() -> None:
    sizes = {
        name: element_bytes(name)
        for name in (
            "Float",
            "c10::BFloat16",
            "long int",
            "signed char",
            "Float8_e4m3fn",
            "Float8_e8m0fnu",
            "Float4_e2m1fn_x2",
            "c10::complex<float>",
            "mystery",
        )
    }
    assert sizes == {
        "Float": 4, "c10::BFloat16": 2, "long int": 8, "signed char": 1, "Float8_e4m3fn": 1, "Float8_e8m0fnu": 1, "Float4_e2m1fn_x2": 1, "c10::complex<float>": 8, "mystery": None,
    }  # fmt: skip


def test_bus_bandwidth_is_that_of_nccl_tests() -> None:
    """The table of doc/PERFORMANCE.md, for 8 ranks."""
    factors = {
        kind: bus_factor(kind, 8)
        for kind in ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce")
    }
    assert factors == {
        "all_reduce": 2 * 7 / 8, "reduce_scatter": 7 / 8, "all_gather": 7 / 8, "all_to_all": 7 / 8, "broadcast": 1.0, "reduce": 1.0,
    }  # fmt: skip
    assert [
        bus_factor("all_reduce", None),
        bus_factor("broadcast", None),
        bus_factor("", 8),
        bus_factor("barrier", 8),
    ] == [None, 1.0, None, None]
    assert bandwidths("all_reduce", 1000, 4, 500) == (2.0, 3.0)
    assert bandwidths("all_reduce", None, 4, 500) == bandwidths("all_reduce", 1000, 4, 0) == (None, None)


def test_the_size_is_that_of_the_whole_array() -> None:
    assert size_in_elements("all_reduce", 8, 8, 4) == 8
    assert (size_in_elements("all_gather", 32, 8, 4), size_in_elements("all_gather", None, 8, 4)) == (32, 32)
    assert (size_in_elements("reduce_scatter", 8, 32, 4), size_in_elements("reduce_scatter", 8, None, 4)) == (32, 32)
    assert size_in_elements("all_gather", None, 8, None) is None
    assert size_in_elements("all_gather", 32, None, None) == 32
    assert (size_in_elements("all_to_all", 32, 32, 4), size_in_elements("all_to_all", 31, 32, 4)) == (32, None)
    assert size_in_elements("barrier", 1, 1, 4) is None


def test_a_kernel_says_what_it_is() -> None:
    gathered = collective(
        0, 10, "_allgather_base", group="7", size=4, dtype="BFloat16", In__msg__nelems=8, Out__msg__nelems=32, Seq=5
    )
    one, barrier = of(gathered, collective(20, 5, "barrier"))
    assert told(one) == ("all_gather", "BFloat16", 32, 64, 4)
    assert (one.group, one.sequence, one.device) == ("7", 5, 0)
    assert told(barrier) == ("barrier", "Float", None, None, 2)


def test_uneven_parts_have_no_size() -> None:
    def exchanged(start: int, **more: Any) -> dict:
        return collective(start, 5, "all_to_allv", **more)

    found = of(
        exchanged(0), exchanged(10, In__split__size="[4, 4]"), exchanged(20, In__split__size="[3, 5]"),
        exchanged(30, Out__split__size="[4, 4, ..., 9]"), exchanged(40, In__msg__nelems=9),
    )  # fmt: skip
    assert [one.bytes for one in found] == [32, 32, None, None, None]


def launched(start: int, correlation: int) -> dict:
    return timed(start, 1, "cudaLaunchKernel", "cuda_runtime", correlation=correlation)


def kernel(start: int, dur: int, correlation: int, name: str = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t") -> dict:
    return timed(start, dur, name, "kernel", (0, 9), device=0, stream=9, correlation=correlation)


def test_without_arguments_of_its_own_the_calls_around_the_launch_tell() -> None:
    base = shaped(0, 50, "c10d::_allgather_base_", "cpu_op", [32], [8], [])
    inner = [timed(2, 40, "record_param_comms"), shaped(4, 30, "nccl:_all_gather_base", "user_annotation", [8])]
    reduced = shaped(100, 30, "nccl:all_reduce", "user_annotation", [2, 3], dtype="c10::Half")
    newer = {**timed(200, 30, "record_param_comms"), "args": collective(0, 1, elements=7)["args"]}
    found = of(
        base, *inner, launched(10, 1), kernel(500, 10, 1),
        reduced, launched(110, 2), kernel(520, 10, 2),
        newer, launched(210, 3), kernel(540, 10, 3),
        launched(300, 4), kernel(560, 10, 4), kernel(580, 10, 5, "ncclKernel_AllReduce_RING_LL_Sum_float"),
    )  # fmt: skip
    assert [told(one) for one in found] == [
        ("all_gather", "float", 32, 128, 4),  # 32 elements of 8 on each of 4 ranks
        ("all_reduce", "c10::Half", 6, 12, None),
        ("all_reduce", "Float", 7, 28, 2),
        ("", "", None, None, None),
        ("all_reduce", "", None, None, None),
    ]


def test_the_call_with_arguments_is_asked_before_those_inside_it() -> None:
    def recorded(start: int, kind: str = "allreduce", **more: Any) -> dict:
        return {**timed(start, 50, "record_param_comms"), "args": collective(0, 1, kind, 7, size=4, **more)["args"]}

    unsized = {"In__msg__nelems": None, "Out__msg__nelems": None}
    found = of(
        recorded(0), timed(5, 30, "nccl:all_reduce", "user_annotation"), launched(10, 1), kernel(500, 10, 1),
        recorded(100, **unsized), shaped(105, 30, "nccl:all_reduce", "user_annotation", [3]), launched(110, 2), kernel(520, 10, 2),
        shaped(200, 90, "c10d::alltoall_base_", "cpu_op", [8], [8]), recorded(210, "all_to_all", In__split__size="[3, 5]"),
        shaped(215, 30, "nccl:all_to_all", "user_annotation", [8]), launched(220, 3), kernel(540, 10, 3),
    )  # fmt: skip
    assert [told(one) for one in found] == [
        ("all_reduce", "Float", 7, 28, 4),
        ("all_reduce", "Float", 3, 12, 4),
        ("all_to_all", "Float", None, None, 4),  # its parts are uneven, whatever the shapes of the whole
    ]


def test_the_size_of_a_call_that_launched_several_kernels_is_of_none_of_them() -> None:
    call = shaped(0, 50, "nccl:all_reduce", "user_annotation", [8])
    assert [told(one) for one in of(call, launched(10, 1), launched(20, 2), kernel(100, 5, 1), kernel(110, 5, 2))] == [
        ("all_reduce", "float", None, None, None),
        ("all_reduce", "float", None, None, None),
    ]


def test_group_and_number_may_stand_in_the_call_alone() -> None:
    call = {**timed(0, 50, "record_param_comms"), "args": collective(0, 1, group="tp", Seq=7)["args"]}
    unlinked, linked = of(call, launched(10, 1), launched(20, 2), kernel(500, 5, 1), collective(510, 5, correlation=2))
    assert [(one.group, one.sequence) for one in (unlinked, linked)] == [("tp", 7), ("0", 7)]


def test_sizes_of_an_unknown_type_are_told_apart() -> None:
    costs = collective_costs(of(*(collective(10 * at, 5, elements=at, dtype="mystery") for at in (1, 2, 2))))
    assert sorted((cost.elements, cost.bytes, cost.count) for cost in costs) == [(1, None, 1), (2, None, 2)]


def test_the_size_of_a_group_may_stand_in_the_file_alone() -> None:
    groups = {"distributedInfo": {"pg_config": [{"pg_name": "3", "pg_size": 16}, "damaged"]}}
    (one,) = of(collective(0, 5, group="3", Group__size=None), **groups)
    assert one.group_size == 16


def test_what_runs_beside_compute_is_hidden() -> None:
    found = of(
        timed(10, 20, "gemm", "kernel", (0, 7), device=0, stream=7), timed(25, 10, "gemm", "kernel", (0, 8), device=0, stream=8),
        timed(70, 5, "HtoD", "gpu_memcpy", (0, 8), device=0, stream=8), timed(0, 900, "gemm", "kernel", (1, 7), device=1, stream=7),
        collective(0, 15), collective(20, 40), collective(65, 15),
    )  # fmt: skip
    # Compute on device 0 from 10 to 35; copies hide nothing, nor does another device.
    assert [(one.hidden_ns, one.exposed_ns) for one in found] == [(5, 10), (15, 25), (0, 15)]


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=8)


@given(compute=SPANS, communication=SPANS)
def test_hidden_and_exposed_agree_with_a_count_of_every_ns(
    compute: list[tuple[int, int]], communication: list[tuple[int, int]]
) -> None:
    entries = [timed(start, dur, "gemm", "kernel", (0, 7), device=0, stream=7) for start, dur in compute]
    found = of(*entries, *(collective(start, dur) for start, dur in communication))
    busy = {ns for start, dur in compute for ns in range(start, start + dur)}
    expected = sorted((start, dur, sum(ns in busy for ns in range(start, start + dur))) for start, dur in communication)
    assert sorted((one.start_ns, one.dur_ns, one.hidden_ns) for one in found) == expected


def test_the_step_is_that_of_the_launch() -> None:
    found = of(
        timed(0, 100, "ProfilerStep#4", "user_annotation"), timed(100, 100, "ProfilerStep#5", "user_annotation"),
        launched(50, 1), kernel(150, 5, 1), launched(199, 2), kernel(210, 5, 2), launched(200, 3), kernel(220, 5, 3), kernel(120, 5, 9),
    )  # fmt: skip
    assert [(one.start_ns, one.step) for one in found] == [(120, None), (150, 4), (210, 5), (220, None)]


def test_collectives_are_summed_by_kind_and_size_the_most_exposed_first() -> None:
    many = of(
        collective(0, 10),
        collective(20, 30),
        collective(60, 20),
        collective(90, 100, elements=80),
        collective(200, 5, "broadcast"),
    )
    costs = collective_costs(many)
    assert [(cost.kind, cost.bytes, cost.count, cost.total_ns) for cost in costs] == [
        ("all_reduce", 320, 1, 100), ("all_reduce", 32, 3, 60), ("broadcast", 32, 1, 5),
    ]  # fmt: skip
    small = costs[1]
    assert (small.min_ns, small.median_ns, small.max_ns) == (10, 20, 30)
    assert (small.algorithm_gb_s, small.bus_gb_s, small.best_bus_gb_s) == (96 / 60, 96 / 60, 3.2)
    assert sum(cost.total_ns for cost in costs) == sum(one.dur_ns for one in many)


def test_they_are_printed_and_asked_for() -> None:
    trace = trace_of([timed(0, 100, "op"), collective(0, 10, group="[red]", Seq=3), collective(20, 30)])
    analyzer = Analyzer(trace, CLASSIFIER)
    analysis = analyzer.analysis()
    text = to_text(analysis, whole=True)
    assert "Collectives, the most exposed first; 0 ns of 40 ns hidden behind compute" in text
    assert "3.20 GB/s" in text
    sql = "select kind, process_group, number, exposed_ns, bytes, group_size, bus_gb_s, step from collectives order by start_ns"
    assert run_query(sql, [Analyzed(trace, analysis, pieces_of(analyzer))]).rows == (
        ("all_reduce", "[red]", 0, 10, 32, 2, 3.2, None), ("all_reduce", "0", 0, 30, 32, 2, 32 / 30, None),
    )  # fmt: skip
