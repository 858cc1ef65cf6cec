"""Times small calls bare and under torch.profiler, in turns, to learn what its events cost. Runs in the worker.

None of the calls is a scenario's, so that every scenario can check the correction. ``correction/fit.py`` interprets the rows.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity

from overhead_lens.correction.lru_stack import rms_stack_distance
from overhead_lens.errors import first_line
from overhead_lens.taxonomy import torch_names
from overhead_lens.torch_profiler import profiling
from overhead_lens.worker.loop import make_measured_loop
from overhead_lens.worker.session import Session, operation
from overhead_lens.worker.usage import fault_ns, threads_in_use, usage_of_thread

FLAGS: Mapping[str, Mapping[str, bool]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "stack": {"with_stack": True},
}

_CALLS = 1_000
_ROUNDS = 7

# Long calls are repeated less often.
_BACKWARD = "backward"
_VARIED = "varied"
_CALLS_OF = {_BACKWARD: 250, _VARIED: 60}

# Python events are recorded under these flags only, and the other two are needed under no more than these.
_ONLY_UNDER = {"python": "stack", _BACKWARD: "plain", _VARIED: "plain"}

# Bytes that a copy before the call reads and writes in all, to evict from the caches what a kernel would evict.
_DISPLACED_BYTES = (0, 1 << 19, 1 << 20, 1 << 21, 1 << 23)
_DISPLACED_FLAGS = "plain"
_DISPLACED_CALLS = 150

# Kinds of rows of calls that are also timed after a copy.
_DISPLACED = {
    ("operator", "neg 1"): "displaced_operator",
    ("operator", "mm"): "displaced_operator",
    ("operator", "stack"): "displaced_operator",
    ("compiled", "x * 2"): "displaced_compiled",
}

_DEVICE_CALLS = 300

# The names of operators that are also called alone: those after the first of ``_operators``.
_ALONE = ("view", "ones", "t", "detach", "empty_like", "clone", "mm", "stack", "split", "mean")

Call = Callable[[], object]
_Times = tuple[float, float]


@threads_in_use(1)
def costs_here(flags: Sequence[str], *, compiled: bool) -> dict[str, Any]:
    """Time every calibration call under each set of flags.

    On one thread: some calls would start two, and where those share a core, each call waits some ms for its scheduler.

    Returns:
        ``rows``: ``flags``, ``kind`` (``operator``, ``short_operator``, ``backward``, ``varied``, ``annotation``,
        ``fast_annotation``, ``compiled``, ``python``), ``name``, ``bare_ns`` and ``traced_ns`` (lists, ns per call),
        ``bare_faults`` and ``traced_faults`` (lists, page faults per call), ``fault_ns`` (of one page fault), ``outer`` and
        ``nested`` (operators per call, outside and inside of others), ``others`` (other events per call), ``evaluated``
        (those of them that are nodes of an autograd graph), ``rms_reuse_distance`` (``lru_stack.py``), ``span_ns`` (median
        by event name). Rows of the kinds ``displaced_operator`` and ``displaced_compiled``, timed after a copy, have
        ``bytes`` and ``copy_ns`` of the copy, ``bare_ns`` and ``traced_ns`` only. ``reasons``: why a kind is missing.
    """
    calls, reasons = _calls(compiled=compiled)
    of_fault_ns = fault_ns()
    rows: list[dict[str, Any]] = []
    for name in flags:
        for kind, label, call in calls:
            if _ONLY_UNDER.get(kind, name) == name:
                count = _CALLS_OF.get(kind, _CALLS)
                timed = partial(_timed, make_measured_loop(0), call, count)
                times = _row(timed, count, activities=[ProfilerActivity.CPU], **FLAGS[name])
                rows.append({"flags": name, "kind": kind, "name": label, "fault_ns": of_fault_ns, **times})
    if _DISPLACED_FLAGS in flags:
        rows += [
            {"flags": _DISPLACED_FLAGS, "kind": _DISPLACED[kind, label], "name": label, **_displaced_row(call, count)}
            for kind, label, call in calls
            if (kind, label) in _DISPLACED
            for count in _DISPLACED_BYTES
        ]
    return {"rows": rows, "reasons": reasons}


def _row(timed: Callable[[], _Times], calls: int, **profiler: Any) -> dict[str, Any]:
    bare, traced, recorded = _in_turns(timed, **profiler)
    return {
        "bare_ns": [ns for ns, _ in bare],
        "traced_ns": [ns for ns, _ in traced],
        "bare_faults": [faults for _, faults in bare],
        "traced_faults": [faults for _, faults in traced],
        **_counted(recorded, calls),
    }


def _in_turns(timed: Callable[[], _Times], **profiler: Any) -> tuple[list[_Times], list[_Times], Any]:
    """What was timed bare and recorded, by round, and the last recording; one round before them does not count."""
    timed()
    bare, traced = [], []
    for _ in range(_ROUNDS):
        bare.append(timed())
        with profiling(**profiler) as recorded:
            traced.append(timed())
    return bare, traced, recorded


def _device_rows() -> list[dict[str, Any]]:
    """Rows of calls of CUDA's runtime without an operator: a query, and the launch of a kernel that ends at once."""
    # Stream.query is a function of Python around it; no public function only launches.
    query, sleep = torch._C._CudaStreamBase.query, torch.cuda._sleep  # noqa: SLF001
    calls = {"device_call": partial(query, torch.cuda.current_stream()), "device_launch": partial(sleep, 0)}
    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    rows = {kind: _row(partial(_timed_on_device, call), _DEVICE_CALLS, activities=both) for kind, call in calls.items()}
    return [{"flags": "plain", "kind": kind, "name": kind, **row} for kind, row in rows.items()]


