"""Small traces of all kinds, ways of damaging them, and what must hold of any trace, damaged or not."""

from __future__ import annotations

import gzip
import json
import math
import re
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from overhead_lens.errors import OverheadLensError
from overhead_lens.readers.kineto import contents, read, stream
from overhead_lens.readers.kineto.model import Trace, frame_of
from overhead_lens.readers.kineto.source import opened
from overhead_lens.report.forms import to_json, to_text
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.job.ranks import Job
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.traces.pieces import pieces_of
from overhead_lens.traces.structure.compare import compare_structure
from tests.drawn.timelines import CLASSIFIER, timed
from tests.drawn.trace_text import Number, document

# ---------------------------------------------------------------- sound traces
_ORIGIN_NS = 1_782_345_678_901_234_567
_MAIN, _BACKWARD = (4711, 4711), (4711, 4799)


def _event(cat: str, name: str, start_ns: int, dur_ns: int, thread: tuple[Any, Any] = _MAIN, **args: Any) -> dict:
    return timed(_ORIGIN_NS + start_ns, dur_ns, name, cat, thread, **args)


def _mark(ph: str, cat: str, name: str, start_ns: int, thread: tuple[Any, Any] = _MAIN, **more: Any) -> dict:
    """An event of another phase."""
    at_ns = _ORIGIN_NS + start_ns
    ts = Number(f"{at_ns // 1000}.{at_ns % 1000:03d}")
    return {"ph": ph, "cat": cat, "name": name, "pid": thread[0], "tid": thread[1], "ts": ts, **more}


def _kernel(at_ns: int, number: int, name: str, stream: int = 7, thread: tuple[int, int] = _MAIN, **args: Any) -> list:
    """A runtime call, the driver call inside it, their flow, and the kernel, 2 us later."""
    return [
        _event("cuda_runtime", "cudaLaunchKernel", at_ns, 900, thread, cbid=211, correlation=number),
        _event("cuda_driver", "cuLaunchKernel", at_ns + 100, 700, thread, correlation=number),
        _mark("s", "ac2g", "ac2g", at_ns, thread, id=number),
        _event("kernel", name, at_ns + 2_000, 3_000, (0, stream), device=0, stream=stream, correlation=number, **args),
        _mark("f", "ac2g", "ac2g", at_ns + 2_000, (0, stream), id=number, bp="e"),
    ]


