"""The cost lies in the Python code of a library that user code calls."""

from __future__ import annotations

import bought_library
import torch
from known_cost import COST, Params

from overhead_lens.scenario import Scenario


def inputs(params: Params) -> tuple[torch.Tensor]:
    """One small tensor."""
    COST.open(params)
    return (torch.ones(8),)


def call(x: torch.Tensor) -> torch.Tensor:
    """The library's function, then an operator."""
    bought_library.work()
    return torch.neg(x)


SCENARIO = Scenario(
    name="laboratory_library_code",
    summary="a known cost in a Python library",
    source="CPython",
    params=Params,
    inputs=inputs,
    variants={"call": call},
)
