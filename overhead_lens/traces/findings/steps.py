"""Findings about steps that are not like the others, and about operators of a host without a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from overhead_lens.stats.values import Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.budgets import TraceStep
from overhead_lens.traces.columns import passing
from overhead_lens.traces.findings.model import Evidence
from overhead_lens.traces.findings.recorded import MOST_EVIDENCE, Located, Recorded, Wording
from overhead_lens.traces.intervals import NOTHING, Union, union

_UNLIKE, _FEWEST = 1.5, 3
_OPERATOR_SHARE = 0.1
_KERNEL_SHARE = 0.5
_READS = frozenset({"aten::item", "aten::_local_scalar_dense"})

KERNELS = "kernels_on_host"

_WARM_UP = Wording(
    "warm_up",
    "unattributed",
    "the first step takes far longer than the others",
    "warm up before recording: torch.profiler.schedule(wait=1, warmup=2, active=5)",
)
_SLOW_STEP = Wording(
    "slow_step",
    "unattributed",
    "a step takes far longer than the others",
    "what this step does more of is listed: data, evaluation, checkpoints, garbage collection, recompilation",
)
_OPERATORS = Wording(
    "many_small_operators",
    "dispatcher",
    "much of the time goes into getting from operators to their kernels",
    "torch.compile, fewer and larger operators, torch.inference_mode() where no gradient is needed",
)
_KERNELS = Wording(
    KERNELS,
    "kernel",
    "operators compute on the host",
    "nothing around the operators saves this: fewer or cheaper ones, lower precision, more threads (torch.set_num_threads), "
    "a GPU",
)


def unlike_steps(recorded: Recorded) -> Iterator[Located]:
    """Steps that take 1.5 times the median of the others, with the excess time."""
    steps = recorded.analysis.steps
    if len(steps) < _FEWEST:
        return
    walls_ns = np.array([step.window.wall_ns for step in steps])
    usual_ns = _usual_of_others(walls_ns)
    unlike = np.flatnonzero(walls_ns > _UNLIKE * usual_ns).tolist()
    more_ns = _beyond_usual(steps)
    for at in unlike:
        step, wording = steps[at], _SLOW_STEP if at else _WARM_UP
        categories = [category.category for category in step.host]
        ranked = sorted(zip(more_ns[at].tolist(), categories, strict=True), key=lambda each: -each[0])
        more = tuple(Evidence(category, 1, ns) for ns, category in ranked[:MOST_EVIDENCE] if ns > 0)
        wording = replace(wording, category=more[0].name if more else wording.category)
        start_ns, end_ns = step.window.bounds
        when = union(np.array([start_ns]), np.array([end_ns - start_ns]))
        yield from recorded.located(wording, step.window.wall_ns - int(usual_ns[at]), when, more)


def _beyond_usual(steps: Sequence[TraceStep]) -> Ints:
    """How much longer each host category takes in each step than in the others (their lower median), ``(steps, categories)``."""
    ns = np.array([[category.ns for category in step.host] for step in steps]).reshape(len(steps), -1)
    return ns - _usual_of_others(ns)


def _usual_of_others(values: Ints) -> Ints:
    """For each of two or more values (along the first axis), the lower median of all others."""
    ranked, middle = np.sort(values, axis=0), (len(values) - 2) // 2
    usual: Ints = np.where(values > ranked[middle], ranked[middle], ranked[middle + 1])
    return usual


def dispatcher_of_small_operators(recorded: Recorded, known: Union) -> Iterator[Located]:
    """Without a device: what the busiest thread spends in the dispatcher beyond ``known``, from a tenth of the window on.

    A collective's own time is not the dispatcher's: it sends, or waits for others.
    """
    if recorded.devices or not recorded.threads:
        return
    host, timeline = recorded.host, next(iter(recorded.threads.values())).timeline
    dispatches = passing(host.attributions, lambda each: each.category == "dispatcher")[timeline.attribution]
    dispatches &= ~known.holds(host.start_ns[timeline.events])
    dispatches &= ~passing(host.names, torch_names.communicates)[host.name[timeline.events]]
    calls = timeline.events[dispatches]
    ns = timeline.self_ns[dispatches] - recorded.kernel_ns[calls]
    if ns.sum() >= _OPERATOR_SHARE * recorded.wall_ns:
        operators = host.operator[calls]
        named = recorded.of_calls(calls[operators], ns[operators])
        yield from recorded.located(_OPERATORS, int(ns.sum()), NOTHING, named)


def kernels_on_host(recorded: Recorded) -> Iterator[Located]:
    """Without any device: the time estimated to be kernels of operators, if it is at least half of the window.

    A file that names devices may have left their events out: an operator that waits for a device looks like one that computes. So
    do reads of single values, which take no time on a host.
    """
    host = recorded.host
    if recorded.devices or recorded.has_device or host.runtime.any():
        return
    computes = ~passing(host.names, _READS.__contains__)[host.name]
    calls = np.flatnonzero(computes & (recorded.kernel_ns > 0))
    ns, when = recorded.kernel_ns[calls], recorded.spans(calls)
    bound_ns = min(int(ns.sum()), recorded.at_most(when))
    if bound_ns >= _KERNEL_SHARE * recorded.wall_ns:
        named = recorded.of_calls(calls, ns)
        place = recorded.place(int(calls[np.argmax(ns)])) if len(calls) else ("", "")
        yield from recorded.located(_KERNELS, bound_ns, when, named, place)
