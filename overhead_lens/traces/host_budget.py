"""Budget of a host thread over any window inside the trace.

Time that no event covers

- between two events of the busiest thread is Python that was not recorded (``between events``), if its operators were
  recorded at all;
- while a backward pass runs on an autograd thread, is waiting on the busiest thread (``backward()`` blocks its caller:
  torch/csrc/autograd/engine.cpp, ``Engine::execute``) and the engine's own work on the autograd thread;
- between two events of an autograd thread is otherwise waiting for work;
- is ``unattributed`` anywhere else: before a thread's first and after its last event its activity is unknown.

A backward pass runs from the first to the last event of the autograd threads within one gap of the busiest thread::

    busiest    [op] [op]..........wait............python [op]
    autograd             [node] [node]   [node]

An operator's span holds its dispatch and, on a CPU, its kernel. For one that launched nothing the division is an estimate:
dispatcher gets a multiple of the time of a view operator of the same trace, and kernel gets the rest. Views compute nothing, so
their time shows the speed of the machine and the cost of recording an event (docs/methodology/operators.md). Without views,
operators that only call others show it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from overhead_lens.stats.values import Bools, Ints, numbered, taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.host import Frame, HostCategory, parts_of
from overhead_lens.taxonomy.rules import Attribution
from overhead_lens.traces.columns import passing
from overhead_lens.traces.host import ThreadTimeline
from overhead_lens.traces.intervals import NOTHING, Piece, Union, cut, distinct_values
from overhead_lens.traces.timeline import Segments, cut_at, sum_by
from overhead_lens.traces.window import Window, bounds_of

BETWEEN = "(between events)"
OUTSIDE = "(before the first and after the last event)"
IDLE = "(waiting for work)"
BACKWARD = "(backward pass on another thread)"
ENGINE = "(between nodes of the backward pass)"

_DISPATCH = Attribution("dispatcher", "dispatch")
_KERNEL = Attribution("kernel")
_DEVICE = Attribution("wait", "device")
_GAPS = (
    (Attribution("python", "user"), BETWEEN),
    (Attribution("wait", "lock"), BACKWARD),
    (Attribution("dispatcher", "autograd"), ENGINE),
    (Attribution("wait", "lock"), IDLE),
    (Attribution("unattributed"), BETWEEN),
    (Attribution("unattributed"), OUTSIDE),
)
_PYTHON_GAP, _BACKWARD_GAP, _ENGINE_GAP, _IDLE_GAP, _UNKNOWN_GAP, _OUTSIDE_GAP = range(len(_GAPS))
_HAS_NO_WORK = passing(range(len(_GAPS)), (_IDLE_GAP, _UNKNOWN_GAP, _OUTSIDE_GAP).__contains__)
_MOST_FRAMES = 5
# Self time of an operator on one element, as a multiple of a view's: the median, and the range of nearly all operators.
_OF_VIEW, _LEAST_OF_VIEW, _MOST_OF_VIEW = 5, 1, 14
# Self time of an operator that only calls others, as a multiple of a view's: the median of the public traces (0.8 to 6).
_VIEWS_OF_CALL = 2
_EMPTY = {category: HostCategory(category, 0, (0, 0), 0.0, "none") for category in HOST_CATEGORIES}
_Spent: TypeAlias = list[tuple[int, str, int]]
"""Number of the attribution, name and ns."""


class DispatchFloor(NamedTuple):
    """How long the dispatch of one operator takes, in ns: the median operator, and the range of nearly all operators.

    ``of_views`` tells whether views show it, or operators that only call others.
    """

    ns: int
    low_ns: int
    high_ns: int
    of_views: bool = True


@dataclass(frozen=True, slots=True)
class ThreadPieces:
    """A thread's window in consecutive pieces, with the attribution and the name of each.

    Attributes:
        start_ns, dur_ns: int64, shape ``(n,)``; ``dur_ns`` > 0.
        owner: int32: position among the thread's events; -1 for uncovered time.
        attribution: int32: number in ``attributions``.
        name: int32: number in ``names``.
        is_idle: bool: the thread had nothing to do, or nobody knows what.
        floor: None for no estimate of kernels.
        passes: When the busiest thread waited for a backward pass.
    """

    timeline: ThreadTimeline
    start_ns: Ints
    dur_ns: Ints
    owner: Ints
    attribution: Ints
    name: Ints
    is_idle: Bools
    attributions: Sequence[Attribution]
    names: Sequence[str]
    floor: DispatchFloor | None
    passes: Union

    def categories(self) -> Ints:
        """Category per piece, as a number in ``HOST_CATEGORIES``, int8."""
        numbers = [HOST_CATEGORIES.index(attribution.category) for attribution in self.attributions]
        return np.array(numbers, dtype=np.int8)[self.attribution]

    def attributed(self, chosen: Callable[[Attribution], object]) -> Bools:
        """Bool per piece: whether its attribution passes a test."""
        return passing(self.attributions, chosen)[self.attribution]

    def computing(self, owner: Ints) -> Ints:
        """Which pieces, by their owners, belong to operators that are divided into dispatch and kernel."""
        if self.floor is None:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(np.append(self.timeline.computes, False)[owner])

    def kernels(self, owner: Ints, dur_ns: Ints) -> tuple[Ints, Ints]:
        """Of pieces in order of time those that may hold a kernel, and what each takes beyond its operator's dispatch."""
        at = self.computing(owner)
        if not len(at):
            return at, at
        order = np.argsort(owner[at], kind="stable")
        own_ns, is_first = dur_ns[at[order]], np.diff(owner[at[order]], prepend=-1) != 0
        sums_ns, until_ns = np.cumsum(own_ns), np.empty(len(at), dtype=np.int64)
        until_ns[order] = sums_ns - np.maximum.accumulate((sums_ns - own_ns) * is_first)
        return at, np.clip(until_ns - (self.floor.ns if self.floor else 0), 0, dur_ns[at])

    def divided(self) -> tuple[Ints, Ints, Ints]:
        """Starts and durations in ns, and categories; an operator's estimated kernel is a piece after its dispatch."""
        at, kernel_ns = self.kernels(self.owner, self.dur_ns)
        dur_ns = self.dur_ns.copy()
        dur_ns[at] -= kernel_ns
        starts_ns = np.insert(self.start_ns, at + 1, self.start_ns[at] + dur_ns[at])
        categories = np.insert(self.categories(), at + 1, HOST_CATEGORIES.index(_KERNEL.category))
        dur_ns = np.insert(dur_ns, at + 1, kernel_ns)
        return starts_ns[dur_ns > 0], dur_ns[dur_ns > 0], categories[dur_ns > 0]