def _nvidia(steps: Sequence[int] = (1, 2, 3)) -> Iterator[dict]:
    group = {"Process Group Name": "0", "Process Group Ranks": [0, 1], "Collective name": "all_reduce"}
    for step in steps:
        at, first = step * 40_000, step * 100
        yield _event("user_annotation", f"ProfilerStep#{step}", at, 38_000)
        yield _event("cpu_op", "aten::linear", at + 500, 8_000, Sequence__number=step, Input__Dims=[[32, 32], []])
        yield _event("cpu_op", "aten::addmm", at + 1_200, 7_000)
        yield from _kernel(at + 2_000, first + 4, "sm90_xmma_gemm_f32f32", grid=[64, 1, 1])
        yield _mark("s", "fwdbwd", "fwdbwd", at + 500, id=step)
        node = "autograd::engine::evaluate_function: AddmmBackward0"
        yield _event("cpu_op", node, at + 10_000, 9_000, _BACKWARD, Sequence__number=step, Fwd__thread__id=1)
        yield _event("cpu_op", "aten::mm", at + 10_400, 6_000, _BACKWARD)
        yield _mark("f", "fwdbwd", "fwdbwd", at + 10_200, _BACKWARD, id=step, bp="e")
        yield from _kernel(at + 11_000, first + 7, "sm90_xmma_gemm_f32f32_nn", thread=_BACKWARD)
        yield _event("user_annotation", "nccl:all_reduce", at + 21_500, 2_000)
        yield from _kernel(at + 22_000, first + 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", 20, **group)
        yield _event("cuda_runtime", "cudaMemcpyAsync", at + 26_000, 1_500, correlation=first + 8)
        copy = {"device": 0, "stream": 7, "correlation": first + 8, "bytes": 4096}
        yield _event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", at + 27_000, 900, (0, 7), **copy)
        yield _event("gpu_memset", "Memset (Device)", at + 28_500, 100, (0, 7), device=0, stream=7, correlation=-1)
        yield _event("cuda_runtime", "cudaDeviceSynchronize", at + 29_000, 4_000, correlation=first + 9)
        yield _event("cuda_sync", "Context Sync", at + 29_100, 3_900, (0, 7), stream=-1, correlation=first + 9)
        yield _event("gpu_user_annotation", f"ProfilerStep#{step}", at + 4_000, 25_000, (0, 7))
        yield _event("overhead", "Buffer Flush", at + 34_000, 300, (-1, 0))
        memory = {"Total Reserved": 0, "Bytes": 512, "Addr": 140255988547584, "Device Id": 0, "Device Type": 1}
        yield _mark("i", "cpu_instant_event", "[memory]", at + 1_300, s="t", args=memory)


def _other_devices() -> Iterator[dict]:
    for number in range(4):
        at, launch = 1_000 + number * 12_000, {"correlation": number + 100, "External id": number}
        yield _event("cpu_op", "aten::mul", at, 9_000, Ev__Idx=number)
        yield _event("cuda_runtime", "hipLaunchKernel", at + 2_000, 4_000, stream="0x0", kernel="elementwise", **launch)
        yield _event("kernel", "elementwise<128>", at + 7_000, 2_500, (2, 0), device=2, stream="0x1f", **launch)
        yield _event("gpu_memcpy", "Memcpy HtoD", at + 9_600, 20, (2, 0), device="0x2", kind="HtoD")
    yield _event("mtia_runtime", "runFunction - job_prep_and_submit_for_execution", 53_000, 4_000, correlation=7)
    yield _event("mtia_ccp_events", "dma_request", 55_000, 2_000, (9, 801), direction="DEVICE_TO_HOST", size=16)
    yield _event("cuda_profiler_range", "__profile__", 56_000, 500, (0, 3), smsp__inst_executed=123.5)


def _compiled() -> Iterator[dict]:
    frames = ("gen.py(22): <module>", "torch/nn/modules/module.py(1775): _call_impl", "<built-in method add>")
    for depth, frame in enumerate(frames):
        parents = {"Python id": depth + 1, "Python parent id": depth or None}
        yield _event("python_function", frame, 100 * depth, 50_000 - 200 * depth, **parents)
    yield _event("cpu_op", "TorchDynamo Cache Lookup", 1_000, 2_000)
    yield _event("cpu_op", "Torch-Compiled Region: 0/0", 3_500, 20_000)
    yield _event("cpu_op", "CompiledFunction", 4_000, 18_000, Sequence__number=0)
    yield _event("user_annotation", "## Call CompiledFxGraph fal4xpiah2v6blbf ##", 4_500, 17_000)
    yield _event("cpu_op", "aten::empty_strided", 5_000, 900)
    yield _event("cpu_op", "aten::mm", 7_000, 9_000)
    allocated = {"Bytes": 64, "Addr": 1, "Device Id": -1}
    yield _mark("i", "cpu_instant_event", "[memory]", 5_200, s="t", args=allocated)
    node = "autograd::engine::evaluate_function: CompiledFunctionBackward"
    yield _event("cpu_op", node, 25_000, 12_000, _BACKWARD, Sequence__number=0)
    yield _event("Trace", "PyTorch Profiler (0)", 0, 60_000, ("Spans", "PyTorch Profiler"), Op__count=0)
    yield {"name": "thread_name", "ph": "M", "ts": 0.0, "pid": 4711, "tid": 4711, "args": {"name": "thread (python3)"}}


def _graph() -> Iterator[dict]:
    yield _event("cuda_runtime", "cudaGraphLaunch", 3_000, 4_000, correlation=55, cbid=311)
    for number in range(10):
        place = {"device": 1, "stream": 7 + number % 2, "correlation": 55, "graph node id": number}
        yield _event("kernel", f"triton_{number % 3}", 8_000 + 1_500 * number, 1_000, (1, 7 + number % 2), **place)
    yield _event("cuda_runtime", "cudaLaunchKernel", 26_000, 800, correlation=56)


def _old() -> Iterator[dict]:
    for number in range(3):
        at, launch = number * 9_000, {"correlation": 538_860 + number, "external id": number}
        yield _event("Operator", "aten::conv2d", at, 6_000, ("4711", "4711"), Call__stack="a.py(1): f;b.py(2): g")
        yield _event("Runtime", "cudaLaunchKernel", at + 1_000, 700, ("4711", "4711"), cbid=211, **launch)
        yield _event("Kernel", "implicit_gemm", at + 3_000, 2_000, (0, "stream 7"), device=0, stream=7, **launch)
        yield _event("Memcpy", "Memcpy DtoD", at + 6_000, 10, (0, 7), external__id=number)


def _other_phases() -> Iterator[dict]:
    yield _mark("B", "cpu_op", "aten::add", 0)
    yield _mark("E", "cpu_op", "aten::add", 900)
    yield _mark("X", "cpu_op", "no duration", 1_000)
    yield _mark("C", "", "counter", 1_500, args={"value": 1})
    yield {"name": "no phase", "ts": 5}
    yield _event("", "no category", 2_000, 500)
    yield _event("user_annotation", "[pl][profile]run_training_batch", 0, 9_000)


_JOB = {"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}, "baseTimeNanoseconds": 0}
SEEDS = {
    "nvidia": document([*_nvidia()], deviceProperties=[{"id": 0, "name": "NVIDIA H100"}], **_JOB).encode(),
    "nvidia-compact": document([*_nvidia([5])], compact=True).encode(),
    "other-devices": document([*_other_devices()], baseTimeNanoseconds=1_700_000_000_000_000_000).encode(),
    "compiled": document([*_compiled()], with_stack=1, profile_memory=1, record_shapes=1).encode(),
    "graph": document([*_graph()], **_JOB).encode(),
    "old": document([*_old()]).encode(),
    "bare-list": json.dumps([*map(dict, _compiled())]).encode(),
    "other-phases": document([*_other_phases()]).encode(),
}

# ---------------------------------------------------------------- damage
_KEYS = (
    "ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "correlation", "Sequence number", "device", "stream",
    "External id", "external id", "traceEvents", "distributedInfo", "rank", "deviceProperties", "baseTimeNanoseconds",
    "with_stack", "Process Group Name", "Process Group Ranks", "Collective name", "schemaVersion", "",
)  # fmt: skip
_NUMBERS = (
    "0", "-0", "-0.0", "1", "-1", "1e400000", "-1e9999999", "1e308", "1e309", "5e-324", "1E+3", "1e99999999999999999999",
    "NaN", "-NaN", "Infinity", "-Infinity", "2147483648", "4294967296", "9007199254740993", "9223372036854775807",
    "9223372036854775808", "-9223372036854775809", "18446744073709551616", "9223372036854775.807", "9223372036854775.808",
    "-9223372036854775.808", "4611686018427387.904", "-4611686018427388", "1782345678901234.567", "0.0009999", ".5", "5.",
    "01", "0x10", "0b1", "1_000", "+1", "--1", "-", "1.2.3", "1e", "1e+", "true", "false", "null", "9" * 5_000, "1" * 70_000,
)  # fmt: skip
_NAMES = (
    "", "\\u0000", "\\ud800", "\\udc00\\ud800", "\\ud83d\\ude00", "\\/", "\\x", "\\", "\\u12", "\x00", "\n", "\xff\xfe",
    "[red]x[/red]", "[/]", "[bold", "</script>", "{n}", "%s", "\u0663", "\u6f22\u5b57" * 40, "a" * 70_000, "ProfilerStep#0",
    "ProfilerStep#-1", "ProfilerStep#\u0663", "ProfilerStep#" + "9" * 5_000, "ProfilerStep#1", "cudaLaunchKernel",
    "cudaGraphLaunch", "ncclDevKernel_AllReduce", "Torch-Compiled Region: 0/0", "CompiledFunction", "aten::view", "cudaMalloc",
    "autograd::engine::evaluate_function: X", "cudaDeviceSynchronize", "thread_name", "process_name", "kernel", "gpu_memcpy",
    "cpu_op", "Operator", "cuda_runtime", "cuda_driver", "python_function", "user_annotation", "cuda_sync", "Trace", "X", "M",
    "B", "E", "i", "s", "f", "C", "traceEvents", "0xffffffffffffffff", "0xg", "-0x1", "007", "1e3", "stream 7", "-1", "\u00b2",
)  # fmt: skip
_SHAPES = (
    "[]", "{}", "[[]]", "[{}]", '{"a": 1}', "[1, 2", "{", "}", "[", "]", ",", ":", '"', '"open', '{"args": {}}',
    '{"traceEvents": []}', '[{"ph": "X"}]', '{"name": {"name": []}}', "\ufeff", "//x\n", "undefined", "'x'",
    "[" * 50 + "]" * 50, '{"a":' * 70 + "1" + "}" * 70, "[" * 3_000 + "]" * 3_000, '{"a":' * 2_000,
)  # fmt: skip
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[-+\w.]+|[][{}:,]')
_VALUE = re.compile(rb'("(?:[^"\\]|\\.)*"\s*:\s*)("(?:[^"\\]|\\.)*"|[-+\w.]+)')
_FIELD = re.compile(rb'"(?:[^"\\]|\\.)*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[-+\w.]+|\[[^][{}"]*\]|\{\})\s*,?')
_ENTRY = re.compile(rb'\{\s*"(?:ph|name|args)"')
_MOST_BYTES = 128 << 10


def damaged(random: Random) -> tuple[bytes, list[str]]:
    """A damaged trace, and what was done to it."""
    data, done = random.choice([*SEEDS.values()]), []
    while not done or (random.random() < 0.6 and len(data) < _MOST_BYTES):
        damage = _replace_value if random.random() < 0.3 else random.choice(DAMAGES)
        done.append(damage.__name__)
        data = damage(random, data)[:_MOST_BYTES]
    if random.random() < 0.1:
        done.append(_pack.__name__)
        data = _pack(random, data)
    return data, done


def _odd(random: Random) -> bytes:
    """A value that no exporter, or hardly any, writes in this place."""
    kind = random.random()
    if kind < 0.45:
        value = random.choice(_NUMBERS)
        value = f'"{value}"' if random.random() < 0.25 else value
    else:
        value = f'"{random.choice(_NAMES)}"' if kind < 0.85 else random.choice(_SHAPES)
    return value.encode("utf-8" if random.random() < 0.97 else "utf-16", "surrogatepass")


def _span(random: Random, pattern: re.Pattern[bytes], data: bytes) -> tuple[int, int]:
    """Where a match of the pattern begins and ends; nothing at the end for none."""
    match = pattern.search(data, random.randrange(len(data) + 1)) or pattern.search(data)
    return match.span() if match else (len(data), len(data))


def _entries(random: Random, data: bytes) -> tuple[int, int]:
    """From the begin of one entry to the begin of a later one."""
    starts = [match.start() for match in _ENTRY.finditer(data)] or [len(data)]
    first = random.randrange(len(starts))
    return starts[first], starts[min(first + random.choice((1, 1, 2, 8)), len(starts) - 1)]


def _replace_value(random: Random, data: bytes) -> bytes:
    """The value of a key that means something to the reader, once or nearly everywhere."""
    key = re.escape(random.choice(_KEYS).encode())
    pattern = re.compile(rb'("%s"\s*:\s*)("(?:[^"\\]|\\.)*"|[-+\w.]+)' % key)
    matches = [*pattern.finditer(data)]
    if not matches:
        return data
    if random.random() < 0.7:
        match = random.choice(matches)
        return data[: match.start(2)] + _odd(random) + data[match.end(2) :]
    share, few = random.choice((0.2, 0.5, 1.0)), [_odd(random) for _ in range(random.choice((1, 1, 3)))]
    return pattern.sub(lambda each: each[1] + random.choice(few) if random.random() < share else each[0], data)


def _swap_values(random: Random, data: bytes) -> bytes:
    values = [*_VALUE.finditer(data)]
    if len(values) < 2:
        return data
    one, other = sorted(random.sample(values, 2), key=re.Match.start)
    return data[: one.start(2)] + other[2] + data[one.end(2) : other.start(2)] + one[2] + data[other.end(2) :]


def _change_token(random: Random, data: bytes) -> bytes:
    """Another one, none, several, or the same with blanks around it."""
    begin, end = _span(random, _TOKEN, data)
    blank = random.choice((b" ", b"\r\n", b"\x0b", b"\xc2\xa0", b" " * 5_000))
    token = data[begin:end]
    changed = (_odd(random), b"", token * random.choice((2, 3, 100)), blank + token + blank)
    return data[:begin] + random.choice(changed) + data[end:]


def _change_field(random: Random, data: bytes) -> bytes:
    """None, twice, twice with other values, or under another key."""
    begin, end = _span(random, _FIELD, data)
    field = data[begin:end]
    key, colon, value = field.partition(b":")
    name = random.choice(_KEYS if random.random() < 0.8 else _NAMES).encode("utf-8", "surrogatepass")
    changed = (b"", field * 2, key + colon + _odd(random) + b"," + field, b'"' + name + b'"' + colon + value)
    return data[:begin] + random.choice(changed) + data[end:]


def _change_entries(random: Random, data: bytes) -> bytes:
    """None, several times, elsewhere, or some of another trace before them."""
    begin, end = _entries(random, data)
    rest, at = data[:begin] + data[end:], _entries(random, data[:begin] + data[end:])[0]
    other = random.choice([*SEEDS.values()])
    other_begin, other_end = _entries(random, other)
    several = data[:end] + data[begin:end] * random.choice((1, 2, 5)) + data[end:]
    moved, spliced = rest[:at] + data[begin:end] + rest[at:], data[:begin] + other[other_begin:other_end] + data[begin:]
    return random.choice((rest, several, moved, spliced))


def _cut(random: Random, data: bytes) -> bytes:
    """Its head, its tail, or its head and another's tail."""
    at, other = random.randrange(len(data) + 1), random.choice([*SEEDS.values()])
    return random.choice((data[:at], data[at:], data[:at] + other[random.randrange(len(other)) :]))


def _flip_bits(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8, 64)) if data else 0):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _change_bytes(random: Random, data: bytes) -> bytes:
    """Some more, some fewer, or some again."""
    at, size = random.randrange(len(data) + 1), random.choice((1, 2, 9, 40, 300))
    new = bytes(random.choice(b'{}[]:,"\\ \n\x00\x1f\x80\xc3\xed\xff-+.e0nX') for _ in range(random.choice((1, 2, 8))))
    again = data[:at] + data[at : at + size] * random.choice((2, 3, 20)) + data[at + size :]
    return random.choice(
        (data[:at] + new + data[at + random.choice((0, 1, 9)) :], data[:at] + data[at + size :], again)
    )


