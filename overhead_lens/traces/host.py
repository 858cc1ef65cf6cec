"""Host events with their attributions, and the owner of each instant of a thread.

Annotations are transparent: an instant belongs to the operator, runtime call or Python function that is open then, also
where an annotation started later; an annotation owns what nothing else covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Bools, Ints, numbered, taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.native_functions import EXTENSION, KERNEL, UNKNOWN, by_caller
from overhead_lens.taxonomy.rules import NEUTRAL, Attribution
from overhead_lens.traces.columns import passing, where
from overhead_lens.traces.intervals import distinct_values
from overhead_lens.traces.timeline import Nesting, Segments, laid_over, nearest, sweep
from overhead_lens.traces.window import Window

OPERATORS = frozenset({"cpu_op", "Operator", "operator"})
_VENDORS = ("cuda", "hip", "xpu", "mtia", "privateuse1")
RUNTIME = frozenset(
    {"Runtime", "runtime", *(f"{vendor}_{level}" for vendor in _VENDORS for level in ("runtime", "driver"))}
)
PYTHON = frozenset({"python_function"})
ANNOTATIONS = frozenset({"user_annotation"})
HOST_EVENTS = OPERATORS | RUNTIME | PYTHON | ANNOTATIONS | {""}
"""Categories of events on host threads; "" is an event of a trace that names no categories."""

# They are placed one by one; a recording has a few.
_MOST_PAUSES = 1_000

_NO_ATTRIBUTION = -1

_USER = Attribution("python", "user")
_DISPATCH = Attribution("dispatcher", "dispatch")
_LAUNCH, _DEVICE_WAIT = Attribution("launch"), Attribution("wait", "device")
_BINDING, _COMPILED = Attribution("python", "binding"), Attribution("python", "compiled_runtime")


@dataclass(frozen=True)
class HostEvents:
    """The host events of a trace with their attributions by the rules.

    Attributes:
        rows: int32: their rows in the event frame; every other array is of this length.
        start_ns, dur_ns: int64.
        thread: int32: number in ``threads``.
        name: int32: number in ``names``.
        attribution: int32: number in ``attributions``, by the event's own name; a neutral event's is its caller's.
        scope: bool: whether everything below has the same attribution.
        operator, runtime, python, annotation: bool: what the event is; ``annotation`` only where it is transparent.
        threads: (pid, tid) per thread.
    """

    rows: Ints
    start_ns: Ints
    dur_ns: Ints
    thread: Ints
    name: Ints
    attribution: Ints
    scope: Bools
    operator: Bools
    runtime: Bools
    python: Bools
    annotation: Bools
    threads: Sequence[tuple[str, str]]
    names: Sequence[str]
    attributions: Sequence[Attribution]

    def places(self, rows: Ints) -> Ints:
        """The position here of each row of the event frame; -1 for another row, and for -1."""
        if not len(self.rows):
            return np.full(len(rows), -1, dtype=np.int64)
        rows = rows.astype(self.rows.dtype, copy=False)
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[at] == rows, at, -1)

    def among(self, rows: Ints) -> Ints:
        """The positions here of some rows of the event frame, ascending, each once; other rows are left out."""
        at = self.places(distinct_values(rows))
        return at[at >= 0]

    @property
    def unknown(self) -> int:
        """The attribution of compiled code whose kernels nothing tells from its Python."""
        return self.attributions.index(UNKNOWN)

    @cached_property
    def around(self) -> Around:
        """What is open around each of them, and at any instant of their threads."""
        return Around(self)


def host_events(events: Events, classifier: Classifier) -> HostEvents:
    """Select and classify the host events of an event frame."""
    cat, name = events["cat"], events["name"]
    rows, of_thread = _with_pauses(events, np.flatnonzero(where(events["cat"], HOST_EVENTS.__contains__)))
    cat_codes, name_codes = (column.codes[rows].astype(np.int64) for column in (cat, name))
    thread, threads = threads_of(events, of_thread)
    pair, pairs = distinct(name_codes * len(cat.categories) + cat_codes)
    numbers = {attribution: at for at, attribution in enumerate((EXTENSION, KERNEL, UNKNOWN, _USER))}
    of_name, of_cat = np.divmod(pairs, max(1, len(cat.categories)))
    named = zip(name.categories[of_name], cat.categories[of_cat], strict=True)
    verdicts = [classifier.event_verdict(*each) for each in named]
    given = [
        _NO_ATTRIBUTION if verdict.category == NEUTRAL else numbers.setdefault(verdict, len(numbers))
        for verdict, _ in verdicts
    ]
    attribution = np.array(given or [0], dtype=np.int32)
    scope = passing(verdicts, lambda verdict: verdict[1])
    is_user = passing(verdicts, lambda verdict: verdict[0] == _USER)
    host = HostEvents(
        rows.astype(np.int32),
        events["start_ns"][rows],
        events["dur_ns"][rows],
        thread.astype(np.int32),
        name_codes.astype(np.int32),
        attribution[pair],
        scope[pair],
        passing(cat.categories, OPERATORS.__contains__)[cat_codes],
        passing(cat.categories, RUNTIME.__contains__)[cat_codes],
        passing(cat.categories, PYTHON.__contains__)[cat_codes],
        passing(cat.categories, ANNOTATIONS.__contains__)[cat_codes] & is_user[pair],
        threads,
        list(name.categories),
        list(numbers),
    )
    _inherit(host)
    return host


def _inherit(host: HostEvents) -> None:
    """Give neutral events the attribution of the innermost other event around them, or the user's.

    C functions are passed over: ``isinstance`` calls ``__instancecheck__`` for the Python code that called it.
    """
    neutral = host.attribution == _NO_ATTRIBUTION
    if neutral.any():
        is_c = passing(host.attributions, _BINDING.__eq__)[host.attribution]
        caller = host.around.nearest(~neutral & ~is_c & ~host.annotation)[neutral]
        host.attribution[neutral] = np.where(caller >= 0, host.attribution[caller], host.attributions.index(_USER))


def pausing(events: Events) -> Bools:
    """Bool per event: whether the profiler itself stops the thread that it records."""
    pauses: Bools = where(events["name"], torch_names.PROFILER_PAUSE.__eq__)
    pauses &= where(events["cat"], torch_names.PROFILER_OVERHEAD.__eq__)
    return pauses


def _with_pauses(events: Events, rows: Ints) -> tuple[Ints, Ints]:
    """The rows with those of the profiler's pauses, and for each a row of its thread.

    A pause names no thread: it interrupts the innermost operator or Python function that is open all the while, if there is one.
    """
    pauses = np.flatnonzero(pausing(events))[:_MOST_PAUSES]
    if not len(pauses):
        return rows, rows
    start_ns = events["start_ns"]
    end_ns = start_ns + events["dur_ns"]
    begun = np.sort(start_ns[pauses])
    able = rows[where(events["cat"], (OPERATORS | PYTHON).__contains__)[rows]]
    able = able[np.searchsorted(begun, start_ns[able], "left") < np.searchsorted(begun, end_ns[able], "right")]
    of_thread = {}
    for pause in pauses.tolist():
        around = able[(start_ns[able] <= start_ns[pause]) & (end_ns[able] >= end_ns[pause])]
        if len(around):
            of_thread[pause] = int(around[np.argmax(start_ns[around])])
    together = np.sort(np.concatenate([rows, np.array(list(of_thread), dtype=np.int64)]))
    replaced = together.copy()
    replaced[np.searchsorted(together, list(of_thread))] = list(of_thread.values())
    return together, replaced


def distinct(values: Ints) -> tuple[Ints, Ints]:
    """For each value, its index among the distinct values, and the distinct values, ascending."""
    number, first = numbered(values)
    order = np.argsort(values[first], kind="stable")
    place = np.empty(len(first), dtype=np.int64)
    place[order] = np.arange(len(first))
    return place[number], values[first[order]]


def of_each(number: Ints, count: int) -> list[Ints]:
    """The places of each number below ``count``, ascending, int32; -1 is left out."""
    # Small integers are sorted by radix.
    small = number.astype(np.min_scalar_type(-1 - count))
    order = np.argsort(small, kind="stable").astype(np.int32)
    edges = np.cumsum(np.bincount(small + 1, minlength=count + 1)[: count + 1])
    return [order[first:past] for first, past in pairwise(edges.tolist())]


def threads_of(events: Events, rows: Ints) -> tuple[Ints, list[tuple[str, str]]]:
    """The thread of each row as a number, and (pid, tid) by number."""
    pid, tid = events["pid"], events["tid"]
    count = max(1, len(tid.categories))
    number, keys = distinct(pid.codes[rows].astype(np.int64) * count + tid.codes[rows])
    return number, [(pid.categories[key // count], tid.categories[key % count]) for key in keys.tolist()]


class Around:
    """What is open around each host event, and at any instant of its thread.

    Attributes:
        threads: int32: the events of each thread, by its number.
        nestings: Of each thread.
    """

    def __init__(self, host: HostEvents) -> None:
        by_thread = of_each(host.thread, len(host.threads))
        # Files have Python functions behind operators: of two alike, as by a clock of whole us, the function is the outer one.
        self.threads = [events[np.argsort(~host.python[events], kind="stable")] for events in by_thread]
        self.nestings = [Nesting(host.start_ns[events], host.dur_ns[events]) for events in self.threads]
        self._parent = np.full(len(host.thread), -1, dtype=np.int32)
        for events, nesting in zip(self.threads, self.nestings, strict=True):
            self._parent[events] = taken(events, nesting.parent)

    def nearest(self, marked: Bools, *, outermost: bool = False) -> Ints:
        """Per host event, the innermost (or outermost) marked event at or around it; -1 for none."""
        return nearest(self._parent, marked, outermost=outermost)

    def nearest_of(self, events: Sequence[int], marked: Bools, *, outermost: bool = False) -> list[int]:
        """The same for some host events only, quick for a few of them."""
        around = ([each for each in self.outward(event) if marked[each]] for event in events)
        return [chain[-1 if outermost else 0] if chain else -1 for chain in around]

    def outward(self, event: int) -> Iterator[int]:
        """A host event and all that are open around it, the innermost first; nothing for -1."""
        while event >= 0:
            yield event
            event = int(self._parent[event])

    def open_at(self, thread: Ints, instants_ns: Ints) -> Ints:
        """The host event that is open at each instant of a thread (-1 for none) and started last; -1 for none."""
        open_event = np.full(len(thread), -1, dtype=np.int64)
        by_thread = of_each(thread, len(self.threads))
        for mine, events, nesting in zip(by_thread, self.threads, self.nestings, strict=True):
            open_event[mine] = taken(events, nesting.open_at(instants_ns[mine]))
        return open_event


class ThreadTimeline:
    """One host thread: what its events are, and how long each of them owns.

    Args:
        segments: Who owns each instant of the window (``owned``).

    Attributes:
        events: int32: the thread's events, as positions in ``host``; arrays per event are of this length.
        attribution: int32 per event: number in ``host.attributions``, scopes considered.
        self_ns: int64 per event.
        covered_ns: Time covered by any of its events.
        working_ns: Self time of its operators and runtime calls; waits for a device count for a thread that launches.
        launches_below: bool per event: whether it is a runtime call or anything that it called is.
        calls_operators: bool per event: whether an operator begins directly below it.
        computes: bool per event: operators that launched nothing and may hold a CPU kernel: no views, no composites.
        hides_kernels: Whether compiled code computes where nothing tells its kernels from its Python.
        crossing_count: Events that end after the event they began in.
        extent: Start of the first and end of the last event that lasts.
        is_autograd: Whether autograd's engine evaluating nodes takes nearly all of the time of what begins on the thread. Where
            backward passes run on the CPU they share the main thread with forward passes.
        has_operators: Whether operators or Python functions were recorded on it.
    """

    def __init__(self, host: HostEvents, number: int, window: Window, segments: Segments) -> None:
        self.host = host
        self.number = number
        self.events = host.around.threads[number]
        start_ns, dur_ns = host.start_ns[self.events], host.dur_ns[self.events]
        annotation, runtime = host.annotation[self.events], host.runtime[self.events]
        operator, python, name = host.operator[self.events], host.python[self.events], host.name[self.events]
        nesting = host.around.nestings[number]
        attribution = host.attribution[self.events]
        scope = nearest(nesting.parent, host.scope[self.events], outermost=True)
        self.attribution = np.where(scope >= 0, attribution[scope], attribution)
        self.launches_below = nesting.mark_above(runtime)
        self.calls_operators = np.zeros(len(self.events), dtype=bool)
        self.calls_operators[nesting.parent[operator & (nesting.parent >= 0)]] = True
        works = operator | runtime
        self._decide_by_caller(nesting.parent, nesting.mark_above(works))
        code = passing(host.names, torch_names.COMPILED_CODE.match)[name]
        code &= passing(host.attributions, _COMPILED.__eq__)[self.attribution]
        self.attribution[unresolved(nesting, code, runtime | python)] = host.unknown
        dispatches = passing(host.attributions, _DISPATCH.__eq__)[self.attribution]
        self.computes = operator & dispatches & ~self.launches_below & passing(host.names, _may_hold_kernel)[name]
        self.self_ns = segments.self_ns(len(self.events))
        self.covered_ns = window.wall_ns - segments.uncovered_ns()
        self.crossing_count = nesting.crossing_count
        if not passing(host.attributions, _LAUNCH.__eq__)[self.attribution].any():
            works &= ~passing(host.attributions, _DEVICE_WAIT.__eq__)[self.attribution]
        self.working_ns = int(self.self_ns[works].sum())
        lasting = np.flatnonzero(dur_ns > 0)
        ends = start_ns[lasting] + dur_ns[lasting]
        self.extent = (int(start_ns[lasting].min()), int(ends.max())) if len(lasting) else (0, 0)
        top = np.flatnonzero(nesting.parent < 0)
        engine = passing(
            host.names, lambda name: name.startswith(torch_names.ENGINE_PREFIX) or torch_names.OLD_NODE.match(name)
        )
        in_engine = engine[name[top]] & ~annotation[top]
        self.is_autograd = bool(in_engine.any()) and 5 * int(dur_ns[top][in_engine].sum()) >= 4 * int(dur_ns[top].sum())
        self.hides_kernels = bool(((self.attribution == host.unknown) & (attribution != host.unknown)).any())
        self.has_operators = bool((operator | python).any())

    def _decide_by_caller(self, caller: Ints, calls_torch: Bools) -> None:
        """Attribute C functions by their callers, where their own names do not tell."""
        host = self.host
        chosen = np.flatnonzero(passing(host.attributions, _BINDING.__eq__)[self.attribution] & (caller >= 0))
        if not len(chosen):
            return
        names = host.name[self.events]
        columns = names[chosen], names[caller[chosen]], calls_torch[chosen], self.launches_below[chosen]
        counts = len(host.names), len(host.names), 2, 2
        case, cases = distinct(np.ravel_multi_index(columns, counts))
        decided = [
            by_caller(host.names[function], host.names[around], calls_torch=bool(torch), launches=bool(launches))
            for function, around, torch, launches in zip(*np.unravel_index(cases, counts), strict=True)
        ]
        numbers = [-1 if attribution is None else host.attributions.index(attribution) for attribution in decided]
        number = np.array(numbers)[case]
        self.attribution[chosen[number >= 0]] = number[number >= 0]


def _may_hold_kernel(name: str) -> bool:
    return name not in torch_names.WITHOUT_KERNEL and not torch_names.communicates(name)


def unresolved(nesting: Nesting, code: Bools, shown: Bools) -> Bools:
    """Bool per event of a thread: compiled code whose own time is kernels and Python together.

    Args:
        code: Whether an event is compiled code that runs; the innermost one holds the kernels.
        shown: Whether an event tells what compiled code around it does: a call that launches, or a Python function.
    """
    outer = nearest(nesting.parent, code)[nesting.parent[code & (nesting.parent >= 0)]]
    innermost = code & ~nesting.mark_above(shown)
    innermost[outer[outer >= 0]] = False
    return innermost


def owned(host: HostEvents, number: int, window: Window) -> Segments:
    """Pieces of the window with their owners, as positions among the events of a thread; annotations own uncovered time."""
    events, bounds = host.around.threads[number], window.bounds
    start_ns, dur_ns, annotation = host.start_ns[events], host.dur_ns[events], host.annotation[events]
    if not annotation.any():
        return sweep(start_ns, dur_ns, bounds)
    work, marks = (np.flatnonzero(chosen).astype(np.int32) for chosen in (~annotation, annotation))
    upper = sweep(start_ns[work], dur_ns[work], bounds)
    if not len(upper.start_ns):
        return upper
    lower = sweep(start_ns[marks], dur_ns[marks], bounds)
    starts, piece, mark = laid_over(upper.start_ns, lower)
    owner = np.where(upper.owner[piece] >= 0, taken(work, upper.owner[piece]), taken(marks, mark))
    return Segments(starts, np.diff(np.append(starts, bounds[1])), owner)