def backward_passes(timelines: Sequence[ThreadTimeline], segments: Segments) -> Union:
    """When the busiest thread, the first, waited for autograd's: a pass in each gap in which its ``segments`` show no work."""
    autograd = [timeline for timeline in timelines[1:] if timeline.is_autograd]
    if not autograd:
        return NOTHING
    starts = np.concatenate([timeline.host.start_ns[timeline.events] for timeline in autograd])
    ends = starts + np.concatenate([timeline.host.dur_ns[timeline.events] for timeline in autograd])
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    open_start, open_end = _unworked(timelines[0], segments)
    first, last = np.searchsorted(starts, open_start, "left"), np.searchsorted(starts, open_end, "left")
    has = last > first
    first, last = first[has], last[has]
    if not len(first):
        return NOTHING
    reached = np.maximum.reduceat(np.append(ends, 0), np.column_stack((first, last)).ravel())[::2]
    return Union(starts[first], np.minimum(reached, open_end[has]), order[first])


def _unworked(timeline: ThreadTimeline, segments: Segments) -> tuple[Ints, Ints]:
    """Intervals in which the thread shows no work: covered by nothing but annotations and the call of a backward pass."""
    open_pieces = ~_works(timeline, segments.owner)
    edges = np.diff(np.concatenate(([False], open_pieces, [False])).astype(np.int8))
    begins, past = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return segments.start_ns[begins], segments.start_ns[past] + segments.dur_ns[past]


def _works(timeline: ThreadTimeline, owner: Ints) -> Bools:
    """Bool per owner: it is an event, other than an annotation or ``run_backward``."""
    host = timeline.host
    calls_backward = passing(host.names, lambda name: torch_names.RUN_BACKWARD in name)
    soft = host.annotation[timeline.events] | calls_backward[host.name[timeline.events]]
    works = owner >= 0
    works[works] = ~soft[owner[works]]
    return works