def _encode(random: Random, data: bytes) -> bytes:
    if random.random() < 0.5:
        return b"\xef\xbb\xbf" + data + random.choice((b"", b"\x00" * 9, b"]", b"garbage", b',{"ph": "X"}'))
    return data.decode("utf-8", "replace").encode(random.choice(("utf-16", "utf-32", "latin-1", "utf-7")), "replace")


DAMAGES: tuple[Callable[[Random, bytes], bytes], ...] = (
    _replace_value, _swap_values, _change_token, _change_field, _change_entries, _cut, _flip_bits, _change_bytes, _encode,
)  # fmt: skip


def _pack(random: Random, data: bytes) -> bytes:
    """Compressed: whole, twice, in two parts with something between them, or damaged afterwards."""
    at, whole = random.randrange(len(data) + 1), gzip.compress(data, mtime=0)
    between = random.choice((b"", b"", bytes(700), b"\x1f\x8b", b"x"))
    parts = gzip.compress(data[:at], mtime=0) + between + gzip.compress(data[at:], mtime=0)
    harm = random.choice((_flip_bits, _cut, _change_bytes))
    return random.choice((whole, gzip.compress(whole, mtime=0), parts, harm(random, whole)))


# ---------------------------------------------------------------- what must hold
class BrokenPromiseError(Exception):
    """A result that contradicts itself or another one."""


