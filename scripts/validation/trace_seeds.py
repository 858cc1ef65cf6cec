"""Small traces to mutate: some generated here, others cut down from recorded ones; each holds many kinds of events."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_ORIGIN_NS = 1_782_345_678_901_234_567
_HOST, _MAIN, _BACKWARD = 4711, 4711, 4799
_KEPT_PER_KIND = 4
_MOST_BYTES = 48 << 10
_MOST_ARGUMENT_BYTES = 400

_Event = dict[str, Any]


def generated_seeds() -> dict[str, bytes]:
    """Traces by name, in the layouts and with the events of all the exporters that the reader knows."""
    compact = json.dumps({"schemaVersion": 1, "traceEvents": [json.loads(each) for each in _nvidia_step(5)]})
    return {
        "nvidia": _document(_nvidia(), deviceProperties=[{"id": 0, "name": "NVIDIA H100"}], **_distributed(0)),
        "nvidia-compact": compact.encode(),
        "amd": _document(_amd(), deviceProperties=[{"id": 2, "name": "AMD MI300X"}], roctracer_version=4.1),
        "mtia": _document(_mtia(), deviceProperties=[], baseTimeNanoseconds=1_700_000_000_000_000_000),
        "compiled-cpu": _document(_compiled_cpu(), with_stack=1, profile_memory=1, record_shapes=1),
        "graph": _document(_graph(), **_distributed(1)),
        "old": _document(_old()),
        "bare-list": b"[" + ",\n".join(_compiled_cpu()).encode() + b"]",
        "other-phases": _document(_other_phases()),
    }


def recorded_seeds(folder: Path) -> dict[str, bytes]:
    """The traces of a folder, each cut down to the first events of every kind and the calls that launched them.

    A file that is no trace is passed over.
    """
    seeds = {}
    for path in sorted(folder.glob("*.json*")):
        raw = path.read_bytes()
        try:
            document = json.loads(gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw)
        except (ValueError, OSError, EOFError):
            continue
        if isinstance(document, dict) and isinstance(document.get("traceEvents"), list):
            seeds[path.name.partition(".")[0]] = _cut_down(document)
    return seeds


def _cut_down(document: _Event) -> bytes:
    kinds: defaultdict[tuple[Any, Any], list[_Event]] = defaultdict(list)
    for entry in document["traceEvents"]:
        if isinstance(entry, dict):
            kinds[entry.get("ph"), entry.get("cat")].append(entry)
    chosen = [entry for entries in kinds.values() for entry in entries[:_KEPT_PER_KIND]]
    wanted = {number for entry in chosen if (number := _correlation(entry)) is not None}
    launches = [
        entry
        for (phase, category), entries in kinds.items()
        if phase == "X" and str(category).endswith(("runtime", "Runtime", "driver"))
        for entry in entries[_KEPT_PER_KIND:]
        if _correlation(entry) in wanted
    ]
    beside = {name: value for name, value in document.items() if len(json.dumps(value)) <= _MOST_ARGUMENT_BYTES}
    texts: list[str] = []
    for entry in [*chosen, *launches[: 4 * _KEPT_PER_KIND]]:
        text = json.dumps(_shortened(entry), indent=1)
        if sum(map(len, texts)) + len(text) < _MOST_BYTES:
            texts.append(text)
    return _document(texts, **beside)


def _correlation(entry: _Event) -> Any:
    arguments = entry.get("args")
    return arguments.get("correlation") if isinstance(arguments, dict) else None


def _shortened(entry: _Event) -> _Event:
    arguments = entry.get("args")
    if not isinstance(arguments, dict):
        return entry
    kept = {name: value for name, value in arguments.items() if len(json.dumps(value)) <= _MOST_ARGUMENT_BYTES}
    return {**entry, "args": kept}


def _document(entries: Iterable[str], **beside: Any) -> bytes:
    """A document as Kineto's exporter lays it out."""
    head = "".join(f'  "{name}": {json.dumps(value)},\n' for name, value in {"schemaVersion": 1, **beside}.items())
    joined = ",\n".join(entries)
    return f'{{\n{head}  "traceEvents": [\n{joined}\n  ],\n  "traceName": "trace.json"\n}}'.encode()