def thread_pieces(
    timeline: ThreadTimeline,
    segments: Segments,
    passes: Union,
    waits_from_ns: Ints,
    floor: DispatchFloor | None,
    *,
    is_busiest: bool,
) -> ThreadPieces:
    """The pieces of a thread: its ``segments``, cut at ``passes`` and where it waits for the device (``launches.waits_from``)."""
    host = timeline.host
    waits_from_ns = waits_from_ns[timeline.events]
    waits = waits_from_ns < host.start_ns[timeline.events] + host.dur_ns[timeline.events]
    # Cut at the ends of passes and where a copy begins to wait, so that every piece has one kind.
    end_ns = int(segments.start_ns[-1] + segments.dur_ns[-1]) if len(segments.start_ns) else 0
    edges = distinct_values(np.concatenate((passes.start_ns, passes.end_ns, waits_from_ns[waits])))
    starts, segment = cut_at(segments.start_ns, edges[edges < end_ns])
    owner = segments.owner[segment]
    in_pass = passes.covered(starts)
    if is_busiest:
        # An annotation around the call of a backward pass waits for the pass on another thread.
        owner[in_pass & ~_works(timeline, owner)] = -1
    free = np.flatnonzero(owner < 0)
    gap = _gap_kinds(timeline, starts[free], in_pass[free], is_busiest=is_busiest)
    attribution, name = taken(timeline.attribution, owner), taken(host.name[timeline.events], owner)
    attribution[free], name[free] = gap + len(host.attributions), gap + len(host.names)
    is_idle = np.zeros(len(starts), dtype=bool)
    is_idle[free] = _HAS_NO_WORK[gap]
    attributions = [*host.attributions, *(attribution for attribution, _ in _GAPS), _DEVICE]
    if waits.any():
        held = np.flatnonzero(np.append(waits, False)[owner])
        attribution[held[starts[held] >= waits_from_ns[owner[held]]]] = len(attributions) - 1
    return ThreadPieces(
        timeline,
        starts,
        np.diff(np.append(starts, end_ns)),
        owner,
        attribution,
        name,
        is_idle,
        attributions,
        [*host.names, *(name for _, name in _GAPS)],
        floor,
        passes,
    )


def _gap_kinds(timeline: ThreadTimeline, starts: Ints, in_pass: Bools, *, is_busiest: bool) -> Ints:
    """The kind of uncovered time, per piece."""
    first, last = timeline.extent
    inside = (starts >= first) & (starts < last)
    if is_busiest:
        kind = np.where(in_pass, _BACKWARD_GAP, _PYTHON_GAP if timeline.has_operators else _UNKNOWN_GAP)
        return np.where(inside | in_pass, kind, _OUTSIDE_GAP)
    if timeline.is_autograd:
        return np.where(inside, np.where(in_pass, _ENGINE_GAP, _IDLE_GAP), _OUTSIDE_GAP)
    return np.where(inside, _UNKNOWN_GAP, _OUTSIDE_GAP)


def view_ns(timelines: Sequence[ThreadTimeline]) -> int | None:
    """Median self time of the trace's view operators, which dispatch and compute nothing; None if it has none."""
    is_view = passing(timelines[0].host.names, torch_names.VIEWS.__contains__)
    return _median_ns([line.self_ns[is_view[line.host.name[line.events]] & ~line.launches_below] for line in timelines])


def call_ns(timelines: Sequence[ThreadTimeline]) -> int | None:
    """Median self time of the trace's operators that only call others, which compute nothing either; None if it has none."""
    calls = passing(timelines[0].host.names, torch_names.COMPOSITES.__contains__)
    return _median_ns([line.self_ns[calls[line.host.name[line.events]] & line.calls_operators] for line in timelines])