def checked(path: Path, block_bytes: int, *, whole_report: bool = True) -> TraceAnalysis | None:
    """The analysis of a file, of which the commands' report, pieces and structure are made, too; None where it is refused.

    Raises:
        Exception: The trace breaks the reader or the analysis.
    """
    with warnings.catch_warnings(), _at_most(20):
        warnings.simplefilter("error")
        whole, scanned = _read(path), _scanned(path, block_bytes)
        if _is_comparable(path):
            check_same(whole, scanned)
        if whole is None:
            return None
        try:
            analyzer = Analyzer(whole, CLASSIFIER)
            analysis = analyzer.analysis()
        except OverheadLensError:
            return None
        check_numbers(json.loads(to_json(analysis)))
        if whole_report:
            pieces_of(analyzer)
            to_text(analysis, whole=True)
            check_numbers(json.loads(to_json(Job.of([analysis, analysis]))))
            if not compare_structure(analyzer, analyzer).is_same:
                raise BrokenPromiseError("a trace differs in structure from itself")
        return analysis


def _read(path: Path) -> Trace | None:
    try:
        return read.read_trace(path)
    except OverheadLensError as error:
        if "\n" in str(error):
            raise BrokenPromiseError("a message has more than one line") from None
        return None


def _scanned(path: Path, block_bytes: int) -> Trace | None:
    """The same by the scanner, in small blocks."""
    with (
        mock.patch.object(contents, "SMALL_BYTES", 1),
        mock.patch.object(contents, "UNCOMPILED_BYTES", 1),
        mock.patch.object(stream, "_BLOCK_BYTES", block_bytes),
        mock.patch.object(stream, "_ROOM_BYTES", 16),
    ):
        return _read(path)