def _distributed(rank: int) -> Mapping[str, Any]:
    return {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "baseTimeNanoseconds": 0}


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03}"


def _event(category: str, name: str, start_ns: int, dur_ns: int, place: tuple[Any, Any], **arguments: Any) -> str:
    """A complete event; spaces in the names of arguments are written as ``__``."""
    spelled = {key.replace("__", " "): value for key, value in arguments.items()}
    return (
        f'  {{\n    "ph": "X", "cat": {json.dumps(category)}, "name": {json.dumps(name)}, '
        f'"pid": {json.dumps(place[0])}, "tid": {json.dumps(place[1])},\n'
        f'    "ts": {_us(_ORIGIN_NS + start_ns)}, "dur": {_us(dur_ns)},\n'
        f'    "args": {{\n      {json.dumps(spelled)[1:-1]}\n    }}\n  }}'
    )


def _mark(phase: str, category: str, name: str, start_ns: int, place: tuple[Any, Any], **more: Any) -> str:
    """An event of another phase."""
    head = {"ph": phase, "cat": category, "name": name, "pid": place[0], "tid": place[1], **more}
    return f'  {{\n    {json.dumps(head)[1:-1]}, "ts": {_us(_ORIGIN_NS + start_ns)}\n  }}'


def _label(place: tuple[Any, Any], name: str, kind: str = "thread_name") -> str:
    entry = {"name": kind, "ph": "M", "ts": 0.0, "pid": place[0], "tid": place[1], "args": {"name": name}}
    return f"  {json.dumps(entry)}"


def _frame_of_recording(until_ns: int) -> list[str]:
    return [
        _label((_HOST, 0), "python3", "process_name"),
        _label((_HOST, _MAIN), "thread 4711 (python3)"),
        _event("Trace", "PyTorch Profiler (0)", 0, until_ns, ("Spans", "PyTorch Profiler"), Op__count=0),
        _mark("i", "", "Iteration Start: PyTorch Profiler", 0, ("Traces", "Trace PyTorch Profiler"), s="g"),
    ]


def _launch(at_ns: int, correlation: int, name: str, stream: int = 7, thread: int = _MAIN) -> list[str]:
    """A runtime call, the driver call inside it, their flow, and the kernel, 2 us later."""
    return [
        _event("cuda_runtime", "cudaLaunchKernel", at_ns, 900, (_HOST, thread), External__id=correlation - 1,
               cbid=211, correlation=correlation),
        _event("cuda_driver", "cuLaunchKernel", at_ns + 100, 700, (_HOST, thread), correlation=correlation),
        _mark("s", "ac2g", "ac2g", at_ns, (_HOST, thread), id=correlation),
        _event("kernel", name, at_ns + 2_000, 3_000, (0, stream), External__id=correlation - 1, device=0,
               context=1, stream=stream, correlation=correlation, grid=[64, 1, 1], block=[128, 1, 1]),
        _mark("f", "ac2g", "ac2g", at_ns + 2_000, (0, stream), id=correlation, bp="e"),
    ]  # fmt: skip


