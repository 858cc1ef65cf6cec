"""The cost lies in the user's own Python code, beside an operator or beside a compiled function."""

from __future__ import annotations

from time import perf_counter_ns

import torch
from known_cost import COST, Params

from overhead_lens.scenario import Scenario


def inputs(params: Params) -> tuple[torch.Tensor]:
    """One small tensor."""
    COST.open(params)
    return (torch.ones(8),)


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


SCENARIO = Scenario(
    name="laboratory_user_code",
    summary="a known cost in the user's own Python code",
    source="CPython",
    params=Params,
    inputs=inputs,
    variants={"eager": eager, "beside_compiled": beside_compiled},
)
