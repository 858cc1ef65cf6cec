"""Findings about the host's own work: loading data, compiling, capturing, allocating, optimizer steps, Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from overhead_lens.stats.values import Bools, Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.taxonomy.categories import BLAME
from overhead_lens.taxonomy.rules import Attribution
from overhead_lens.traces.columns import passing, where
from overhead_lens.traces.device import DeviceTimeline
from overhead_lens.traces.findings.model import Evidence
from overhead_lens.traces.findings.recorded import LONG, Located, Recorded, Wording, idle_by
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.host_budget import ENGINE, ThreadPieces
from overhead_lens.traces.intervals import NOTHING, Union, both, distinct_values, joined, union, without
from overhead_lens.traces.launch_figures.analysis import NOT_THE_HOST

_FUSED = re.compile(r"aten::_(foreach|fused)_")
_BACKWARD = re.compile(r"backward", re.IGNORECASE)
_BINDING = Attribution("python", "binding")
_RUNTIME = (Attribution("python", "compiled_runtime"), Attribution("guard"))
_OWN_PYTHON = frozenset({"user", "library", "extension", "gc", "import"})
_FUSED_OPERATORS = 20
_LEAST_USUAL_NS = 1_000

_DATA = Wording(
    "data_loading",
    "wait",
    "the loop waits for its next batch, or makes it itself",
    "more workers, persistent_workers=True, pin_memory=True, a larger prefetch_factor; cheaper transforms, or on the device",
)
_COMPILE = Wording(
    "compilation",
    "compile",
    "functions are compiled within the recording",
    "warm up before recording; if it goes on: TORCH_LOGS=recompiles says why, mark_dynamic and fewer graph breaks help",
)
_CAPTURE = Wording(
    "graph_capture",
    "launch",
    "a graph is captured and instantiated, so that nothing that is launched runs",
    "nothing, if it is captured once and replayed: record the replays",
)
_MEMORY = Wording(
    "driver_allocations",
    "allocation",
    "memory is got from the driver, or given back to it, within the recording",
    "warm up before measuring; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; no empty_cache() within a step",
)
_GROWTH = Wording(
    "memory_growth",
    "allocation",
    "live memory grows from step to step, and the driver allocates more",
    "release what is kept: losses and outputs that hold their graph (loss.item(), detach()), lists that grow",
)
_LAUNCHES = Wording(
    "slow_launches",
    "launch",
    "some calls to the driver hold the host far longer than it takes to launch",
    "warm up before recording (first calls set up the device and load code); a full queue holds launches back as well",
)
_WITHOUT_COUNTERS = "record without the counters of cuda_profiler_range: collecting them holds each launch back"
_UNFUSED = Wording(
    "unfused_optimizer",
    "dispatcher",
    "the optimizer runs several small operators for each parameter",
    "fused=True of the optimizer (Adam, AdamW, SGD, Adagrad), or foreach=True",
)
_COMPILED = Wording(
    "compiled_runtime",
    "python",
    "compiled code is called so often that guards, wrappers and checks around its kernels take this time",
    "larger graphs without breaks, torch._inductor.config.cpp_wrapper = True, fewer guards (guard_filter_fn)",
)
_PYTHON = Wording(
    "host_python",
    "python",
    "the host works in Python and launches nothing meanwhile",
    "find the functions (with_stack=True names them): do less of it, or do it in another process",
)
_WORK = Wording(
    "host_work",
    "dispatcher",
    "the host works on its own and launches nothing meanwhile",
    "do it on the device, or while the device has work queued",
)
_PREPARATION = Wording(
    "slow_preparation",
    "dispatcher",
    "first calls of operators that launch take far longer than usual",
    "warm up before recording: libraries such as cuBLAS and cuDNN set themselves up, and choose algorithms, in their first calls",
)
_STARVED = Wording(
    "starved_backward",
    "dispatcher",
    "the thread of the backward pass does not get on between two of its nodes",
    "threads that hold the interpreter's lock meanwhile: move them to processes; no Python hooks in backward",
)


def host_causes(recorded: Recorded) -> Iterator[Located]:
    """Known host activities other than launching, as intervals."""
    for finder in (_loading, _compiling, _capturing, _memory, _slow_launches, _optimizer, _starved):
        yield from finder(recorded)


def _loading(recorded: Recorded) -> Iterator[Located]:
    """Time in which a thread waited for the next batch of a DataLoader, or made it itself."""
    calls = recorded.calls(passing(recorded.host.names, torch_names.LOADS_DATA.match))
    yield from _stretches(recorded, _DATA, calls, recorded.spans(calls))


def _compiling(recorded: Recorded) -> Iterator[Located]:
    """Time in which any thread compiled."""
    compiling = [thread for thread in recorded.threads.values() if thread.attributed(_compiles).any()]
    yield from _in_frames(recorded, _COMPILE, recorded.spent(_compiles), compiling)


def _compiles(attribution: Attribution) -> bool:
    return attribution.category == "compile"


def _capturing(recorded: Recorded) -> Iterator[Located]:
    """Time from the call that begins a capture to the end of the next that ends one on its thread, and of instantiation."""
    host = recorded.host
    begins, ends, built = (
        recorded.calls(passing(host.names, marks.match))
        for marks in (torch_names.BEGINS_CAPTURE, torch_names.ENDS_CAPTURE, torch_names.INSTANTIATES)
    )
    pairs = [*zip(host.start_ns[built].tolist(), (host.start_ns + host.dur_ns)[built].tolist(), strict=True)]
    for begin in begins.tolist():
        after = ends[(host.thread[ends] == host.thread[begin]) & (host.start_ns[ends] >= host.start_ns[begin])]
        if len(after):
            end = int(after[np.argmin(host.start_ns[after])])
            pairs.append((int(host.start_ns[begin]), int(host.start_ns[end] + host.dur_ns[end])))
    starts, until = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    yield from _stretches(recorded, _CAPTURE, np.append(begins, built), union(starts, until - starts))


def _memory(recorded: Recorded) -> Iterator[Located]:
    """Time of the calls that get memory from the driver or give it back, most of which wait for the device."""
    calls = recorded.calls(passing(recorded.host.names, torch_names.DRIVER_ALLOCATION.match))
    if not len(calls):
        return
    when = recorded.spans(calls)
    longest = int(calls[np.argmax(recorded.host.dur_ns[calls])])
    named, place = recorded.of_calls(calls, recorded.host.dur_ns[calls]), recorded.place(longest)
    growing = [memory for memory in recorded.memory if memory.grows and memory.device != "cpu"]
    if growing and growing[0].kept:
        holder = growing[0].kept[0]
        named = (*named, Evidence(holder.operator, holder.blocks, 0, holder.module, holder.line))
        place = (holder.module, holder.line)
    yield from recorded.located(_GROWTH if growing else _MEMORY, recorded.at_most(when), when, named, place)


def _slow_launches(recorded: Recorded) -> Iterator[Located]:
    """Time beyond the median of launching calls that take at least ``LONG`` times the median; of graphs' launches beyond theirs.

    MTIA's runtime also records whole parts of a program: what holds operators or annotations is not a call. A copy whose device
    event was not recorded may itself take as long.
    """
    host = recorded.host
    launches = passing(host.attributions, lambda each: each.category == "launch")[host.attribution]
    ends_ns = host.start_ns + host.dur_ns
    launches &= ~passing(host.names, torch_names.INSTANTIATES.match)[host.name]
    launches &= ~passing(host.names, torch_names.ANY_COPY.search)[host.name] | (recorded.launched[host.rows] >= 0)
    calls = np.flatnonzero(launches & host.runtime & (host.dur_ns > 0) & (recorded.waits_from_ns >= ends_ns))
    if not len(calls):
        return
    of_graph = passing(host.names, lambda name: torch_names.GRAPH_LAUNCH in name)[host.name[calls]]
    usual_ns = np.full(len(calls), _LEAST_USUAL_NS)
    for alike in (of_graph, ~of_graph):
        if alike.any():
            usual_ns[alike] = max(_LEAST_USUAL_NS, np.percentile(host.dur_ns[calls[alike]], 50, method="lower"))
    slow = np.flatnonzero(host.dur_ns[calls] >= LONG * usual_ns)
    slow = slow[~_holds_others(recorded, calls[slow])]
    if not len(slow):
        return
    slow, usual_ns = calls[slow], usual_ns[slow]
    beyond_ns = host.dur_ns[slow] - usual_ns
    when = union(host.start_ns[slow] + usual_ns, beyond_ns)
    longest = int(slow[np.argmax(beyond_ns)])
    named = recorded.of_calls(slow, beyond_ns)
    has_counters = where(recorded.events["cat"], torch_names.PROFILER_RANGE.__eq__).any()
    wording = replace(_LAUNCHES, remedy=_WITHOUT_COUNTERS) if has_counters else _LAUNCHES
    yield from recorded.located(wording, recorded.at_most(when), when, named, recorded.place(longest))


def _holds_others(recorded: Recorded, calls: Ints) -> Bools:
    """Whether an operator or annotation begins within each call, on its thread."""
    host = recorded.host
    ends_ns, holds = host.start_ns[calls] + host.dur_ns[calls], np.zeros(len(calls), dtype=bool)
    for thread in distinct_values(host.thread[calls]).tolist():
        mine = host.around.threads[thread]
        others = np.sort(host.start_ns[mine[host.operator[mine] | host.annotation[mine]]])
        begun = np.searchsorted(others, host.start_ns[calls], "right") < np.searchsorted(others, ends_ns, "left")
        holds |= begun & (host.thread[calls] == thread)
    return holds


def _optimizer(recorded: Recorded) -> Iterator[Located]:
    """Time of steps of an optimizer that runs operator by operator, less what is estimated to be kernels on the host."""
    host = recorded.host
    steps = recorded.calls(passing(host.names, torch_names.PLAIN_OPTIMIZER_STEP.match))
    if not len(steps):
        return
    when = recorded.spans(steps)
    inside = np.flatnonzero(host.operator & when.holds(host.start_ns) & np.isin(host.thread, host.thread[steps]))
    fused = passing(host.names, _FUSED.match)[host.name[inside]]
    if fused.any() or len(inside) <= _FUSED_OPERATORS * len(steps):
        return
    kernels_ns = int(recorded.kernel_ns[inside].sum())
    named = recorded.frames(when, _threads_of(recorded, steps))
    bound_ns = min(recorded.at_most(when), when.total_ns - kernels_ns)
    place = recorded.place(int(steps[np.argmax(host.dur_ns[steps])]))
    yield from recorded.located(_UNFUSED, bound_ns, when, named, place)


def _starved(recorded: Recorded) -> Iterator[Located]:
    """Time of a backward pass between two nodes, in gaps of ``LONG`` times the median, in which no device works either."""
    long = [NOTHING]
    for thread in recorded.threads.values():
        gaps = np.flatnonzero(passing(thread.names, ENGINE.__eq__)[thread.name])
        if len(gaps):
            gaps = gaps[thread.dur_ns[gaps] >= LONG * np.percentile(thread.dur_ns[gaps], 50, method="lower")]
            long.append(union(thread.start_ns[gaps], thread.dur_ns[gaps]))
    when = without(joined(long), joined([device.busy for device in recorded.devices]))
    others = [thread for thread in recorded.threads.values() if not thread.timeline.is_autograd]
    yield from _in_frames(recorded, _STARVED, when, others, place=("", ""))


def long_host_work(recorded: Recorded, known: Union) -> Iterator[Located]:
    """Time in which the host worked on its own, beyond ``known``.

    With a device: idle time of the window while its host launched nothing for ``LONG`` times the median interval between two
    launches, and no wait is to blame; it is preparation if first calls of operators that launch take most of it. Without: what
    the busiest thread spends around the kernels of compiled code, and in Python other than torch's.
    """
    for device in recorded.devices:
        when = long_intervals(recorded, device, known)
        if when.total_ns:
            threads = launching(recorded, device)
            by = {name: both(when, idle_by(device, (name,), inside=False)).total_ns for name in BLAME}
            wording = _PYTHON if max(by, key=lambda name: by[name]) == "python" else _WORK
            if 2 * both(when, _preparing(recorded.host, threads)).total_ns > when.total_ns:
                wording = _PREPARATION
            named = recorded.frames(when, threads)
            yield from recorded.located(wording, when.total_ns, when, named, _place_of(named), str(device.number))
    if not recorded.devices and recorded.threads and (recorded.host.operator | recorded.host.runtime).any():
        busiest = next(iter(recorded.threads.values()))
        python = busiest.attributed(lambda each: each.category == "python" and each.part in _OWN_PYTHON)
        # A backward pass that is missing from the trace ran on a thread that is missing too.
        elsewhere = recorded.host.annotation[busiest.timeline.events[busiest.owner]] & (busiest.owner >= 0)
        elsewhere &= passing(busiest.names, _BACKWARD.search)[busiest.name]
        python &= ~elsewhere
        when = without(union(busiest.start_ns[python], busiest.dur_ns[python]), known)
        yield from _in_frames(recorded, _PYTHON, when, [busiest])
        when = without(_around_kernels(recorded, busiest), known)
        yield from _in_frames(recorded, _COMPILED, when, [busiest])


def _preparing(host: HostEvents, threads: Sequence[ThreadPieces]) -> Union:
    """Time in the dispatcher of operators that call a device's runtime, in first calls twice as long as any later one."""
    first_ns = np.full(len(host.names), np.iinfo(np.int64).max)
    np.minimum.at(first_ns, host.name, host.start_ns)
    is_first = host.start_ns == first_ns[host.name]
    later_ns = np.zeros_like(first_ns)
    np.maximum.at(later_ns, host.name, np.where(is_first, 0, host.dur_ns))
    is_first &= host.dur_ns >= 2 * later_ns[host.name]
    chosen = [NOTHING]
    for thread in threads:
        launches = np.append(thread.timeline.launches_below & is_first[thread.timeline.events], False)[thread.owner]
        launches &= thread.attributed(lambda each: each.category == "dispatcher")
        chosen.append(union(thread.start_ns[launches], thread.dur_ns[launches]))
    return joined(chosen)


