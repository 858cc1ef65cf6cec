"""Findings about steps that are not like the others, and about operators of a host without a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median_low

import numpy as np

from overhead_lens.traces.budgets import TraceStep
from overhead_lens.traces.findings.model import Evidence
from overhead_lens.traces.findings.recorded import MOST_EVIDENCE, Located, Recorded, Wording
from overhead_lens.traces.intervals import NOTHING, union

_UNLIKE, _FEWEST = 1.5, 3
_OPERATOR_SHARE = 0.1

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


def unlike_steps(recorded: Recorded) -> Iterator[Located]:
    """Steps that take 1.5 times the median of the others, with the excess time."""
    steps = recorded.analysis.steps
    if len(steps) < _FEWEST:
        return
    for at, step in enumerate(steps):
        others = [other for other in steps if other is not step]
        usual_ns = median_low(other.window.wall_ns for other in others)
        if step.window.wall_ns > _UNLIKE * usual_ns:
            wording = _SLOW_STEP if at else _WARM_UP
            more = _more(step, others)
            wording = replace(wording, category=more[0].name if more else wording.category)
            start_ns, end_ns = step.window.bounds
            when = union(np.array([start_ns]), np.array([end_ns - start_ns]))
            yield from recorded.located(wording, step.window.wall_ns - usual_ns, when, more)


def _more(step: TraceStep, others: list[TraceStep]) -> tuple[Evidence, ...]:
    """Host categories that exceed the median of the other steps, with the excess."""
    more = [
        Evidence(category.category, 1, category.ns - median_low(other.host[at].ns for other in others))
        for at, category in enumerate(step.host)
    ]
    return tuple(sorted((each for each in more if each.ns > 0), key=lambda each: -each.ns)[:MOST_EVIDENCE])


def dispatcher_of_small_operators(recorded: Recorded) -> Iterator[Located]:
    """Without a device: what the busiest thread spends in the dispatcher, from a tenth of the window on."""
    analysis = recorded.analysis
    if analysis.devices or not analysis.threads:
        return
    ns = next(category.ns for category in analysis.host if category.category == "dispatcher")
    if ns < _OPERATOR_SHARE * analysis.window.wall_ns:
        return
    led = sorted(
        (cost for cost in analysis.operators if cost.category == "dispatcher" and cost.dispatch_ns),
        key=lambda cost: -cost.dispatch_ns,
    )
    named = tuple(Evidence(cost.name, cost.count, cost.dispatch_ns) for cost in led[:MOST_EVIDENCE])
    yield from recorded.located(_OPERATORS, ns, NOTHING, named)