def _is_comparable(path: Path) -> bool:
    """Whether both ways of reading must say the same.

    How much is read of damaged compressed data depends on how much is asked for at a time. Of several ``traceEvents`` the
    scanner takes the first list, and it does not know the key with an escape in it.
    """
    text, block = bytearray(), bytearray(1 << 16)
    with opened(path) as source:
        while size := source.fill(memoryview(block)):
            text += block[:size]
        is_list = text.lstrip().startswith(b"[")
        return not source.broken and (text.count(b'"traceEvents"') == 1 or (is_list and b"traceEvents" not in text))


def check_same(whole: Trace | None, scanned: Trace | None) -> None:
    """Hold what both ways of reading say against each other."""
    if whole is None or scanned is None:
        if whole is not scanned:
            raise BrokenPromiseError("one way of reading refuses what the other reads")
        return
    for one, other in ((whole.events, scanned.events), (frame_of(whole.memory), frame_of(scanned.memory))):
        for name in one.columns:
            if one[name].to_numpy().tolist() != other[name].to_numpy().tolist():
                raise BrokenPromiseError(f"the two ways of reading differ in column {name}")
    for name in ("event_count", "raw_bytes", "issues", "thread_names", "metadata"):
        one, other = (
            sorted(value.items()) if isinstance(value := getattr(trace, name), dict) else value
            for trace in (whole, scanned)
        )
        if repr(one) != repr(other):
            raise BrokenPromiseError(f"the two ways of reading differ in {name}")
    rows = range(len(whole.events))
    if repr(whole.arguments(rows)) != repr(scanned.arguments(rows)):
        raise BrokenPromiseError("the two ways of reading differ in arguments")


def check_numbers(value: Any, *keys: str) -> None:
    """No number of a document is infinite, none or, if it is a time or a count, negative."""
    key = keys[-1] if keys else ""
    if isinstance(value, dict):
        for name, inner in value.items():
            check_numbers(inner, *keys, name)
    elif isinstance(value, list):
        for inner in value:
            check_numbers(inner, *keys)
    elif isinstance(value, float) and not math.isfinite(value):
        raise BrokenPromiseError(f"{key} is {value}")
    elif isinstance(value, (int, float)) and value < 0 and (key.endswith("ns") or key in {"events", "share", "count"}):
        # Times count from the first event, which an allocation or a value of a counter may come before.
        if not ({"memory", "counters"} & {*keys} and key in {"start_ns", "peak_ns"}):
            raise BrokenPromiseError(f"{key} is negative")


@contextmanager
def _at_most(limit_s: float) -> Iterator[None]:
    """Raise ``TimeoutError`` in what takes more processor time."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"more than {limit_s} s of processor time")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