def _around_kernels(recorded: Recorded, thread: ThreadPieces) -> Union:
    """Time of a thread in guards, in the compiled runtime and in C functions that either calls; nothing without Python stacks."""
    host = recorded.host
    by_runtime = passing(host.attributions, _RUNTIME.__contains__)[host.attribution]
    caller = host.around.nearest(host.python & ~passing(host.attributions, _BINDING.__eq__)[host.attribution])
    called = by_runtime | ((caller >= 0) & by_runtime[caller])
    chosen = thread.attributed((*_RUNTIME, _BINDING).__contains__) & (thread.owner >= 0)
    chosen[chosen] = called[thread.timeline.events[thread.owner[chosen]]]
    chosen &= bool(host.python[thread.timeline.events].any())
    return union(thread.start_ns[chosen], thread.dur_ns[chosen])


def long_intervals(recorded: Recorded, device: DeviceTimeline, known: Union) -> Union:
    """Idle time of a device while its host launched nothing for far longer than usual, beyond ``known``."""
    starts, lengths = recorded.events["start_ns"], recorded.events["dur_ns"]
    launches = distinct_values(device.linked.launch[device.linked.launch >= 0])
    launches = launches[np.argsort(starts[launches], kind="stable")]
    reached = np.maximum.accumulate(starts[launches] + lengths[launches])
    first, last = recorded.analysis.window.bounds
    begins = np.concatenate(([first], reached))
    between = np.maximum(np.concatenate((starts[launches], [last])) - begins, 0)
    is_long = between >= LONG * max(1, int(np.percentile(between, 50, method="lower")))
    stretches = union(begins[is_long], between[is_long])
    ours = idle_by(device, [name for name in BLAME if name not in (*NOT_THE_HOST, "launch")], inside=False)
    return without(both(stretches, ours), known)


