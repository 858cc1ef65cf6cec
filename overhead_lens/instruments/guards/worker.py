"""Lists the guards of a compiled call, times each, and says why frames were compiled. Runs in the worker.

Guards are Dynamo's own objects (torch/csrc/dynamo/guards.cpp): a leaf guard can be called, and so can the root of their tree.
A leaf's time is that of calling it less that of calling the cheapest guard (some 5 ns of its own), so that the check remains;
the tree's is that of its root less the same call. The rest of the tree's time has no object to time.
"""

from __future__ import annotations

import inspect
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from overhead_lens.errors import first_line
from overhead_lens.worker.session import Session, operation
from overhead_lens.worker.workload import Workload

_REPEATS = 15
_CALLS = 1_000
_COLD_REPEATS = 15
_COLD_BUDGET_NS = 3_000_000_000
_FLUSH_BYTES = 64 << 20

# "... # return x + 1  # scenarios/add1.py:52 in add1 (HINT: ...)": torch/_dynamo/guards.py, get_verbose_code_part.
_CAUSE = re.compile(r"  # (?P<line>.*?)  # (?P<place>\S+:\d+ in \S+)|  # (?P<only>\S+:\d+ in \S+)")

# The base of a guard's source, and each step from there.
_BASE = re.compile(r"\b[LG](?=\[)")
_STEP = re.compile(r"\.\w+|\[[^\[\]]*\]")


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf guard with the object that it checks; ``reason`` if that is unknown."""

    guard: Any
    source: str
    value: Any
    reason: str | None
    owner: str


@operation
def list_guards(session: Session) -> dict[str, Any]:
    """Leaf guards of the cache entries of the measured function that its call checks, in checking order.

    Dynamo goes through the entries up to the first that fits, and moves that to the front (torch/csrc/dynamo/extra_state.cpp). So
    the call, made again and again, checks one entry, unless a program keeps them where they are; all are listed if none fits.

    Returns:
        The fields of ``record.Guards``; ``tree`` only where one entry is checked.
    """
    workload = session.workload
    listed: dict[str, Any] = {"guards": [], "tree": None, "reason": None, **_compilations()}
    try:
        from torch._dynamo.eval_frame import _debug_get_cache_entry_list as cache_entries

        function, values = _compiled(workload)
        entries = cache_entries(function.__code__)
        fitting = (number for number, entry in enumerate(entries, 1) if entry.guard_manager.root.check(values["L"]))
        entries = entries[: next(fitting, len(entries))]
        leaves = [leaf for entry in entries for leaf in _leaves(entry.guard_manager.root, values)]
    except Exception as error:
        return {**listed, "reason": f"this torch does not show its guards: {first_line(error)}"}
    calls = {number: (leaf.guard, leaf.value) for number, leaf in enumerate(leaves) if leaf.reason is None}
    if len(entries) == 1:
        calls[-1] = (entries[0].guard_manager.root.check, values["L"])
    try:
        warm, cold = _timed(calls)
    except Exception as error:
        warm, cold = {}, {}
        listed["reason"] = f"the guards cannot be timed: {first_line(error)}"
    files = _files_of_modules()
    listed["guards"] = [
        {**_describe(leaf, files), "warm_ns": warm.get(number), "cold_ns": cold.get(number), "reason": leaf.reason}
        for number, leaf in enumerate(leaves)
    ]
    if -1 in warm:
        listed["tree"] = {"warm_ns": warm[-1], "cold_ns": cold.get(-1)}
    return listed


def _compiled(workload: Workload) -> tuple[Any, dict[str, Any]]:
    """The function whose code Dynamo compiled, and the names in its guards: ``L`` its variables, ``G`` its globals, helpers.

    It is the workload's own, a module's ``forward``, or the wrapper around code of torch.
    """
    from torch._dynamo import guards

    function: Any = getattr(workload.call, "forward", workload.call)._torchdynamo_orig_callable  # noqa: SLF001
    if getattr(function, "__func__", None) is torch.nn.Module.__call__:
        function = function.__self__.forward
    plain = getattr(function, "__func__", function)
    itself = () if plain is function else (function.__self__,)
    bound = workload.call_once(partial(inspect.signature(plain).bind, *itself))
    bound.apply_defaults()
    around = inspect.getclosurevars(plain).nonlocals
    helpers = guards._get_closure_vars()  # noqa: SLF001
    return plain, {**helpers, "L": {**bound.arguments, **around}, "G": plain.__globals__}


def _leaves(manager: Any, scope: Mapping[str, Any]) -> list[_Leaf]:
    source = (manager.get_source() if hasattr(manager, "get_source") else "") or "L"
    value, reason = _value(source, scope)
    owner = _owner(source, scope)
    leaves = [_Leaf(leaf, source, value, reason, owner) for leaf in manager.get_leaf_guards()]
    for child in _children(manager):
        leaves += _leaves(child, scope)
    if hasattr(manager, "get_epilogue_lambda_guards"):
        leaves += [_Leaf(leaf, source, value, reason, owner) for leaf in manager.get_epilogue_lambda_guards()]
    return leaves


def _children(manager: Any) -> list[Any]:
    """The child managers in checking order, then the managers of a dict's items."""
    items = manager.get_key_value_managers() if hasattr(manager, "get_key_value_managers") else {}
    pairs = [each for _, pair in sorted(items.items()) for each in pair if each is not None]
    return [*manager.get_child_managers(), *pairs]


def _value(source: str, scope: Mapping[str, Any]) -> tuple[Any, str | None]:
    try:
        return eval(source, dict(scope)), None  # noqa: S307 (Dynamo's own text)
    except Exception as error:
        return None, f"its source cannot be evaluated here: {type(error).__name__}"


