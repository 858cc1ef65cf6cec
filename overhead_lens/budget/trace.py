"""Makes the trace's budget: self times by sweep line, corrected for the profiler, classified.

A trace cannot see inside an operator: dispatch, hidden allocation and kernel are one span. Of an operator's self time, the time
of a one-element operator counts as dispatcher and the rest as kernel, unless it launches kernels on a device or only calls other
operators. Code that Inductor generated for the CPU is one span, too. Ablation calls its kernels alone (``kernel_binding``); that
time, minus the operators in the span, counts as kernel. Without that rung the span is unattributed. These are estimates and are
marked so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from overhead_lens.budget import thresholds
from overhead_lens.correction.event_cost import (
    COMPILED_REGION,
    OF_DEVICES,
    OF_OPERATORS,
    OPERATOR_NESTED,
    OPERATOR_OUTER,
    Costs,
    EventCost,
    corrected_self_ns,
    equal_cost,
    event_class,
)
from overhead_lens.correction.lru_stack import rms_stack_distance
from overhead_lens.instruments.trace.record import Traced
from overhead_lens.readers.kineto.event import DEVICE_CATEGORIES
from overhead_lens.readers.kineto.model import Events, columns_of
from overhead_lens.stats.distributions import t_quantile
from overhead_lens.stats.values import Bools, Floats, Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.rules import NEUTRAL, Attribution
from overhead_lens.traces.host import pausing, unresolved
from overhead_lens.traces.intervals import Union, union
from overhead_lens.traces.timeline import Nesting, Segments, nearest, sweep

LOOP_EVENT = "measured_loop"

_LOOP = Attribution("python", "user")
_BINDING = Attribution("python", "binding")
_DISPATCH = Attribution("dispatcher", "dispatch")
_KERNEL, _UNKNOWN = Attribution("kernel"), Attribution("unattributed")
_WAIT = Attribution("wait", "device")


@dataclass(frozen=True, slots=True)
class TraceBudget:
    """One measured call by the corrected trace; times in ns per call.

    Attributes:
        attributions: Time per attribution.
        frames: Time per category and event name.
        sum_ns: Corrected total.
        bare_ns: Bare time of a call in the same process.
        recording_ns: Cost of recording, by calibration.
        spread_ns: Uncertainty per category: of the profiler's cost inside the events' spans, and of the mean over calls (95 %).
        operator_calls: Calls of operators per measured call.
        backward_ns: The part of ``sum_ns`` on autograd's threads, for which the loop's thread waited.
        compiled_ns: The part of ``sum_ns`` in compiled code whose kernels the trace does not show.
        hides_kernels: Whether that part is unattributed, since nothing else shows them either.
    """

    attributions: Mapping[Attribution, float]
    frames: Mapping[str, Mapping[str, float]]
    sum_ns: float
    bare_ns: float
    recording_ns: float
    spread_ns: Mapping[str, float]
    operator_names: frozenset[str]
    operator_calls: float
    backward_ns: float = 0.0
    compiled_ns: float = 0.0
    hides_kernels: bool = False

    @property
    def waits_for_backward(self) -> bool:
        """Whether the loop's thread waits long enough for others that its stacks, which overstate such waits, are ignored."""
        return self.backward_ns > thresholds.BACKWARD_SHARE * self.sum_ns