def _nvidia_step(step: int) -> list[str]:
    at, first = step * 40_000, step * 100
    main, backward = (_HOST, _MAIN), (_HOST, _BACKWARD)
    group = {"Process Group Name": "0", "Process Group Ranks": [0, 1], "Collective name": "all_reduce"}
    reduce = _launch(at + 22_000, first + 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", 20)
    reduce[3] = _event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", at + 24_000, 5_000, (0, 20),
                       device=0, stream=20, correlation=first + 5, **group)  # fmt: skip
    return [
        _event("user_annotation", f"ProfilerStep#{step}", at, 38_000, main, External__id=first),
        _event("cpu_op", "aten::linear", at + 500, 8_000, main, External__id=first + 1, Sequence__number=step,
               Input__Dims=[[32, 32], [32, 32], []], Input__type=["float", "float", ""]),
        _event("cpu_op", "aten::t", at + 600, 500, main, External__id=first + 2),
        _event("cpu_op", "aten::addmm", at + 1_200, 7_000, main, External__id=first + 3),
        *_launch(at + 2_000, first + 4, "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_cublas"),
        _mark("s", "fwdbwd", "fwdbwd", at + 500, main, id=step),
        _event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", at + 10_000, 9_000, backward,
               Sequence__number=step, Fwd__thread__id=1),
        _event("cpu_op", "AddmmBackward0", at + 10_200, 8_000, backward, Sequence__number=step),
        _event("cpu_op", "aten::mm", at + 10_400, 6_000, backward, External__id=first + 6),
        _mark("f", "fwdbwd", "fwdbwd", at + 10_200, backward, id=step, bp="e"),
        *_launch(at + 11_000, first + 7, "sm90_xmma_gemm_f32f32_tf32f32_f32_nn", thread=_BACKWARD),
        _event("user_annotation", "nccl:all_reduce", at + 21_500, 2_000, main),
        *reduce,
        _event("cuda_runtime", "cudaMemcpyAsync", at + 26_000, 1_500, main, correlation=first + 8),
        _event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", at + 27_000, 900, (0, 7), device=0, stream=7,
               correlation=first + 8, bytes=4096),
        _event("gpu_memset", "Memset (Device)", at + 28_500, 100, (0, 7), device=0, stream=7, correlation=-1),
        _event("cuda_runtime", "cudaDeviceSynchronize", at + 29_000, 4_000, main, correlation=first + 9),
        _event("cuda_sync", "Context Sync", at + 29_100, 3_900, (0, 7), stream=-1, correlation=first + 9),
        _event("gpu_user_annotation", f"ProfilerStep#{step}", at + 4_000, 25_000, (0, 7), External__id=first),
        _event("overhead", "Buffer Flush", at + 34_000, 300, (-1, 0)),
        _mark("i", "cpu_instant_event", "[memory]", at + 1_300, main, s="t",
              args={"Total Reserved": 0, "Bytes": 512, "Addr": 140255988547584, "Device Id": 0, "Device Type": 1}),
    ]  # fmt: skip


def _nvidia() -> list[str]:
    return [*_nvidia_step(1), *_nvidia_step(2), *_nvidia_step(3), *_frame_of_recording(170_000)]


def _amd() -> list[str]:
    main = (_HOST, _MAIN)
    entries = [_event("user_annotation", "ProfilerStep#1", 0, 60_000, main)]
    for number in range(4):
        at = 1_000 + number * 12_000
        entries += [
            _event("cpu_op", "aten::mul", at, 9_000, main, External__id=number, Ev__Idx=number),
            _event("cuda_runtime", "hipLaunchKernel", at + 2_000, 4_000, main, External__id=number, cid=211,
                   correlation=number + 100, stream="0x0", kernel="elementwise", grid=[1, 1, 1]),
            _event("kernel", "void at::native::elementwise_kernel<128, 2>(int)", at + 7_000, 2_500, (2, 0),
                   External__id=number, device=2, stream="0x1f", correlation=number + 100, kind="Dispatch Kernel"),
            _event("gpu_memcpy", "Memcpy HtoD (Host -> Device)", at + 9_600, 20, (2, 0), device="0x2", kind="HtoD"),
        ]  # fmt: skip
    return [*entries, *_frame_of_recording(70_000)]


def _mtia() -> list[str]:
    main = (_HOST, _MAIN)
    return [
        _event("cpu_op", "aten::add", 1_000, 9_000, main, External__id=1),
        _event("mtia_runtime", "runFunction - job_prep_and_submit_for_execution", 3_000, 4_000, main, correlation=7),
        _event("mtia_ccp_events", "dma_request", 5_000, 2_000, (9, 801), direction="DEVICE_TO_HOST", size=16),
        _mark("f", "ac2g", "ac2g", 5_000, (9, 408), id=7, bp="e"),
        _event("cuda_profiler_range", "__profile__", 6_000, 500, (0, 3), smsp__inst_executed=123.5),
        _label((9, 0), "MTIA 9", "process_name"),
        _label((9, 801), "queue 801"),
        *_frame_of_recording(20_000),
    ]