def _owner(source: str, scope: Mapping[str, Any]) -> str:
    """``inbuilt`` if a module on the way to the object is torch's own, ``own`` if another one is; empty without one."""
    base = _BASE.search(source)
    if base is None:
        return ""
    end, owner = base.end(), ""
    while (step := _STEP.match(source, end)) is not None:
        end = step.end()
        value, _ = _value(source[base.start() : end], scope)
        if isinstance(value, torch.nn.Module):
            if _is_inbuilt(value):
                return "inbuilt"
            owner = "own"
    return owner


def _is_inbuilt(module: torch.nn.Module) -> bool:
    """Whether it is torch's own to Dynamo, as no container is (wrap_module in torch/_dynamo/variables/builder.py)."""
    name = type(module).__module__
    is_torchs = name.startswith(("torch.nn.modules", "torch.ao.")) and not name.startswith("torch.nn.modules.container")
    return is_torchs or getattr(type(module), "_dynamo_marked_static", False)


def _files_of_modules() -> dict[str, str]:
    """Files by what torch's ``shorten_filename`` leaves of a path with no folder in common with torch's own."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return {file[2:]: file for file in reversed(files) if isinstance(file, str)}


def _describe(leaf: _Leaf, files: Mapping[str, str]) -> dict[str, Any]:
    text = " and ".join(leaf.guard.verbose_code_parts())
    cause = _CAUSE.search(text)
    place = None
    if cause is not None:
        path, _, number = (cause["place"] or cause["only"]).partition(":")
        place = f"{files.get(path, path)}:{number}"
    line = None if cause is None or not cause["line"] else cause["line"].strip()
    return {
        "type": type(leaf.guard).__name__,
        "text": " ".join(text.partition("  #")[0].split()),
        "owner": leaf.owner,
        "source": "" if leaf.source == "L" else leaf.source,
        "cause": None if place is None else f"{place}: {line}" if line else place,
    }


def _timed(calls: Mapping[int, tuple[Callable[[Any], Any], Any]]) -> tuple[dict[int, list[float]], dict[int, float]]:
    """Warm times by repetition and median cold times, minus those of the cheapest guard."""
    manager = _manager_of_the_cheapest_guard()  # a leaf does not keep its manager alive
    (empty,) = manager.get_leaf_guards()
    warm: dict[int, list[float]] = {number: [] for number in calls}
    for _ in range(_REPEATS):
        took_ns = {number: _loop_ns(check, value) for number, (check, value) in calls.items()}
        # Some guards are cheaper still than the one made for it.
        base_ns = min(_loop_ns(empty, calls), *took_ns.values())
        for number, check_ns in took_ns.items():
            warm[number].append(check_ns - base_ns)
    cold: dict[int, list[int]] = {number: [] for number in calls}
    base: list[int] = []
    flushed = torch.zeros(_FLUSH_BYTES // 4)
    started = time.perf_counter_ns()
    for _ in range(_COLD_REPEATS):
        if time.perf_counter_ns() - started > _COLD_BUDGET_NS:
            break
        base.append(_once_cold_ns(empty, calls, flushed))
        for number, (check, value) in calls.items():
            cold[number].append(_once_cold_ns(check, value, flushed))
    least = statistics.median(base or [0])
    return warm, {number: max(0.0, statistics.median(times) - least) for number, times in cold.items() if times}


def _manager_of_the_cheapest_guard() -> Any:
    """A manager of one guard: that its object is not None."""
    from torch._C._dynamo.guards import RootGuardManager

    manager: Any = RootGuardManager()
    try:
        manager.add_not_none_guard(["made by hand"], None)
    except TypeError:
        manager.add_not_none_guard(["made by hand"])
    return manager


def _loop_ns(check: Callable[[Any], Any], value: Any) -> float:
    start_ns = time.perf_counter_ns()
    for _ in range(_CALLS):
        check(value)
    return (time.perf_counter_ns() - start_ns) / _CALLS


def _once_cold_ns(check: Callable[[Any], Any], value: Any, flushed: torch.Tensor) -> int:
    """Time of one call after memory larger than the caches was written."""
    flushed.add_(1.0)
    start_ns = time.perf_counter_ns()
    check(value)
    return time.perf_counter_ns() - start_ns


def _compilations() -> dict[str, Any]:
    """Frames that Dynamo compiled in this process and graph breaks, with reasons."""
    from torch._dynamo import utils

    metrics: Any = getattr(utils, "get_compilation_metrics", list)()
    breaks = getattr(utils, "graph_break_reasons", [])
    return {
        "compilations": [
            {
                "name": metric.co_name,
                "place": f"{metric.co_filename}:{metric.co_firstlineno}",
                "reason": getattr(metric, "recompile_reason", None),
                "seconds": metric.entire_frame_compile_time_s,
            }
            for metric in metrics
            if metric.co_name
        ],
        "graph_breaks": [
            {
                "reason": _short(str(broken.reason)),
                "place": f"{broken.user_stack[-1].filename}:{broken.user_stack[-1].lineno}"
                if broken.user_stack
                else None,
            }
            for broken in breaks
            if getattr(broken, "graph_break", True)
        ],
    }


def _short(reason: str) -> str:
    """First line of a graph break's reason, with its explanation but without hints."""
    lines = [line.strip() for line in reason.strip().splitlines()] or [""]
    explained = next((line for line in lines[1:] if line.startswith("Explanation: ")), "")
    return ": ".join(filter(None, (lines[0], explained.removeprefix("Explanation: "))))