def trace_budget(
    events: pd.DataFrame,
    timing: Traced,
    classifier: Classifier,
    costs: Costs | None,
    generated_kernels_ns: float | None = None,
) -> TraceBudget:
    """Budget of the loop's thread, and of autograd's threads while it waits for them.

    Args:
        events: Event frame of the plain trace; its ``measured_loop`` annotation is the loop, or everything where it has none.
        timing: Wall times and page faults of the loop, traced and bare.
        costs: Calibrated cost per class of event; without it every event costs an equal share of the profiler's slowdown. Calls
            of a device's runtime that are not calibrated share the slowdown that the other events do not explain.
        generated_kernels_ns: What the kernels that compiled code calls take alone, ns per call; None if that is unknown.
    """
    host, window = loop_events(events, with_backward=True)
    calls = max(1, timing.calls)
    pauses = profiler_pauses(columns_of(events))
    faults_ns = (timing.traced_faults - timing.bare_faults) * timing.fault_ns
    taken_ns = timing.traced_wall_ns - timing.bare_wall_ns - faults_ns - pauses.within(window)
    if not costs:
        costs = {OPERATOR_NESTED: equal_cost(max(0.0, taken_ns) / max(1, len(host)))}
    start, dur = host["start_ns"].to_numpy(), host["dur_ns"].to_numpy()
    segments, nesting = _without(sweep(start, dur, window), pauses), Nesting(start, dur)
    parent, attributed = nesting.parent, _attributed(host, nesting.parent, classifier)
    classes, self_ns = _event_classes(host, parent, _starting_work(events, host)), segments.self_ns(len(host))
    stack_distance = rms_stack_distance(host["name"].tolist())
    # An operator that calls a device's runtime has its kernel there.
    launches = np.isin(classes, OF_DEVICES)
    on_device = nesting.mark_above(launches)
    only_calls = host["name"].isin(torch_names.WITHOUT_KERNEL).to_numpy()
    dispatch = np.array([each == _DISPATCH for each in attributed], dtype=bool)
    floors_ns = np.where(dispatch & ~on_device & ~only_calls, timing.operator_floor_ns, math.inf).tolist()
    kernels_ns = [
        own_ns if attribution.category == _KERNEL.category else max(0, own_ns - floor_ns)
        for attribution, own_ns, floor_ns in zip(attributed, self_ns.tolist(), floors_ns, strict=True)
    ]
    regions = classes.count(COMPILED_REGION)
    period_ns = (window[1] - window[0] - sum(kernels_ns)) / regions if regions else 0.0
    costs = {name: cost.at(stack_distance, period_ns) for name, cost in costs.items()}
    further = _after_kernels_ns(classes, kernels_ns, costs) + _first_ns(classes, parent, costs)
    event_costs = _event_costs(classes, costs, taken_ns - float(further.sum()))
    inside = np.array([cost.inside_ns for cost in event_costs])
    outside = np.array([cost.outside_ns for cost in event_costs]) + further
    own, around = corrected_self_ns(self_ns, parent, segments.uncovered_ns(), inside, outside, faults_ns)
    code = _hides_kernels(host, nesting, launches)
    in_kernels = _share_of_kernels(own, code, nesting, generated_kernels_ns, calls)
    attributions: defaultdict[Attribution, float] = defaultdict(float, {_LOOP: around})
    frames: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    frames[_LOOP.category]["outside of any event"] = around
    waited_ns = _device_busy_ns(events, window) - float(own.sum()) - around
    if waited_ns > 0:
        attributions[_WAIT] = frames[_WAIT.category]["for work on the device"] = waited_ns
    spread: defaultdict[str, float] = defaultdict(float)
    by_call: defaultdict[str, Floats] = defaultdict(lambda: np.zeros(calls))
    for index, (name, attribution, ns, cost, floor_ns, is_code) in enumerate(
        zip(host["name"], attributed, own.tolist(), event_costs, floors_ns, code.tolist(), strict=True)
    ):
        spread[attribution.category] += (cost.inside_ns + cost.spread_ns) / calls
        parts = _split_code(attribution, ns, in_kernels) if is_code else _split(attribution, ns, floor_ns)
        for part, part_ns in parts:
            attributions[part] += part_ns
            frames[part.category][name] += part_ns
            # The trace does not say where a call begins: every call gets as many events.
            by_call[part.category][index * calls // len(host)] += part_ns
    operators = host["name"].str.startswith(torch_names.OPERATOR_PREFIX)
    return TraceBudget(
        {attribution: ns / calls for attribution, ns in attributions.items()},
        {category: {name: ns / calls for name, ns in names.items()} for category, names in frames.items()},
        sum(attributions.values()) / calls,
        timing.bare_wall_ns / calls,
        float(inside.sum() + outside.sum()) / calls,
        {category: math.hypot(spread[category], _half_width_ns(call_ns)) for category, call_ns in by_call.items()},
        frozenset(host.loc[operators, "name"]),
        int(operators.sum()) / calls,
        float(own[host["is_backward"].to_numpy()].sum()) / calls,
        float(own[code].sum()) / calls,
        bool(code.any()) and in_kernels is None,
    )


def _attributed(host: pd.DataFrame, parent: Ints, classifier: Classifier) -> list[Attribution]:
    """The attribution of each event; a neutral one's is that of the nearest caller that is not a C function, or the loop's."""
    attributed: list[Attribution] = []
    callers = parent.tolist()
    for at, (name, cat) in enumerate(zip(host["name"], host["cat"], strict=True)):
        attribution = classifier.classify_event(name, cat)
        if attribution.category == NEUTRAL:
            caller = callers[at]
            while caller >= 0 and attributed[caller] == _BINDING:
                caller = callers[caller]
            attribution = attributed[caller] if caller >= 0 else _LOOP
        attributed.append(attribution)
    return attributed


def _event_costs(classes: Sequence[str], costs: Costs, taken_ns: float) -> list[EventCost]:
    """The cost of each event; calls of a device's runtime without a calibration share what the others leave of ``taken_ns``."""
    shared = [name for name in OF_DEVICES if name not in costs]
    known = {name: costs.get(name, costs[OPERATOR_NESTED]) for name in set(classes).difference(shared)}
    others_ns = sum(known[name].total_ns for name in classes if name in known)
    of_call = equal_cost(max(0.0, taken_ns - others_ns) / max(1, len([name for name in classes if name in shared])))
    return [known.get(name, of_call) for name in classes]


def profiler_pauses(events: Events) -> Union:
    """When the profiler itself stopped the recorded thread: not time of the call."""
    pauses = pausing(events)
    return union(events["start_ns"][pauses], events["dur_ns"][pauses])


def _without(segments: Segments, pauses: Union) -> Segments:
    """The segments, each shorter by the pauses in it."""
    end_ns = segments.start_ns + segments.dur_ns
    return replace(segments, dur_ns=segments.dur_ns - pauses.before(end_ns) + pauses.before(segments.start_ns))


def _device_busy_ns(events: pd.DataFrame, window: tuple[int, int]) -> int:
    """How long devices work in the window. No call is shorter: while recording slows the host, it waits less for them."""
    work = events[events["cat"].isin(DEVICE_CATEGORIES)]
    return union(work["start_ns"].to_numpy(), work["dur_ns"].to_numpy()).within(window)


def _starting_work(events: pd.DataFrame, host: pd.DataFrame) -> Bools:
    """Bool per host event: whether it has the correlation of work on a device."""
    work = events.loc[events["cat"].isin(DEVICE_CATEGORIES), "correlation"]
    starting: Bools = host["correlation"].isin(work[work > 0]).to_numpy()
    return starting


def _hides_kernels(host: pd.DataFrame, nesting: Nesting, launches: Bools) -> Bools:
    """Bool per event: compiled code whose kernels are not shown; ``launches``: calls of a device's runtime."""
    code = [torch_names.COMPILED_CODE.match(name) is not None for name in host["name"]]
    return unresolved(nesting, np.array(code, dtype=bool), launches)


def _share_of_kernels(
    own_ns: Floats, code: Bools, nesting: Nesting, generated_kernels_ns: float | None, calls: int
) -> float | None:
    """The share of compiled code's own time that its kernels take; None if that is unknown."""
    if generated_kernels_ns is None:
        return None
    operators_ns = own_ns[~code & (nearest(nesting.parent, code) >= 0)].sum() / calls
    code_ns = own_ns[code].sum() / calls
    return float(np.clip((generated_kernels_ns - operators_ns) / code_ns, 0.0, 1.0)) if code_ns > 0 else 0.0


def _half_width_ns(call_ns: Floats) -> float:
    """95 % half-width of the mean over calls (Student's t); 0 for a single call."""
    calls = len(call_ns)
    if calls < 2:
        return 0.0
    return t_quantile(0.025, calls - 1) * float(call_ns.std(ddof=1)) / math.sqrt(calls)


def _event_classes(host: pd.DataFrame, parent: Ints, launches: Bools) -> list[str]:
    """Classes of events in the order of their starts, parents before children.

    An operator is nested if another operator calls it; below an annotation (a compiled graph's) Python calls it.
    """
    classes: list[str] = []
    for name, category, above, launching in zip(
        host["name"], host["cat"], parent.tolist(), launches.tolist(), strict=True
    ):
        outer = above < 0 or classes[above] not in OF_OPERATORS
        classes.append(event_class(name, category, outer=outer, launches=launching))
    return classes


def _first_ns(classes: Sequence[str], parent: Ints, costs: Costs) -> Floats:
    """Extra cost of the first event in a row of one class and parent, shape ``(n,)``."""
    last: dict[int, str] = {}
    more = np.zeros(len(classes))
    for index, (name, above) in enumerate(zip(classes, parent.tolist(), strict=True)):
        if name in costs and last.get(above) != name:
            more[index] = costs[name].first_ns
        last[above] = name
    return more


def _after_kernels_ns(classes: Sequence[str], kernels_ns: Sequence[float], costs: Costs) -> Floats:
    """Cold-cache cost of each event after kernels evicted the profiler's code and data, shape ``(n,)``.

    Args:
        classes: The events' classes, in the order of their starts.
        kernels_ns: Kernel time of each event itself.
        costs: Cost by class; the first operator after the kernels pays as an outermost one.
    """
    since = dict.fromkeys((OPERATOR_OUTER, COMPILED_REGION), 0.0)
    paid: dict[str, dict[int, float]] = {payer: {} for payer in since}
    for index, (name, kernel_ns) in enumerate(zip(classes, kernels_ns, strict=True)):
        payer = OPERATOR_OUTER if name == OPERATOR_NESTED else name
        if payer in since:
            paid[payer][index] = since[payer]
            since[payer] = 0.0
        for paying in since:
            since[paying] += kernel_ns
    more = np.zeros(len(classes))
    for payer, after_ns in paid.items():
        if after_ns and payer in costs:
            more[[*after_ns]] = costs[payer].after_kernels_ns(np.array([*after_ns.values()]))
    return more


def loop_events(events: pd.DataFrame, *, with_backward: bool = False) -> tuple[pd.DataFrame, tuple[int, int]]:
    """Host events of the measured loop's thread, and the loop's window (start, end) in ns.

    Args:
        with_backward: Also those of autograd's threads, marked in the column ``is_backward``: they work while the loop's waits.
    """
    host = events[~events["cat"].isin(DEVICE_CATEGORIES) & (events["cat"] != "Trace")]
    host = host.assign(is_backward=False)
    loop = host[host["name"] == LOOP_EVENT]
    if loop.empty:
        window = (int(host["start_ns"].min()), int((host["start_ns"] + host["dur_ns"]).max())) if len(host) else (0, 0)
        return host.sort_values("start_ns", kind="stable").reset_index(drop=True), window
    first = loop.iloc[0]
    window = (int(first["start_ns"]), int(first["start_ns"] + first["dur_ns"]))
    own = host["tid"] == first["tid"]
    if with_backward:
        in_engine = host["name"].str.startswith(torch_names.ENGINE_PREFIX)
        host["is_backward"] = host["tid"].isin(host.loc[in_engine & ~own, "tid"].unique()) & ~own
    inside = host["start_ns"].between(*window) & (own | host["is_backward"]) & (host["name"] != LOOP_EVENT)
    # Of two events that start together, the longer one is the outer.
    order = ["start_ns", "dur_ns"]
    return host[inside].sort_values(order, ascending=[True, False], kind="stable").reset_index(drop=True), window


def category_lane(events: pd.DataFrame, classifier: Classifier) -> pd.DataFrame:
    """The category of every instant of the loop's window as traced: ``start_ns``, ``dur_ns``, ``category``."""
    host, window = loop_events(events, with_backward=True)
    start, dur = host["start_ns"].to_numpy(), host["dur_ns"].to_numpy()
    segments, nesting = sweep(start, dur, window), Nesting(start, dur)
    classes = _event_classes(host, nesting.parent, _starting_work(events, host))
    hidden = _hides_kernels(host, nesting, np.isin(classes, OF_DEVICES))
    names = [
        _UNKNOWN.category if is_hidden else attribution.category
        for attribution, is_hidden in zip(_attributed(host, nesting.parent, classifier), hidden.tolist(), strict=True)
    ]
    categories = [names[owner] if owner >= 0 else _LOOP.category for owner in segments.owner.tolist()]
    columns = {"start_ns": segments.start_ns, "dur_ns": segments.dur_ns, "category": categories}
    lane: pd.DataFrame = pd.DataFrame(columns)
    return lane


def _split(attribution: Attribution, ns: float, operator_floor_ns: float) -> list[tuple[Attribution, float]]:
    """The time of an operator beyond that of one without work is its kernel's."""
    if ns <= operator_floor_ns:
        return [(attribution, ns)]
    return [(attribution, operator_floor_ns), (_KERNEL, ns - operator_floor_ns)]


def _split_code(attribution: Attribution, ns: float, in_kernels: float | None) -> list[tuple[Attribution, float]]:
    """The time of compiled code, by the share of it that its kernels take; None if that is unknown."""
    if in_kernels is None:
        return [(_UNKNOWN, ns)]
    return [(attribution, ns * (1 - in_kernels)), (_KERNEL, ns * in_kernels)]