def dispatch_floor(timelines: Sequence[ThreadTimeline]) -> DispatchFloor | None:
    """Multiples of what a view of the trace takes; None if nothing shows that, or the clock is too coarse for it.

    Operators that only call others take as long as two views.
    """
    view = view_ns(timelines)
    if view is not None:
        return _floor(view)
    call = call_ns(timelines)
    return None if call is None else _floor(call // _VIEWS_OF_CALL, of_views=False)


def _median_ns(self_ns: Sequence[Ints]) -> int | None:
    together = np.concatenate(self_ns)
    return int(np.percentile(together, 50, method="lower")) if len(together) else None


def _floor(view: int, *, of_views: bool = True) -> DispatchFloor | None:
    return DispatchFloor(_OF_VIEW * view, _LEAST_OF_VIEW * view, _MOST_OF_VIEW * view, of_views) if view else None


def host_budgets(pieces: ThreadPieces, windows: Sequence[Window]) -> list[tuple[HostCategory, ...]]:
    """Every host category over each of ``windows``, inside the trace's; they sum to it exactly."""
    parts = cut(*bounds_of(windows), pieces.start_ns, pieces.start_ns + pieces.dur_ns)
    # Several of the thread's attributions may be alike.
    attributions = list(dict.fromkeys((*pieces.attributions, _DISPATCH, _KERNEL)))
    numbers = {each: at for at, each in enumerate(attributions)}
    number = np.array([numbers[each] for each in pieces.attributions])
    moved = _kernel_estimate(pieces, parts)
    counts = (len(windows), len(attributions), len(pieces.names))
    key = np.ravel_multi_index((number[pieces.attribution], pieces.name), counts[1:])[parts.piece]
    key += parts.interval * (counts[1] * counts[2])
    moved_keys = (
        np.ravel_multi_index((moved.window, np.full_like(moved.name, each), moved.name), counts)
        for each in (numbers[_DISPATCH], numbers[_KERNEL])
    )
    keys = np.concatenate((key, *moved_keys))
    number, first = numbered(keys)
    sums_ns = sum_by(number, np.concatenate((parts.dur_ns, -moved.ns, moved.ns)), len(first))
    spent: list[_Spent] = [[] for _ in windows]
    combinations = (each.tolist() for each in (*np.unravel_index(keys[first], counts), sums_ns))
    for window, attribution, name, ns in zip(*combinations, strict=True):
        if ns:
            spent[window].append((attribution, pieces.names[name], ns))
    less_ns, more_ns = (sum_by(moved.window, ns, len(windows)).tolist() for ns in (moved.less_ns, moved.more_ns))
    return [
        _categories(attributions, *each)
        for each in zip(spent, (window.wall_ns for window in windows), less_ns, more_ns, strict=True)
    ]


class _Moved(NamedTuple):
    """Time that is kernel, not dispatch, by estimate; int64 arrays.

    Attributes:
        window, name: Number of the window and of the operator's name.
        less_ns, more_ns: How much of ``ns`` may be dispatch, and how much more may be kernel.
    """

    window: Ints
    name: Ints
    ns: Ints
    less_ns: Ints
    more_ns: Ints


def _kernel_estimate(pieces: ThreadPieces, parts: Piece) -> _Moved:
    """Time beyond its dispatch of each event in each window."""
    owner, count = pieces.owner[parts.piece], len(pieces.timeline.events)
    chosen = pieces.computing(owner)
    if pieces.floor is None or not len(chosen):
        return _Moved(*[owner[:0]] * 5)
    window, event = parts.interval[chosen], owner[chosen]
    number, first = numbered(window * count + event)
    own_ns, (floor_ns, low_ns, high_ns, _) = sum_by(number, parts.dur_ns[chosen], len(first)), pieces.floor
    ns, least_ns, most_ns = (np.maximum(own_ns - each, 0) for each in (floor_ns, high_ns, low_ns))
    name = pieces.timeline.host.name[pieces.timeline.events[event[first]]]
    return _Moved(window[first], name, ns, ns - least_ns, most_ns - ns)


def _categories(
    attributions: Sequence[Attribution], spent: _Spent, wall_ns: int, less_ns: int, more_ns: int
) -> tuple[HostCategory, ...]:
    """Every category of one window; up to ``less_ns`` of the kernel may be dispatch, up to ``more_ns`` of dispatch kernel."""
    own: dict[str, dict[int, int]] = {category: {} for category in HOST_CATEGORIES}
    frames: dict[str, dict[str, int]] = {category: {} for category in HOST_CATEGORIES}
    for attribution, name, ns in spent:
        category = attributions[attribution].category
        mine, named = own[category], frames[category]
        mine[attribution] = mine.get(attribution, 0) + ns
        named[name] = named.get(name, 0) + ns
    errors_ns = {_KERNEL.category: (less_ns, more_ns), _DISPATCH.category: (more_ns, less_ns)}
    return tuple(
        _category(
            category,
            {attributions[number]: ns for number, ns in mine.items()},
            frames[category],
            wall_ns,
            errors_ns.get(category, (0, 0)),
        )
        for category, mine in own.items()
    )


def _category(
    category: str, own: Mapping[Attribution, int], frames: Mapping[str, int], wall_ns: int, errors_ns: tuple[int, int]
) -> HostCategory:
    if not own and not any(errors_ns):
        return _EMPTY[category]
    ns = sum(own.values())
    top = sorted(sorted(frames.items()), key=itemgetter(1), reverse=True)[:_MOST_FRAMES]
    return HostCategory(
        category,
        ns,
        (ns - errors_ns[0], ns + errors_ns[1]),
        ns / wall_ns,
        "estimate" if any(errors_ns) else "trace",
        parts_of(category, ns, own),
        tuple(Frame(name, frame_ns) for name, frame_ns in top),
    )
