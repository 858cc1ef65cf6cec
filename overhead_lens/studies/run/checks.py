"""Compares what stacks say of a step with the trace of some steps (pure).

Taking stacks stops all threads of the program; recording a trace stops none. But a recorded step takes longer than a bare one,
and how much of that time lies inside operators is unknown, so the trace gives a range: from the time that it shows down to that
time less the whole slow-down. The range also covers the difference between the mean step and the recorded steps, because rare
long steps, such as those with a rollout, may not have been recorded.

If the stacks are outside this range, they are moved to its nearest end: they then divide only the time inside, and the time
outside, of operators. They stay where the trace cannot tell the two apart: if operators wait or run Python, or if other libraries
run kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from overhead_lens.budget.model import CrossCheck, Reading
from overhead_lens.budget.shares import draw_over_blocks
from overhead_lens.budget.trace import LOOP_EVENT, trace_budget
from overhead_lens.captures.files import KINETO
from overhead_lens.instruments.trace.record import Traced
from overhead_lens.program.area import Phase
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.stack import Stack
from overhead_lens.stats.values import Bools
from overhead_lens.taxonomy import torch_names
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.rules import Attribution
from overhead_lens.traces.host import HOST_EVENTS

OPERATORS = "operators"
"""The check of all that operators do: dispatcher, allocation, kernels, and waiting for the team of threads that computes them."""

_WINDOW = "ProfilerStep#"
_CATEGORIES = frozenset({"dispatcher", "allocation", "kernel"})
_PARALLEL = Attribution("wait", "parallel")
# Recorded steps are few.
_LEAST_SHARE = 0.03
_TORCH, _OPERATOR = "libtorch", "at::_ops::"
# An operator that is written in Python (torch/csrc/utils/python_dispatch.cpp).
_PYTHON_OPERATOR = "torch::impl::dispatch::PythonKernelHolder"
_FEW_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class RecordedSteps:
    """The recorded steps of a run.

    Attributes:
        trace: As it was recorded.
        windows: Begin and end of each step, ns.
        events: The windows' span as the measured loop, and all events besides.
        mean_ns: How long a step takes.
        slower_ns: What a recorded step takes longer than a bare one: what recording costs, and what else it met.
    """

    trace: Trace
    windows: Sequence[tuple[int, int]]
    events: pd.DataFrame
    mean_ns: float
    slower_ns: float


def in_operators(attribution: Attribution) -> bool:
    """Whether an operator spends this time, not who calls it."""
    return attribution.category in _CATEGORIES or attribution == _PARALLEL


def read_steps(path: Path, steps: pd.DataFrame | None) -> RecordedSteps | None:
    """The recorded steps of a run in a directory; None without a trace."""
    if steps is None or not (path / KINETO).exists():
        return None
    ns = steps["end_ns"] - steps["begin_ns"]
    traced, bare = ns[steps["phase"] == Phase.TRACED], ns[steps["phase"] == Phase.BARE]
    trace = read_trace(path / KINETO)
    events = trace.events
    # A device repeats the host's annotations over the kernels that they launched.
    shown = events[events["name"].str.startswith(_WINDOW) & events["cat"].isin(HOST_EVENTS)].sort_values("start_ns")
    windows = shown[: _whole(shown["dur_ns"].tolist(), traced.tolist())]
    if windows.empty or bare.empty:
        return None
    traced = traced[: len(windows)]
    slower_ns = max(0.0, float(traced.median() - bare.median()))
    bounds = list(zip(windows["start_ns"].tolist(), (windows["start_ns"] + windows["dur_ns"]).tolist(), strict=True))
    begin, end = bounds[0][0], max(end for _, end in bounds)
    loop = windows.iloc[:1].assign(name=LOOP_EVENT, start_ns=begin, dur_ns=end - begin)
    # Stacks are compared that are those of this thread.
    own = events[events["tid"] == windows["tid"].iloc[0]]
    rest = pd.concat([loop, own[_inside(own, windows)].drop(windows.index, errors="ignore")], ignore_index=True)
    return RecordedSteps(trace, bounds, rest, float(traced.mean()), slower_ns)


def _whole(windows_ns: Sequence[int], steps_ns: Sequence[int]) -> int:
    """How many windows hold a whole step: the last may lack its end, or belong to a step that did not end."""
    count = min(len(windows_ns), len(steps_ns))
    return count - (count > 0 and windows_ns[count - 1] < steps_ns[count - 1])


def _inside(events: pd.DataFrame, windows: pd.DataFrame) -> Bools:
    """Whether each event begins in one of the windows, which are in order; between two the program may have left its loop."""
    start_ns, end_ns = windows["start_ns"].to_numpy(), (windows["start_ns"] + windows["dur_ns"]).to_numpy()
    at = np.searchsorted(start_ns, events["start_ns"], side="right") - 1
    return (at >= 0) & (events["start_ns"].to_numpy() < end_ns[at])


def operators_of_trace(recorded: RecordedSteps, wall_ns: float, classifier: Classifier) -> Reading | None:
    """Time in operators per step by the trace; None where compiled code hides it."""
    events = recorded.events
    if events["name"].str.startswith(torch_names.COMPILED_REGION_PREFIX).any():
        return None
    span_ns = int(events["dur_ns"].iloc[0])
    traced = trace_budget(events, Traced(None, len(recorded.windows), span_ns, span_ns), classifier, None)
    shown_ns = sum(own_ns for attribution, own_ns in traced.attributions.items() if in_operators(attribution))
    spread_ns = max(sum(traced.spread_ns.get(category, 0.0) for category in _CATEGORIES), _LEAST_SHARE * wall_ns)
    # The mean step less a recorded one: what takes this time, or took it in the recorded steps, is unknown.
    beyond_ns = wall_ns - (recorded.mean_ns - recorded.slower_ns)
    low, high = shown_ns - recorded.slower_ns + min(0.0, beyond_ns), shown_ns + max(0.0, beyond_ns)
    low, high = np.clip([low - spread_ns, high + spread_ns], 0.0, wall_ns).tolist()
    return Reading((low + high) / 2, (low, high))


def operators_of_stacks(blocks: Sequence[Sequence[Stack]], wall_ns: float, classifier: Classifier) -> Reading:
    """Time in torch's operators per step by stacks, in blocks of consecutive ones; at least one stack in all.

    What an operator waits for, such as the interpreter's lock, and Python that it runs are in there, as they are in the trace.
    """
    counts = np.array([_inside_and_outside(block, classifier) for block in blocks if block]).T
    drawn = draw_over_blocks(counts)[:, 0]
    share = counts[0].sum() / counts.sum()
    low, high = np.quantile(drawn, [0.025, 0.975]) - drawn.mean() + share
    return Reading(float(share) * wall_ns, (max(0.0, float(low)) * wall_ns, min(1.0, float(high)) * wall_ns))


def hides_from_trace(blocks: Sequence[Sequence[Stack]], classifier: Classifier) -> bool:
    """Whether more than 1 % of the stacks are in kernels of other libraries, or wait or run Python inside of an operator."""
    stacks = [stack for block in blocks for stack in block]
    hidden = sum(
        stack.count
        for stack in stacks
        if in_operators(_attribution(stack, classifier)) != _is_inside(stack, classifier)
    )
    return hidden > _FEW_SHARE * sum(stack.count for stack in stacks)


def _inside_and_outside(block: Sequence[Stack], classifier: Classifier) -> tuple[float, float]:
    inside = sum(stack.count for stack in block if _is_inside(stack, classifier))
    return float(inside), float(sum(stack.count for stack in block) - inside)


def _is_inside(stack: Stack, classifier: Classifier) -> bool:
    """Whether a trace shows the stack's time inside of an operator."""
    attribution = _attribution(stack, classifier)
    native = [frame for frame in stack.frames if frame.native]
    if in_operators(attribution):
        return any(frame.location.startswith(_TORCH) for frame in native)
    entry = _OPERATOR if attribution.category == "wait" else _PYTHON_OPERATOR
    return any(frame.function.startswith(entry) for frame in native)


def _attribution(stack: Stack, classifier: Classifier) -> Attribution:
    return classifier.classify(stack).attribution


def compared(samples: Reading, trace: Reading) -> CrossCheck:
    """Both readings, and whether their intervals meet."""
    agree = bool(samples.ci95_ns[0] <= trace.ci95_ns[1] and trace.ci95_ns[0] <= samples.ci95_ns[1])
    return CrossCheck(OPERATORS, samples, trace, None, agree)


def nearest(samples: Reading, trace: Reading) -> float:
    """The time within the trace's range that is nearest to what stacks say."""
    return min(max(samples.ns, trace.ci95_ns[0]), trace.ci95_ns[1])
