"""A budget in instructions from callgrind's call graph, by the classifier that reads stacks.

The classifier carries a claim from caller to callee. A call graph has no stacks: it says what a function cost for each of its
callers, not for each caller's caller. So claims are spread over edges in proportion to inclusive counts, as gprof does with
time: a function that was entered from ``allocation`` for 30 of its 100 instructions gives 30 % of its own, and 30 % of what
goes to each of its callees, to the claims that follow from ``allocation``::

    dispatcher --70--> malloc (neutral)  self 60: 42 dispatcher, 18 allocation
    allocation --30--'        `--40--> _int_malloc (neutral)  28 dispatcher, 12 allocation

Where callgrind kept contexts apart (``--separate-callers``, as our captures do), a function of the graph has one caller and this
is exact for as many levels as were kept. In cycles the shares are those that repeated spreading settles at.

What has no caller in the graph was called by the measured loop, which is Python. Callgrind sees the interpreter as C code and
no Python function: ``_PyEval_EvalFrameDefault`` stands for Python code of any file, part ``interpreter``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from overhead_lens.budget.model import (
    InstructionBudget,
    InstructionCategory,
    InstructionFrame,
    InstructionPart,
    per_call,
)
from overhead_lens.budget.shares import KERNEL
from overhead_lens.errors import MeasurementError
from overhead_lens.readers.callgrind import TRUNCATED, CallGraph, Function
from overhead_lens.stack import StackFrame
from overhead_lens.taxonomy.categories import HOST_CATEGORIES, PARTS
from overhead_lens.taxonomy.classifier import Carried, Classifier
from overhead_lens.taxonomy.names import display_name
from overhead_lens.taxonomy.rules import Attribution
from overhead_lens.units import round_to_sum

INTERPRETER = "interpreter"

_EVALUATION = "_PyEval_EvalFrame"
_PYTHON_CODE = StackFrame("", "", 0, native=False)
_ANONYMOUS_CODE = StackFrame("", "?", 0, native=True)
_STUB_INSTRUCTIONS = 4

# Where a function spends less than this share under a claim, repeated spreading has settled.
_SETTLED = 1e-12
_MOST_ROUNDS = 2_000

_SUFFIX = re.compile(r"(?: \[clone [^]]*\]|@@?[\w.]+| const| &&?)$")

Shares = dict[Carried, float]


def instruction_budget(graph: CallGraph, calls: int, classifier: Classifier) -> InstructionBudget:
    """The budget of one of ``calls`` measured calls.

    Raises:
        MeasurementError: The counts are cut off or empty: the message says so.
    """
    if TRUNCATED in graph.issues:
        raise MeasurementError("callgrind's output is cut off")
    if graph.total_count == 0:
        raise MeasurementError("callgrind counted no instruction in the measured loop")
    counts: Counter[Attribution] = Counter()
    frames: dict[str, Counter[str]] = {name: Counter() for name in HOST_CATEGORIES}
    for function, own, shares in zip(graph.functions, graph.self_counts, spread(graph, classifier), strict=True):
        for carried, share in shares.items():
            counts[carried.attribution] += own * share  # type: ignore[assignment]
            frames[carried.attribution.category][display_name(_native(function))] += own * share  # type: ignore[assignment]
    count = per_call(graph.total_count, calls)
    by_category = [
        sum(value for attribution, value in counts.items() if attribution.category == name) for name in HOST_CATEGORIES
    ]
    whole = _whole(by_category, count)
    host = tuple(
        InstructionCategory(name, whole_count, _parts(name, whole_count, counts), _frames_per_call(frames[name], calls))
        for name, whole_count in zip(HOST_CATEGORIES, whole, strict=True)
    )
    return InstructionBudget(count, graph.total_count, calls, host)


def spread(graph: CallGraph, classifier: Classifier) -> list[Shares]:
    """For each function of the graph, the shares of its own instructions by what is carried at it; they sum to 1."""
    size = len(graph.functions)
    incoming: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    outgoing: list[list[int]] = [[] for _ in range(size)]
    spent, received = list(graph.self_counts), [0] * size
    for edge in graph.edges:
        if edge.inclusive_count and edge.caller != edge.callee:
            incoming[edge.callee].append((edge.caller, edge.inclusive_count))
            outgoing[edge.caller].append(edge.callee)
            spent[edge.caller] += edge.inclusive_count
            received[edge.callee] += edge.inclusive_count
    from_loop = [max(0, spent[index] - received[index]) for index in range(size)]
    frames = _frames(graph)
    classifier = classifier.knowing(_working(graph, frames, classifier))
    python = classifier.enter(_PYTHON_CODE, Carried())
    shares: list[Shares] = [{} for _ in range(size)]
    order = _callers_first(incoming, outgoing)
    for _ in range(_MOST_ROUNDS):
        change = 0.0
        for index in order:
            entered: Shares = {python: from_loop[index] / (from_loop[index] + received[index] or 1)}
            for caller, inclusive in incoming[index]:
                for carried, share in shares[caller].items():
                    weight = share * inclusive / (from_loop[index] + received[index])
                    entered[carried] = entered.get(carried, 0.0) + weight
            found: Shares = {}
            for carried, share in entered.items():
                below = _enter(classifier, frames[index], carried)
                found[below] = found.get(below, 0.0) + share
            before = shares[index]
            change = max(change, *(abs(share - before.get(carried, 0.0)) for carried, share in found.items()))
            shares[index] = found
        if change <= _SETTLED:
            break
    return [_normalized(each, _enter(classifier, frame, python)) for each, frame in zip(shares, frames, strict=True)]


def native_symbol(symbol: str) -> str:
    """A demangled C++ name as the sampler writes it: without argument list, version, clone and qualifiers."""
    while (shorter := _SUFFIX.sub("", symbol)) != symbol:
        symbol = shorter
    if not symbol.endswith(")"):
        return symbol
    depth = 0
    for position in range(len(symbol) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(symbol[position], 0)
        if depth == 0:
            kept = symbol[:position]
            bare = not kept or kept.endswith(("operator", "::", " "))
            return symbol if bare else kept
    return symbol


def _enter(classifier: Classifier, frame: StackFrame | None, carried: Carried) -> Carried:
    return carried if frame is None else classifier.enter(frame, carried)


def _frames(graph: CallGraph) -> list[StackFrame | None]:
    """Each function as the classifier knows it; None for a jump stub, which belongs to whoever jumps.

    Code outside of every object's text is a linker's stub (``.plt.got``), a few instructions long, or compiled at run time.
    """
    calls: Counter[int] = Counter()
    for edge in graph.edges:
        calls[edge.callee] += edge.call_count
    frames: list[StackFrame | None] = []
    for index, (function, own) in enumerate(zip(graph.functions, graph.self_counts, strict=True)):
        if function.symbol.startswith(_EVALUATION):
            frames.append(_PYTHON_CODE)
        elif function.symbol or function.module:
            frames.append(_native(function))
        elif own <= _STUB_INSTRUCTIONS * max(1, calls[index]):
            frames.append(None)
        else:
            frames.append(_ANONYMOUS_CODE)
    return frames


def _working(graph: CallGraph, frames: Sequence[StackFrame | None], classifier: Classifier) -> frozenset[str]:
    """Symbols that may do the work themselves and do: most under them is theirs, or of what serves them."""
    own: Counter[str] = Counter()
    others: Counter[str] = Counter()
    found = [frame is not None and classifier.may_work(frame) for frame in frames]
    for frame, works, count in zip(frames, found, graph.self_counts, strict=True):
        if frame is not None and works:
            own[frame.function] += count
    for edge in graph.edges:
        caller, callee = frames[edge.caller], frames[edge.callee]
        if caller is None or not found[edge.caller] or edge.caller == edge.callee:
            continue
        serves = callee is None or classifier.serves(callee, KERNEL)
        (own if serves else others)[caller.function] += edge.inclusive_count
    return frozenset(symbol for symbol, count in own.items() if count > others[symbol])


def _native(function: Function) -> StackFrame:
    return StackFrame(native_symbol(function.symbol), function.module, 0, native=True)


def _callers_first(incoming: Sequence[Sequence[tuple[int, int]]], outgoing: Sequence[Sequence[int]]) -> list[int]:
    """All functions, callers before callees where there is no cycle: one round of spreading then settles them."""
    missing = [len({caller for caller, _ in callers}) for callers in incoming]
    ready = [index for index, count in enumerate(missing) if count == 0]
    order: list[int] = []
    while ready:
        index = ready.pop()
        order.append(index)
        for callee in dict.fromkeys(outgoing[index]):
            missing[callee] -= 1
            if missing[callee] == 0:
                ready.append(callee)
    seen = set(order)
    return order + [index for index in range(len(incoming)) if index not in seen]


def _normalized(shares: Shares, otherwise: Carried) -> Shares:
    """Shares that sum to 1; a cycle that nothing entered is the loop's."""
    total = sum(shares.values())
    return {carried: share / total for carried, share in shares.items()} if total > 0 else {otherwise: 1.0}


def _whole(values: Sequence[float], total: int) -> list[int]:
    """Integers in proportion to ``values`` that sum to ``total``."""
    whole = sum(values)
    return round_to_sum([value * total / whole for value in values], total) if whole else [0] * len(values)


def _parts(category: str, count: int, counts: Mapping[Attribution, float]) -> tuple[InstructionPart, ...]:
    if category not in PARTS or count == 0:
        return ()
    names = [part for part in PARTS[category] if part != "framework"] if category == "python" else list(PARTS[category])
    raw = dict.fromkeys(names, 0.0)
    for attribution, value in counts.items():
        if attribution.category == category:
            part = names[0] if attribution.part not in raw else attribution.part
            raw[part] += value
    labels = [INTERPRETER if name == "user" else name for name in raw]
    return tuple(
        InstructionPart(label, part) for label, part in zip(labels, _whole(list(raw.values()), count), strict=True)
    )


def _frames_per_call(frames: Counter[str], calls: int) -> tuple[InstructionFrame, ...]:
    largest = sorted(frames.items(), key=lambda item: (-item[1], item[0]))
    return tuple(InstructionFrame(frame, round(value / calls)) for frame, value in largest if round(value / calls))
