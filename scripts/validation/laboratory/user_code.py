"""The cost lies in Python: the user's own, beside an operator or a compiled function, or that of a library."""

from __future__ import annotations

from time import perf_counter_ns

import bought_library
import torch
from known_cost import COST, place


def spend() -> None:
    """Look at the clock until the cost is spent."""
    if cost_ns := COST.cell[0]:
        until_ns = perf_counter_ns() + cost_ns
        while perf_counter_ns() < until_ns:
            pass


def eager(x: torch.Tensor) -> torch.Tensor:
    """The cost, then an operator."""
    spend()
    return torch.neg(x)


@torch.compile
def compiled(x: torch.Tensor) -> torch.Tensor:
    """The compiled operator."""
    return torch.neg(x)


def beside_compiled(x: torch.Tensor) -> torch.Tensor:
    """The cost, then the compiled function."""
    spend()
    return compiled(x)


def library(x: torch.Tensor) -> torch.Tensor:
    """The library's function, then an operator."""
    bought_library.work()
    return torch.neg(x)


SCENARIO = place(
    "user_code", "a known cost in Python code of the user or of a library", "CPython", eager, beside_compiled, library
)