def _timed_on_device(call: Call) -> _Times:
    """As ``_timed``; the device is done then, so that its queue never fills."""
    times = _timed(make_measured_loop(0), call, _DEVICE_CALLS)
    torch.cuda.synchronize()
    return times


def _timed(loop: Any, call: Call, calls: int) -> _Times:
    """Ns and page faults per call."""
    faults, _ = usage_of_thread()
    # CPU time: none of the calls waits, and other load on the machine does not count.
    start_ns = time.thread_time_ns()
    loop(call, (), calls)
    taken_ns = time.thread_time_ns() - start_ns
    return taken_ns / calls, (usage_of_thread()[0] - faults) / calls


def _displaced_row(call: Call, count: int) -> dict[str, Any]:
    # Equal types, or assigning a slice would copy twice.
    source, target = bytearray(count // 2), bytearray(count // 2)

    def displace() -> None:
        target[:] = source

    timed = partial(_timed_apart, displace, call)
    bare, traced, _ = _in_turns(timed, activities=[ProfilerActivity.CPU], **FLAGS[_DISPLACED_FLAGS])
    return {
        "bytes": count,
        "copy_ns": min(copy_ns for _, copy_ns in bare),
        "bare_ns": [ns for ns, _ in bare],
        "traced_ns": [ns for ns, _ in traced],
    }


def _timed_apart(displace: Call, call: Call) -> _Times:
    """Median ns of a call after a displacement, and of a displacement."""
    calls_ns, copies_ns = [], []
    for _ in range(_DISPLACED_CALLS):
        start_ns = time.perf_counter_ns()
        displace()
        displaced_ns = time.perf_counter_ns()
        call()
        end_ns = time.perf_counter_ns()
        copies_ns.append(displaced_ns - start_ns)
        calls_ns.append(end_ns - displaced_ns)
    return statistics.median(calls_ns), statistics.median(copies_ns)


def _counted(recording: Any, calls: int) -> dict[str, Any]:
    """Events per call; an operator is nested where it starts before an earlier one has ended."""
    events = [
        (event.start_ns(), event.duration_ns(), event.name())
        for event in recording.profiler.kineto_results.events()
        if event.device_type() == torch.autograd.DeviceType.CPU
    ]
    outer = nested = 0
    end_ns = -1
    spans = defaultdict(list)
    for start_ns, duration_ns, name in sorted(events, key=lambda event: (event[0], -event[1])):
        spans[name].append(duration_ns)
        if not name.startswith(torch_names.OPERATOR_PREFIX):
            continue
        if start_ns < end_ns:
            nested += 1
        else:
            outer += 1
            end_ns = start_ns + duration_ns
    evaluated = sum(len(ns) for name, ns in spans.items() if name.startswith(torch_names.BACKWARD_NODE_PREFIX))
    return {
        "outer": outer / calls,
        "nested": nested / calls,
        "others": (len(events) - outer - nested) / calls,
        "evaluated": evaluated / calls,
        "rms_reuse_distance": rms_stack_distance([name for *_, name in sorted(events)]),
        "span_ns": {name: statistics.median(ns) for name, ns in spans.items() if len(ns) >= calls},
    }


def _calls(*, compiled: bool) -> tuple[list[tuple[str, str, Call]], dict[str, str]]:
    """Kind, name and call; and why a kind is missing."""
    vector, operators = torch.ones(8), _operators()
    resolve = torch.ops.aten.resolve_conj.default
    calls: list[tuple[str, str, Call]] = [
        # Does nothing, so its span is the profiler's part inside; its total is that of the slower path through torch.ops.
        ("short_operator", "resolve_conj", lambda: resolve(vector)),
        *(("operator", f"neg {count}", _in_a_row(operators[:1] * count)) for count in (1, 2, 4, 8)),
        *(("operator", name, call) for name, call in zip(_ALONE, operators[1:], strict=False)),
        *((_BACKWARD, f"chain of {count}", _chain(count)) for count in (1, 2, 4, 8)),
        *((_BACKWARD, f"{count} leaves", _leaves(count)) for count in (1, 4)),
        *((_VARIED, f"{count} operators", _in_a_row(operators[:count])) for count in (5, 10, 20, 30, 40, 50)),
        ("annotation", "record_function", _annotated_by(torch.profiler.record_function)),
        ("python", "functions", _outer),
        ("python", "builtin", lambda: len(())),
    ]
    reasons = {}
    fast = getattr(torch._C._profiler, "_RecordFunctionFast", None)  # noqa: SLF001 (what torch itself annotates with)
    if fast is not None:
        calls.append(("fast_annotation", "_RecordFunctionFast", _annotated_by(fast)))
    else:
        reasons["fast_annotation"] = "this torch has no _RecordFunctionFast"
    if compiled:
        double = torch.compile(lambda x: x * 2)
        try:
            double(vector)
            calls.append(("compiled", "x * 2", lambda: double(vector)))
        except Exception as error:
            reasons["compiled"] = first_line(error)
    return calls, reasons


def _in_a_row(operators: Sequence[Call]) -> Call:
    """A call of operators; many different ones push the profiler's code out of the caches."""

    def call() -> None:
        for operator in operators:
            operator()

    return call


def _chain(nodes: int) -> Call:
    """Backward pass of operators in a row."""
    leaf, one = torch.ones(8, requires_grad=True), torch.ones(8)
    output = leaf
    for _ in range(nodes):
        output = torch.neg(output)
    return lambda: torch.autograd.grad(output, leaf, one, retain_graph=True)


def _leaves(count: int) -> Call:
    """Backward pass of operators side by side, each of a leaf of its own."""
    leaves, one = [torch.ones(8, requires_grad=True) for _ in range(count)], torch.ones(8)
    outputs = [torch.neg(leaf) for leaf in leaves]
    return lambda: torch.autograd.backward(outputs, [one] * count, retain_graph=True)


def _operators() -> list[Call]:
    vector, matrix, places = torch.ones(8), torch.ones(4, 4), torch.tensor([0, 1])
    mask, row = vector > 0, torch.ones(4)
    return [
        vector.neg,
        lambda: matrix.view(16),
        lambda: torch.ones(3),
        matrix.t,
        vector.detach,
        lambda: torch.empty_like(vector),
        vector.clone,
        lambda: torch.mm(matrix, matrix),
        lambda: torch.stack([vector, vector]),
        lambda: torch.split(matrix, 1),
        matrix.mean,
        lambda: vector + vector,
        lambda: vector * 2,
        lambda: vector.add_(0),
        lambda: torch.addcmul(vector, vector, vector),
        vector.sqrt,
        vector.exp,
        vector.abs,
        lambda: vector.lerp(vector, 0.5),
        lambda: torch.addcdiv(vector, vector, vector),
        lambda: functional.layer_norm(matrix, (4,)),
        lambda: matrix.softmax(1),
        lambda: functional.gelu(matrix),
        lambda: functional.linear(matrix, matrix, row),
        lambda: torch.cat([matrix, matrix]),
        lambda: torch.where(mask, vector, vector),
        lambda: vector[places],
        vector.sum,
        lambda: matrix.max(1),
        matrix.argmax,
        vector.bfloat16,
        lambda: vector.unsqueeze(0).expand(4, 8),
        lambda: matrix.transpose(0, 1).contiguous(),
        lambda: torch.zeros(4),
        vector.double,
        vector[0].item,
        lambda: torch.bmm(matrix[None], matrix[None]),
        lambda: matrix.cumsum(0),
        lambda: vector.clamp(0, 1),
        lambda: torch.arange(4),
        lambda: matrix.sort(1),
        lambda: vector.pow(2),
        vector.sigmoid,
        vector.tanh,
        matrix.std,
        vector.relu,
        lambda: vector.repeat(2),
        lambda: vector.flip(0),
        matrix.triu,
        lambda: vector.masked_fill(mask, 0.0),
    ]


def _annotated_by(annotation: Any) -> Call:
    def annotated() -> None:
        with annotation("calibration"):
            pass

    return annotated


def _outer() -> None:
    _inner()


def _inner() -> None:
    pass


@operation
def measure_costs(_session: Session, flags: Sequence[str], *, compiled: bool, device: bool = False) -> dict[str, Any]:
    """Measure what torch.profiler's events cost, those of a device as well if requested."""
    # Whatever the scenario has set.
    with torch.inference_mode(mode=False), torch.enable_grad(), torch.device("cpu"):
        costs = costs_here(flags, compiled=compiled)
    if device:
        try:
            costs["rows"] += _device_rows()
        except (AttributeError, RuntimeError) as error:
            costs["reasons"]["device_launch"] = first_line(error)
    return costs
