"""Divides instructions among categories: callgrind's call graph, read by the classifier of stacks.

The classifier carries an attribution from caller to callee. A call graph knows a function's cost per caller, and not per
caller's caller. So attributions are spread over edges in proportion to inclusive counts, as gprof spreads time: a function that
was entered from ``allocation`` for 30 of its 100 instructions gives ``allocation`` 30 % of its own and of its callees'::

    dispatcher --70--> malloc (neutral)  self 60: 42 dispatcher, 18 allocation
    allocation --30--'        `--40--> _int_malloc (neutral)  28 dispatcher, 12 allocation

This is exact for as many levels as callgrind kept apart (``--separate-callers``). Cycles are spread until they converge.

A function without a caller in the graph was called by the measured loop, which is Python. Callgrind sees the interpreter and no
Python function: ``_PyEval_EvalFrameDefault`` is the Python code of any file, part ``interpreter``.
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
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import Carried, Classifier
from overhead_lens.taxonomy.host import parts_of
from overhead_lens.taxonomy.names import display_name
from overhead_lens.taxonomy.rules import Attribution
from overhead_lens.units import proportional

INTERPRETER = "interpreter"
_TOLD_BY_FILE = frozenset({"framework", "library", "import"})

_EVALUATION = "_PyEval_EvalFrame"
_PYTHON_CODE = StackFrame("", "", 0, native=False)
_ANONYMOUS_CODE = StackFrame("", "?", 0, native=True)
_STUB_INSTRUCTIONS = 4

# Spreading has converged when no share of a function changes by more.
_CONVERGED = 1e-12
_MOST_ROUNDS = 2_000

_SUFFIX = re.compile(r"(?: \[clone [^]]*\]|@@?[\w.]+| const| &&?)$")

_Shares = dict[Carried, float]


def instruction_budget(graph: CallGraph, calls: int, classifier: Classifier) -> InstructionBudget:
    """The budget of one of ``calls`` measured calls.

    Raises:
        MeasurementError: The counts are truncated or empty.
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
    host = tuple(
        InstructionCategory(name, own, _parts(name, own, counts), _frames_per_call(frames[name], calls))
        for name, own in zip(HOST_CATEGORIES, proportional(by_category, count), strict=True)
    )
    return InstructionBudget(count, graph.total_count, calls, host)


def spread(graph: CallGraph, classifier: Classifier) -> list[_Shares]:
    """Shares of each function's own instructions by carried attribution; they sum to 1."""
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
    shares: list[_Shares] = [{} for _ in range(size)]
    order = _callers_first(incoming, outgoing)
    for _ in range(_MOST_ROUNDS):
        change = 0.0
        for index in order:
            entering: _Shares = {python: from_loop[index] / (from_loop[index] + received[index] or 1)}
            for caller, inclusive in incoming[index]:
                for carried, share in shares[caller].items():
                    weight = share * inclusive / (from_loop[index] + received[index])
                    entering[carried] = entering.get(carried, 0.0) + weight
            inside: _Shares = {}
            for carried, share in entering.items():
                below = _enter(classifier, frames[index], carried)
                inside[below] = inside.get(below, 0.0) + share
            before = shares[index]
            change = max(change, *(abs(share - before.get(carried, 0.0)) for carried, share in inside.items()))
            shares[index] = inside
        if change <= _CONVERGED:
            break
    return [
        _normalized(inside, _enter(classifier, frame, python)) for inside, frame in zip(shares, frames, strict=True)
    ]


def native_symbol(symbol: str) -> str:
    """A demangled C++ name without argument list, version, clone and qualifiers, as the sampler writes it."""
    while (shorter := _SUFFIX.sub("", symbol)) != symbol:
        symbol = shorter
    if not symbol.endswith(")"):
        return symbol
    depth = 0
    for position in range(len(symbol) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(symbol[position], 0)
        if depth == 0:
            name = symbol[:position]
            return symbol if not name or name.endswith(("operator", "::", " ")) else name
    return symbol


def _enter(classifier: Classifier, frame: StackFrame | None, carried: Carried) -> Carried:
    return carried if frame is None else classifier.enter(frame, carried)


def _frames(graph: CallGraph) -> list[StackFrame | None]:
    """The functions as stack frames; None for a linker's jump stub, which inherits from its caller.

    A function without symbol and module is such a stub (``.plt.got``, a few instructions long) or was compiled at run time.
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
    """Symbols that may work and do: most instructions below them are theirs or serve them."""
    own: Counter[str] = Counter()
    others: Counter[str] = Counter()
    may_work = [frame is not None and classifier.may_work(frame) for frame in frames]
    for frame, works, count in zip(frames, may_work, graph.self_counts, strict=True):
        if frame is not None and works:
            own[frame.function] += count
    for edge in graph.edges:
        caller, callee = frames[edge.caller], frames[edge.callee]
        if caller is not None and may_work[edge.caller] and edge.caller != edge.callee:
            serves = callee is None or classifier.serves(callee, KERNEL)
            (own if serves else others)[caller.function] += edge.inclusive_count
    return frozenset(symbol for symbol, count in own.items() if count > others[symbol])


def _native(function: Function) -> StackFrame:
    return StackFrame(native_symbol(function.symbol), function.module, 0, native=True)


def _callers_first(incoming: Sequence[Sequence[tuple[int, int]]], outgoing: Sequence[Sequence[int]]) -> list[int]:
    """All functions, callers before callees outside of cycles: one round of spreading settles them."""
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


def _normalized(shares: _Shares, from_loop: Carried) -> _Shares:
    """Shares that sum to 1; a cycle without an entry is the loop's."""
    total = sum(shares.values())
    return {carried: share / total for carried, share in shares.items()} if total > 0 else {from_loop: 1.0}


def _parts(category: str, count: int, counts: Mapping[Attribution, float]) -> tuple[InstructionPart, ...]:
    return tuple(
        InstructionPart(INTERPRETER if part.name == "user" else part.name, part.ns)
        for part in parts_of(category, count, counts)
        if part.name not in _TOLD_BY_FILE
    )


def _frames_per_call(frames: Counter[str], calls: int) -> tuple[InstructionFrame, ...]:
    largest = sorted(frames.items(), key=lambda item: (-item[1], item[0]))
    return tuple(InstructionFrame(frame, round(value / calls)) for frame, value in largest if round(value / calls))
