"""Compares what stacks say of a step with the trace of some steps (pure).

Taking stacks stops all threads of the program, recording a trace stops none. So the trace says how long operators take,
whatever the sampler did to them: where the two disagree the trace decides, and stacks only divide the time inside and outside of
operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from overhead_lens.budget.model import CrossCheck, Reading
from overhead_lens.budget.shares import Shares, draw_over_blocks
from overhead_lens.budget.trace import LOOP_EVENT, trace_budget
from overhead_lens.captures.files import KINETO
from overhead_lens.instruments.trace.evidence import Traced
from overhead_lens.program.area import Phase
from overhead_lens.readers.kineto.read import read_events
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.rules import Attribution

OPERATORS = "operators"
"""The check of all that operators do: dispatcher, allocation, kernels, and waiting for the team of threads that computes them."""

_WINDOW = "ProfilerStep#"
_COMPILED = "Torch-Compiled Region"
_CATEGORIES = frozenset({"dispatcher", "allocation", "kernel"})
_PARALLEL = Attribution("wait", "parallel")
# Recording an event takes less; what two steps differ by besides is no cost of the profiler's.
_MOST_EVENT_NS = 1_500
# Half of the profiler's cost is placed by estimate, and the recorded steps are few.
_LEAST_SHARE = 0.03


def in_operators(attribution: Attribution) -> bool:
    """Whether an operator spends this time, not who calls it."""
    return attribution.category in _CATEGORIES or attribution == _PARALLEL


def read_steps(path: Path, steps: pd.DataFrame | None) -> tuple[pd.DataFrame, Traced] | None:
    """The recorded steps of a run: their events, the windows' one as the measured loop, and their times; None without a trace.

    Args:
        path: The run's directory.
        steps: Of the run.
    """
    if steps is None or not (path / KINETO).exists():
        return None
    ns = steps["end_ns"] - steps["begin_ns"]
    traced, bare = ns[steps["phase"] == Phase.TRACED], ns[steps["phase"] == Phase.BARE]
    events = read_events(path / KINETO)
    windows = events[events["name"].str.startswith(_WINDOW)]
    if windows.empty or traced.empty or bare.empty:
        return None
    calls = min(len(windows), len(traced))
    cost_ns = min(max(0.0, traced.median() - bare.median()), _MOST_EVENT_NS * len(events) / calls)
    begin = int(windows["start_ns"].min())
    end = int((windows["start_ns"] + windows["dur_ns"]).max())
    loop = windows.iloc[:1].assign(name=LOOP_EVENT, start_ns=begin, dur_ns=end - begin)
    events = pd.concat([loop, events.drop(windows.index)], ignore_index=True)
    wall_ns = end - begin
    timing = Traced(None, calls, wall_ns, wall_ns - round(cost_ns * calls), events=len(events))
    return events, timing


def operators_of_trace(events: pd.DataFrame, timing: Traced, wall_ns: float, classifier: Classifier) -> Reading | None:
    """Time in operators per step by the corrected trace, scaled to ``wall_ns``; None where compiled code hides it."""
    if events["name"].str.startswith(_COMPILED).any():
        return None
    traced = trace_budget(events, timing, classifier, None)
    if traced.sum_ns <= 0:
        return None
    scale = wall_ns / traced.sum_ns
    ns = sum(own_ns for attribution, own_ns in traced.attributions.items() if in_operators(attribution)) * scale
    spread_ns = sum(traced.spread_ns.get(category, 0.0) for category in _CATEGORIES) * scale
    half_ns = max(spread_ns, _LEAST_SHARE * wall_ns)
    return Reading(ns, (max(0.0, ns - half_ns), min(wall_ns, ns + half_ns)))


def operators_of_stacks(blocks: Sequence[Sequence[Stack]], wall_ns: float, classifier: Classifier) -> Reading:
    """Time in operators per step by stacks, in blocks of consecutive ones; at least one stack in all."""
    counts = np.array([_inside_and_outside(block, classifier) for block in blocks if block]).T
    drawn = draw_over_blocks(counts)[:, 0]
    share = counts[0].sum() / counts.sum()
    low, high = np.quantile(drawn, [0.025, 0.975]) - drawn.mean() + share
    return Reading(float(share) * wall_ns, (max(0.0, float(low)) * wall_ns, min(1.0, float(high)) * wall_ns))


def _inside_and_outside(block: Sequence[Stack], classifier: Classifier) -> tuple[float, float]:
    """Stacks in operators, and all others."""
    inside = sum(stack.count for stack in block if in_operators(classifier.classify(stack).attribution))
    return float(inside), float(sum(stack.count for stack in block) - inside)


def compared(samples: Reading, trace: Reading) -> CrossCheck:
    """Both readings, and whether their intervals meet."""
    agree = samples.ci95_ns[0] <= trace.ci95_ns[1] and trace.ci95_ns[0] <= samples.ci95_ns[1]
    return CrossCheck(OPERATORS, samples, trace, None, agree)


def decided_by_trace(shares: Shares, share: float) -> Shares:
    """The shares with ``share`` of the time in operators, divided inside and outside as the stacks say."""
    before = sum(each for attribution, each in shares.attributions.items() if in_operators(attribution)) / shares.weight
    if not 0.0 < before < 1.0:
        return shares
    inside, outside = share / before, (1.0 - share) / (1.0 - before)
    attributions = {
        attribution: weight * (inside if in_operators(attribution) else outside)
        for attribution, weight in shares.attributions.items()
    }
    factors = np.array([_factor(name, shares, attributions) for name in HOST_CATEGORIES])
    replicates = shares.replicates * factors
    frames = {
        category: {frame: weight * float(factors[HOST_CATEGORIES.index(category)]) for frame, weight in weights.items()}
        for category, weights in shares.frames.items()
    }
    return replace(
        shares,
        attributions=attributions,
        frames=frames,
        replicates=replicates / replicates.sum(axis=1, keepdims=True),
    )


def _factor(category: str, shares: Shares, attributions: dict[Attribution, float]) -> float:
    before = shares.share(category) * shares.weight
    after = math.fsum(weight for attribution, weight in attributions.items() if attribution.category == category)
    return after / before if before else 1.0
