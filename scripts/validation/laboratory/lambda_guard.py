"""The cost lies in the Python code of a guard: measured with ``--compile``."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

import torch
from known_cost import COST, Params, place


def call(x: torch.Tensor) -> torch.Tensor:
    """One operator."""
    return torch.neg(x)


def burning_guard(_value: Any) -> bool:
    """A guard that holds once the cost is spent."""
    if cost_ns := COST.cell[0]:
        until_ns = perf_counter_ns() + cost_ns
        while perf_counter_ns() < until_ns:
            pass
    return True


def add_guard(_params: Params, _arguments: tuple[Any, ...], _output: Any) -> None:
    """Give the compiled call the guard, once it is there."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    for entry in _debug_get_cache_entry_list(call.__code__):
        entry.guard_manager.root.add_lambda_guard(burning_guard, ["burning_guard(L)"], None)


SCENARIO = place(
    "lambda_guard",
    "a known cost in a Python guard of a compiled call",
    "torch/csrc/dynamo/guards.cpp (LAMBDA_GUARD)",
    call,
    check=add_guard,
)