def _compiled_cpu() -> list[str]:
    main = (_HOST, _MAIN)
    frames = ("gen.py(22): <module>", "torch/nn/modules/module.py(1775): _wrapped_call_impl", "<built-in method add>")
    python = [
        _event("python_function", frame, 100 * depth, 50_000 - 200 * depth, main, Python__id=depth + 1,
               Python__parent__id=depth or None, Ev__Idx=depth)
        for depth, frame in enumerate(frames)
    ]  # fmt: skip
    return [
        *python,
        _event("cpu_op", "TorchDynamo Cache Lookup", 1_000, 2_000, main, External__id=1),
        _event("cpu_op", "Torch-Compiled Region: 0/0", 3_500, 20_000, main, External__id=2),
        _event("cpu_op", "CompiledFunction", 4_000, 18_000, main, Sequence__number=0),
        _event("user_annotation", "## Call CompiledFxGraph fal4xpiah2v6blbf ##", 4_500, 17_000, main),
        _event("cpu_op", "aten::empty_strided", 5_000, 900, main, External__id=3),
        _event("cpu_op", "aten::view", 6_000, 400, main),
        _event("cpu_op", "aten::mm", 7_000, 9_000, main),
        _mark("i", "cpu_instant_event", "[memory]", 5_200, main, s="t", args={"Bytes": 64, "Addr": 1, "Device Id": -1}),
        _event("cpu_op", "autograd::engine::evaluate_function: CompiledFunctionBackward", 25_000, 12_000,
               (_HOST, _BACKWARD), Sequence__number=0),
        _event("cpu_op", "triton_poi_fused_add_0", 30_000, 2_000, (_HOST, _BACKWARD), stream=0, device=0),
        *_frame_of_recording(60_000),
    ]  # fmt: skip


def _graph() -> list[str]:
    main = (_HOST, _MAIN)
    kernels = [
        _event("kernel", f"triton_poi_fused_{number % 3}", 8_000 + 1_500 * number, 1_000, (1, 7 + number % 2),
               device=1, stream=7 + number % 2, correlation=55, graph__node__id=number)
        for number in range(10)
    ]  # fmt: skip
    return [
        _event("cpu_op", "aten::copy_", 500, 2_000, main),
        _event("cuda_runtime", "cudaGraphLaunch", 3_000, 4_000, main, correlation=55, cbid=311),
        *kernels,
        _event("cuda_runtime", "cudaLaunchKernel", 26_000, 800, main, correlation=56),
        *_frame_of_recording(30_000),
    ]


def _old() -> list[str]:
    main = (str(_HOST), f"{_MAIN}")
    entries = []
    for number in range(3):
        at = number * 9_000
        entries += [
            _event("Operator", "aten::conv2d", at, 6_000, main, Module__Hierarchy="", Call__stack="a.py(1): f;b.py(2): g"),
            _event("Runtime", "cudaLaunchKernel", at + 1_000, 700, main, cbid=211, correlation=538_860 + number,
                   external__id=number),
            _event("Kernel", "implicit_gemm", at + 3_000, 2_000, (0, "stream 7"), queued=0, device=0, stream=7,
                   correlation=538_860 + number, external__id=number, blocks__per__SM=0.8),
            _mark("f", "async_gpu", "cudaLaunchKernel", at + 3_000, (0, 7), id=number, bp="e"),
            _event("Memcpy", "Memcpy DtoD", at + 6_000, 10, (0, 7), external__id=number),
        ]  # fmt: skip
    return entries


def _other_phases() -> list[str]:
    main = (_HOST, _MAIN)
    return [
        _mark("B", "cpu_op", "aten::add", 0, main),
        _mark("E", "cpu_op", "aten::add", 900, main),
        _mark("X", "cpu_op", "no duration", 1_000, main),
        _mark("C", "", "counter", 1_500, main, args={"value": 1}),
        '  {"name": "no phase", "ts": 5}',
        _event("", "no category", 2_000, 500, main),
        _event("user_annotation", "[pl][profile]run_training_batch", 0, 9_000, main),
    ]
