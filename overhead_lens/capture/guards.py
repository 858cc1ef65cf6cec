"""The guards that a warm compiled call checks, read from Dynamo's cache entries. Runs in the worker."""

from __future__ import annotations

from typing import Any

from overhead_lens.capture.workload import Workload


def list_guards(workload: Workload) -> dict[str, Any]:
    """The leaf guards of every cache entry of the measured function, in the order in which they are checked.

    Returns:
        ``guards``: ``{"type": class name, "text": code, "source": what is guarded}``; ``reason`` if this torch shows none
        (``torch._dynamo.eval_frame._debug_get_cache_entry_list``, torch/csrc/dynamo/guards.cpp).
    """
    try:
        from torch._dynamo.eval_frame import _debug_get_cache_entry_list as cache_entries

        entries = cache_entries(workload.original.__code__)
        guards = [guard for entry in entries for guard in _leaves(entry.guard_manager.root)]
    except Exception as error:
        return {"guards": [], "reason": f"this torch does not show its guards: {type(error).__name__}: {error}"}
    return {"guards": guards, "reason": None}


def _leaves(manager: Any) -> list[dict[str, str]]:
    source = manager.get_source() if hasattr(manager, "get_source") else ""
    found = [_describe(leaf, source) for leaf in manager.get_leaf_guards()]
    for child in manager.get_child_managers():
        found += _leaves(child)
    if hasattr(manager, "get_epilogue_lambda_guards"):
        found += [_describe(leaf, source) for leaf in manager.get_epilogue_lambda_guards()]
    return found


def _describe(leaf: Any, source: str) -> dict[str, str]:
    text = " and ".join(leaf.verbose_code_parts())
    return {"type": type(leaf).__name__, "text": " ".join(text.partition("  #")[0].split()), "source": source or ""}
