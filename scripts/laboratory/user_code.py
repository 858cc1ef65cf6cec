"""The cost lies in the user's own Python code, beside an operator or beside a compiled function."""

from __future__ import annotations

from itertools import repeat

import torch
from known_cost import COST, Params

from overhead_lens.scenario import Scenario


def inputs(params: Params) -> tuple[torch.Tensor]:
    """One small tensor."""
    COST.open(params)
    return (torch.ones(8),)


def eager(x: torch.Tensor) -> torch.Tensor:
    """An empty loop, then an operator."""
    for _ in repeat(None, COST.cell[1]):
        pass
    return torch.neg(x)


@torch.compile
def compiled(x: torch.Tensor) -> torch.Tensor:
    """The compiled operator."""
    return torch.neg(x)


def beside_compiled(x: torch.Tensor) -> torch.Tensor:
    """An empty loop, then the compiled function."""
    for _ in repeat(None, COST.cell[1]):
        pass
    return compiled(x)


SCENARIO = Scenario(
    name="laboratory_user_code",
    summary="a known cost in the user's own Python code",
    source="CPython",
    params=Params,
    inputs=inputs,
    variants={"eager": eager, "beside_compiled": beside_compiled},
)