def _stretches(recorded: Recorded, wording: Wording, calls: Ints, when: Union) -> Iterator[Located]:
    """The findings in ``when``, intervals of the threads of some calls."""
    if len(calls):
        longest = int(calls[np.argmax(recorded.host.dur_ns[calls])])
        yield from _in_frames(recorded, wording, when, _threads_of(recorded, calls), place=recorded.place(longest))


def _in_frames(
    recorded: Recorded,
    wording: Wording,
    when: Union,
    threads: Sequence[ThreadPieces],
    place: tuple[str, str] | None = None,
) -> Iterator[Located]:
    """The finding in ``when`` by the frames of some threads; without a place, that of the first frame that has one."""
    if when.total_ns:
        named = recorded.frames(when, threads)
        yield from recorded.located(wording, recorded.at_most(when), when, named, place or _place_of(named))


def _threads_of(recorded: Recorded, calls: Ints) -> list[ThreadPieces]:
    numbers = set(recorded.host.thread[calls].tolist())
    return [thread for thread in recorded.threads.values() if thread.timeline.number in numbers]


def launching(recorded: Recorded, device: DeviceTimeline) -> list[ThreadPieces]:
    """The threads that launched work of a device."""
    return _threads_of(recorded, recorded.host.among(device.linked.launch))


def _place_of(named: Sequence[Evidence]) -> tuple[str, str]:
    """Module and line of the first event that has any."""
    return next(((each.module, each.line) for each in named if each.line or each.module), ("", ""))
